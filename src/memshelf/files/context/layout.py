"""How the memories of a run share its context budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memshelf.files.context import index
from memshelf.files.context.render import Kind, block, cost, costs_within, omitted_file
from memshelf.files.context.snapshot import Snapshot
from memshelf.limits import FileMemoryLimits
from memshelf.untrusted import size

__all__ = ["Block", "layout"]


@dataclass(frozen=True, slots=True)
class Block:
    """What one memory shows."""

    kind: Kind
    text: str


def layout(snapshots: Sequence[Snapshot], limits: FileMemoryLimits) -> dict[str, Block]:
    """A block for each memory that has something to show; all of them together take at most `context_bytes`.

    1. `always_load` files go in whole, in mount order, each memory within `always_load_bytes`; one that does not fit
       becomes a pointer, and a later, smaller one may still fit.
    2. Indexes and change lists share the rest evenly; what a short one leaves goes to the others.
    3. A change list over its share becomes full context.
    4. An index over its share collapses directories, the deepest first, then is cut with a pointer.

    A memory for which not even an empty block is left has none.
    """
    shown = [snapshot for snapshot in snapshots if not snapshot.unchanged]
    kinds: dict[str, Kind] = {each.name: "full" if each.changed is None else "changes" for each in shown}
    changes = {each.name: index.changes(each.changed, each.entries) for each in shown if each.changed is not None}
    while True:
        blocks, over = _render(shown, kinds, changes, limits)
        if not over:
            return blocks
        kinds |= dict.fromkeys(over, "full")


def _render(
    shown: Sequence[Snapshot], kinds: Mapping[str, Kind], changes: Mapping[str, list[str]], limits: FileMemoryLimits
) -> tuple[dict[str, Block], list[str]]:
    remaining = limits.context_bytes
    least: dict[str, int] = {}
    needs: dict[str, int] = {}
    placed: list[Snapshot] = []
    for snapshot in shown:
        name, kind = snapshot.name, kinds[snapshot.name]
        lines = changes[name] if kind == "changes" else index.lines(snapshot.entries)
        need = costs_within(lines, limits.context_bytes)
        # Even a list that is cut away keeps its pointer, so that the model knows there is more.
        minimum = min(need, index.more_cost(name, len(snapshot.entries)))
        empty = size(block(name, kind, [], [], None)) + minimum
        if empty > remaining:
            if kind == "changes":
                return {}, [name]
            continue
        remaining -= empty
        least[name], needs[name] = minimum, need - minimum
        placed.append(snapshot)
    files: dict[str, list[dict[str, str]]] = {}
    for snapshot in placed:
        files[snapshot.name], remaining = _files(snapshot, kinds[snapshot.name], limits.always_load_bytes, remaining)
    shares = _shares(remaining, needs)
    blocks: dict[str, Block] = {}
    over: list[str] = []
    for snapshot in placed:
        name, kind = snapshot.name, kinds[snapshot.name]
        share = shares[name] + least[name]
        if kind == "full":
            lines_, more = index.fit(name, snapshot.entries, share)
        elif costs_within(changes[name], share) > share:
            over.append(name)
            continue
        else:
            lines_, more = changes[name], None
        blocks[name] = Block(kind, block(name, kind, files[name], lines_, more))
    return blocks, over


def _files(snapshot: Snapshot, kind: Kind, allowance: int, remaining: int) -> tuple[list[dict[str, str]], int]:
    shown: list[dict[str, str]] = []
    for path in snapshot.always_load:
        text = snapshot.loaded.get(path)
        if text is None or not (kind == "full" or path in (snapshot.changed or ())):
            continue
        item = {"path": path, "content": text}
        if cost(item) <= min(allowance, remaining):
            allowance -= cost(item)
        else:
            item = omitted_file(path, size(text))
            if cost(item) > remaining:
                continue
        remaining -= cost(item)
        shown.append(item)
    return shown, remaining


def _shares(total: int, needs: Mapping[str, int]) -> dict[str, int]:
    """`total` split evenly; the shortest list is served first and passes on what it leaves."""
    shares: dict[str, int] = {}
    pending = sorted(needs.items(), key=lambda item: item[1])
    for served, (name, need) in enumerate(pending):
        shares[name] = min(need, total // (len(pending) - served))
        total -= shares[name]
    return shares
