"""Texts as vectors: what an embedder is, the ones that memshelf brings, and how long texts are cut."""
