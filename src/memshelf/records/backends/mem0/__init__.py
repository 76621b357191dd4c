"""Record memories on mem0: its open-source server and its hosted platform. They need the extra `http`."""

from memshelf.records.backends.mem0.definition import MEM0_OSS, MEM0_PLATFORM, Mem0Definition

__all__ = ["MEM0_OSS", "MEM0_PLATFORM", "Mem0Definition"]
