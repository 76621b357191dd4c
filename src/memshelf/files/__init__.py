"""File memory: a small tree of text files that outlives any one thread."""
