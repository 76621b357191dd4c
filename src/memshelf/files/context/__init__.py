"""What a run is shown of its memories: read from the stores, laid out in a budget, rendered to bytes."""

from memshelf.files.context.deliver import Delivered, deliver
from memshelf.files.context.snapshot import Snapshot

__all__ = ["Delivered", "Snapshot", "deliver"]
