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

    def begun(self, before: HarnessState | None) -> Callable[[HarnessState], None]:
        """A run begins that goes on from `before`, or, with `None`, from a state that its caller gave: what to call
        with its thread when it is over."""
        del before
        return lambda _: None


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
    def begun(self, before: HarnessState | None) -> Callable[[HarnessState], None]:
        user = self._user()  # who may be another when the run is over

        def ended(after: HarnessState) -> None:
            now = self._states.get(user)
            if before is None or before is now:
                self._states[user] = after
            elif now is not None and now.thread_id == before.thread_id:  # else a caller's state took its place
                self._states[user] = _joined(now, before, after)

        return ended


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
