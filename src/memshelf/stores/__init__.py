"""Named stores as resources: a catalogue of stores, and the memories and versions of each, addressed by id.

A store owns one file memory of the database, whose name is the store's id. A memory is a file, its id the file's; a
memory's path is the file's with a `/` before it.
"""
