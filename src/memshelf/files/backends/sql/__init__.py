"""File memories in a SQL database: queries, changes, and the store on top, the same for every engine."""
