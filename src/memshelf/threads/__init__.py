"""One conversation: what of it a model is shown, its summary, its compaction, and its log on disk."""
