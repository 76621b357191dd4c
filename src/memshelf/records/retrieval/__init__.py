"""Finding records: what a text is made of, the index over it, and the mix of scores. Knows no store."""
