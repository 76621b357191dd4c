"""Record memory: short texts, recalled by meaning. The contract is in `protocol`, the search in `retrieval`."""
