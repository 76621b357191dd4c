"""Where the runs of an agent go on from that are given no state."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from pydantic_ai.messages import repair_messages
from typing_extensions import override

from memshelf.agent.capabilities.session import session_state
from memshelf.agent.state import HarnessState
from memshelf.threads.log import SessionLog

__all__ = ["Conversation", "KeptConversation", "LoggedConversation"]


class Conversation:
    """Each run is a thread of its own."""

    on_disk = False

    def state(self) -> HarnessState | None:
        """What the next run goes on from. With `on_disk`, it takes a thread to read it."""
        return None

    def ended(self, before: HarnessState | None, after: HarnessState) -> None:
        """A run is over that went on from `before`, or, with `None`, from a state that its caller gave."""


class KeptConversation(Conversation):
    """One thread of each user, in this object. A state that a caller gives to a run takes its place.

    Runs at the same time do not see each other; the next one sees them one after the other.
    """

    def __init__(self, user: Callable[[], str] = lambda: "") -> None:
        self._user = user
        self._states: dict[str, HarnessState] = {}

    @override
    def state(self) -> HarnessState:
        return self._states.setdefault(self._user(), HarnessState(thread_id=str(uuid.uuid4())))

    @override
    def ended(self, before: HarnessState | None, after: HarnessState) -> None:
        # The user may be another by now; a thread that was gone on with has an id of its own.
        threads = {state.thread_id: user for user, state in self._states.items()}
        if before is None:
            self._states[self._user()] = after
        elif (user := threads.get(before.thread_id)) is not None:  # else a caller's state took its place meanwhile
            now = self._states[user]
            self._states[user] = after if before is now else _joined(now, before, after)


class LoggedConversation(Conversation):
    """The thread of a session log. Runs log themselves, by their `SessionLogCapability`."""

    on_disk = True

    def __init__(self, log: SessionLog) -> None:
        self._log = log

    @override
    def state(self) -> HarnessState:
        return session_state(self._log) or HarnessState(thread_id=self._log.session_id)


def _joined(now: HarnessState, before: HarnessState, after: HarnessState) -> HarnessState:
    """The thread as it is `now`, and behind it what a run added that went on from `before`."""
    known = {message.run_id for message in before.messages}
    new = [message for message in after.messages if message.run_id not in known]
    messages = repair_messages([*repair_messages(now.messages), *new], repair_last_response=not after.pending)
    kept = now.capability_state | after.capability_state
    return now.model_copy(update={"messages": messages, "capability_state": kept, "pending": after.pending})
