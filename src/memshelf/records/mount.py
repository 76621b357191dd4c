"""What a run sees of a record store: a mount."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import get_args

from memshelf.arguments import checked_argument
from memshelf.mounted import Access, check_mount
from memshelf.origin import OriginKind
from memshelf.records.protocol import RecallRecordStore, RecordStore

__all__ = ["DEFAULT_RECORD_GUIDE", "RecordMount"]

DEFAULT_RECORD_GUIDE = (
    "Keep what will still matter in other conversations: preferences, decisions and their reasons, facts about people, "
    "projects and things. Do not keep secrets, or the state of the task at hand. One fact, one record: a full sentence "
    "that names whom or what it is about and can be understood alone, in the user's language."
)


@dataclass(frozen=True, slots=True)
class RecordMount:
    """One record memory, mounted under a name.

    `name` is how the model addresses it: `^[a-z][a-z0-9-]{0,62}$`. `access` is `"read"` or `"write"`. `guide` tells
    the model what belongs in it (`None`: `DEFAULT_RECORD_GUIDE`; `""`: nothing). With `recall`, the records closest to
    a run's first input stand before it. `admit` names the kinds of origin whose records may, `None` all of them; a
    record that does not say whose words it is in is then not among them. Only a `RecallRecordStore` keeps origins.
    """

    name: str
    store: RecordStore
    access: Access
    guide: str | None = None
    recall: bool = True
    admit: tuple[OriginKind, ...] | None = None

    def __post_init__(self) -> None:
        check_mount(self)
        if not isinstance(self.store, RecordStore) or isinstance(self.store, type):
            given = type(self.store).__name__
            raise TypeError(
                f"Mount {self.name}: {given} is not a RecordStore, such as SqliteRecordStore('user.db') is."
            )
        checked_argument("recall", self.recall, bool)
        if self.admit is not None:
            self._check_admitted()

    def _check_admitted(self) -> None:
        checked_argument("admit", self.admit, Collection)
        kinds = get_args(OriginKind)
        admitted = tuple(self.admit or ())
        if not admitted or not set(admitted) <= set(kinds):
            raise ValueError(f"Mount {self.name}: admit names one or more of {', '.join(kinds)}, not {admitted!r}.")
        if not isinstance(self.store, RecallRecordStore):
            store = type(self.store).__name__
            raise TypeError(f"Mount {self.name}: {store} keeps no origins, so that admit would admit nothing.")
        object.__setattr__(self, "admit", admitted)
