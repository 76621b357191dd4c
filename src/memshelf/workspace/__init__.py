"""A user's typed, readable long-term memory, on top of any file memory."""
