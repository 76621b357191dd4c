"""Files by what they mean: the index of record memory over the passages of a file memory."""
