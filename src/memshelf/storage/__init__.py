"""Databases: opening, migrating, and whole transactions on their own threads. Knows nothing of what is stored."""
