"""Where the tests of stores work, and who they are."""

from memshelf.origin import Origin

WORKSPACE = "wrkspc_1"
ORIGIN = Origin(api_key_id="apikey_1")
