"""Every number that a user may tune, and what the `limit` of a call may be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

from memshelf.arguments import checked_argument

__all__ = ["FileFormat", "FileMemoryLimits", "RecordMemoryLimits", "StoreLimits", "page_limit"]

_COUNTED = (1 << 31) - 2  # one more is asked for, to see whether there are more


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What a memory file may look like. Sizes are UTF-8 bytes.

    Lowering a limit keeps what is stored readable; only new writes are held to it. All but `path_bytes`: a path that is
    longer than it can no longer be addressed.
    """

    max_file_bytes: int = 65_536
    description_chars: int = 200
    frontmatter_bytes: int = 2_048
    path_bytes: int = 256

    def __post_init__(self) -> None:
        _require_at_least(self, 1, "max_file_bytes", "description_chars", "frontmatter_bytes", "path_bytes")


@dataclass(frozen=True, slots=True)
class FileMemoryLimits:
    """The limits of a `FileMemoryCapability`.

    `context_bytes` is what all memory context of one run may take, wrappers included; `always_load_bytes` what the
    `always_load` files of one memory may take of it; `write_retries` how often a write whose file moved in between is
    checked and tried again; `result_bytes` what a tool may answer of a directory's entries, or of matching lines.
    """

    format: FileFormat = field(default_factory=FileFormat)
    context_bytes: int = 32_768
    always_load_bytes: int = 8_192
    write_retries: int = 3
    result_bytes: int = 131_072

    def __post_init__(self) -> None:
        checked_argument("format", self.format, FileFormat)
        _require_at_least(self, 1, "context_bytes", "result_bytes")
        _require_at_least(self, 0, "always_load_bytes", "write_retries")


@dataclass(frozen=True, slots=True)
class RecordMemoryLimits:
    """The limits of a `RecordMemoryCapability`.

    `record_chars` is how long a record may be that a model writes, and `result_bytes` what the texts in one result of a
    tool may take (UTF-8). At a run's first input, a memory shows at most `recall_limit` records in a block of at most
    `recall_bytes` (UTF-8, wrapper included), and all of them together take at most `recall_seconds`.
    """

    record_chars: int = 8_000
    result_bytes: int = 65_536
    recall_limit: int = 5
    recall_bytes: int = 8_192
    recall_seconds: float = 2.0

    def __post_init__(self) -> None:
        _require_at_least(self, 1, "record_chars", "result_bytes", "recall_limit", "recall_bytes")
        seconds = self.recall_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise ValueError(f"RecordMemoryLimits.recall_seconds is a number of seconds above 0, not {seconds!r}.")


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """The limits of a named store and of the sessions that mount it.

    Content and paths are measured in UTF-8 bytes, a path with its leading `/`; names and the like in characters.
    Lowering a limit keeps what is stored readable; only new writes are held to it. At the limit of memories, new ones
    are refused, and those that exist stay readable and editable.
    """

    memories: int = 10_000
    content_bytes: int = 102_400
    path_bytes: int = 1_024
    path_segments: int = 20
    name_chars: int = 255
    description_chars: int = 1_024
    metadata_pairs: int = 16
    metadata_key_chars: int = 64
    metadata_value_chars: int = 512
    mounts: int = 8
    instructions_chars: int = 4_096

    def __post_init__(self) -> None:
        _require_at_least(self, 1, *(each.name for each in fields(self)))


def page_limit(limit: int) -> int:
    """How many are asked for, at most as many as every database can count to.

    `ValueError` for what is no limit. Half a record is none, nor is a truth value.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise ValueError(f"A limit is a whole number, at least 1, not {limit!r}.")
    return min(limit, _COUNTED)


def _require_at_least(limits: object, least: int, *names: str) -> None:
    for name in names:
        value = getattr(limits, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ValueError(f"{type(limits).__name__}.{name} is a whole number of at least {least}, not {value!r}.")
