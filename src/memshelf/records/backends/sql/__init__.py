"""Records in a SQL database, whichever engine keeps it."""
