"""What memories of every kind have in common as a model sees them: a mount's name and access, and tools by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from logging import Logger
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError

__all__ = [
    "Access",
    "Json",
    "Kind",
    "MemoryTool",
    "Mount",
    "check_mount",
    "chosen",
    "distinct",
    "instructed",
    "offered",
    "reached",
    "warn_of_failure",
]

Access: TypeAlias = Literal["read", "write"]
Kind: TypeAlias = Literal["file", "record"]
Json: TypeAlias = dict[str, Any]  # any JSON value

Key = TypeVar("Key", bound=str)
M = TypeVar("M", bound="Mount")

_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class Mount(Protocol):
    """A memory under the name by which the model addresses it."""

    @property
    def name(self) -> str: ...

    @property
    def access(self) -> Access: ...

    @property
    def guide(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class MemoryTool(Generic[Key]):
    """One tool as a door offers it. `access` is what a mount must allow for it."""

    kind: Kind
    key: Key
    access: Access
    description: str

    @property
    def name(self) -> str:
        """The name that the model calls: `memory_file_view`."""
        return f"memory_{self.kind}_{self.key}"

    @property
    def id(self) -> str:
        """The name that permission rules use: `memory.file.view`."""
        return f"memory.{self.kind}.{self.key}"


def check_mount(mount: Mount) -> None:
    """`ValueError` for a name or an access that no mount may have, `TypeError` for a guide that is no text."""
    if not isinstance(mount.name, str) or _NAME.fullmatch(mount.name) is None:
        raise ValueError(
            "A memory's mount name matches ^[a-z][a-z0-9-]{0,62}$, such as user or team-notes; "
            f"{mount.name!r} does not."
        )
    if mount.access not in ("read", "write"):
        raise ValueError(f"Mount {mount.name}: access is 'read' or 'write', not {mount.access!r}.")
    checked_argument("guide", mount.guide, str, None)


def distinct(mounts: Sequence[M], mount_type: type[M], capability: str) -> tuple[M, ...]:
    """The mounts of a capability, each of that type and with a name of its own. `TypeError`, `ValueError`."""
    wanted = mount_type.__name__
    if isinstance(mounts, mount_type) or not isinstance(mounts, Sequence):
        raise TypeError(f"Mounts are a sequence, also of one: [{wanted}(...)], not a {type(mounts).__name__}.")
    if not mounts:
        raise ValueError(f"There is no mount: {capability}([{wanted}(...)]) needs at least one.")
    names: set[str] = set()
    for mount in mounts:
        if not isinstance(mount, mount_type):
            raise TypeError(f"Mounts are {wanted} objects, not {type(mount).__name__}.")
        if mount.name in names:
            raise ValueError(f"Two mounts are named {mount.name}; each needs a name of its own.")
        names.add(mount.name)
    return tuple(mounts)


def chosen(tools: Mapping[Key, MemoryTool[Key]], keys: Collection[Key] | None) -> tuple[MemoryTool[Key], ...]:
    """The tools named, in their usual order; all of them for `None`. `ValueError` for an unknown name."""
    checked_argument("tools", keys, Collection, None)
    if keys is None:
        return tuple(tools.values())
    if unknown := sorted(set(keys) - set(tools)):
        kind = next(iter(tools.values())).kind
        raise ValueError(f"Unknown {kind} memory tools: {', '.join(unknown)}. There are {', '.join(tools)}.")
    return tuple(tool for key, tool in tools.items() if key in keys)


def offered(mounts: Sequence[Mount], tools: Sequence[MemoryTool[Key]]) -> dict[MemoryTool[Key], list[str]]:
    """Each tool that some mount's access allows, with the names of those mounts."""
    names = {tool: [mount.name for mount in mounts if tool.access in ("read", mount.access)] for tool in tools}
    return {tool: allowed for tool, allowed in names.items() if allowed}


def reached(mounts: Mapping[str, M], memory: str, tool: MemoryTool[Any]) -> M:
    """The mount that a call of `tool` names. `unknown_memory`, or `forbidden` when its access does not allow it."""
    mount = mounts.get(memory)
    if mount is None:
        raise MemoryStoreError(
            "unknown_memory", f"No memory {memory[:63]!r} is mounted. Mounted: {', '.join(mounts) or 'none'}."
        )
    if tool.access == "write" and mount.access == "read":
        raise MemoryStoreError("forbidden", f"Memory {memory} is read-only here; nothing changed.")
    return mount


def warn_of_failure(log: Logger, memory: str, undone: str, error: Exception) -> None:
    """Say on one line why a run goes on without a memory; where in the code it happened is for those who debug."""
    why = str(error) if isinstance(error, MemoryStoreError) else type(error).__name__
    log.warning("Memory %s could not be %s (%s); this run goes on without it.", memory, undone, why.rstrip("."))
    log.debug("Memory %s could not be %s.", memory, undone, exc_info=error)


def instructed(
    lead: str, mounts: Sequence[Mount], kind: Kind, default_guide: str, tools: Collection[MemoryTool[Any]], writing: str
) -> str:
    """Instructions: the lead, each mount with its guide, and with a tool that writes what is to know about writing."""
    parts = [lead, *(_entry(mount, kind, default_guide) for mount in mounts)]
    if any(tool.access == "write" for tool in tools):
        parts.append(writing)
    return "\n\n".join(parts)


def _entry(mount: Mount, kind: Kind, default_guide: str) -> str:
    guide = default_guide if mount.guide is None else mount.guide
    attributes = f'name="{mount.name}" kind="{kind}" access="{mount.access}"'
    if not guide.strip():
        return f"<memory {attributes}/>"
    # Escaped, so that a guide cannot close its entry or list a memory of its own.
    return f"<memory {attributes}>\n{escape(guide.strip(), quote=False)}\n</memory>"
