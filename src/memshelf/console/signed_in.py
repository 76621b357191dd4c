"""Who is signed in, in the memory of this process: a random id in a cookie stands for the key, which stays here."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Session", "Sessions"]

IDLE_SECONDS = 1_800.0
WHOLE_SECONDS = 43_200.0
_MOST_SESSIONS = 1_000


@dataclass(slots=True)
class Session:
    """`token` stands in every form, so that no other site can send one. `notice` is shown once, on the next page."""

    key: str
    began: float
    seen: float
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    notice: str | None = None


class Sessions:
    """Sessions by id. One that is not used for `IDLE_SECONDS` ends, and each after `WHOLE_SECONDS`. When there are too
    many, the one that was not used for the longest time goes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, key: str) -> str:
        """The id of a new session. It is always a new one: an id that somebody brought along is worth nothing."""
        now = self._clock()
        for id in [id for id, session in self._sessions.items() if self._over(session, now)]:
            del self._sessions[id]
        while len(self._sessions) >= _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        id = secrets.token_urlsafe(32)
        self._sessions[id] = Session(key, now, now)
        return id

    def find(self, id: str) -> Session | None:
        session = self._sessions.get(id)
        if session is None:
            return None
        now = self._clock()
        if self._over(session, now):
            del self._sessions[id]
            return None
        session.seen = now
        self._sessions.move_to_end(id)
        return session

    def end(self, id: str) -> None:
        self._sessions.pop(id, None)

    @staticmethod
    def _over(session: Session, now: float) -> bool:
        return now - session.seen >= IDLE_SECONDS or now - session.began >= WHOLE_SECONDS
