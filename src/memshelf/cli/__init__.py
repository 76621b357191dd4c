"""The command line: `memshelf ...`, also `python -m memshelf`.

Nothing here imports an agent framework; commands that talk to a model import it when they run.
"""

from memshelf.cli.program import main

__all__ = ["main"]
