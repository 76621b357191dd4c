"""Measurements as ratios: against a named peer, or against the raw cost of the same work, in one run."""
