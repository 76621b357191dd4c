"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from pydantic_ai import RunUsage

from memshelf.agent.state import HarnessState, PendingCall

__all__ = ["HarnessResult", "RunIncompleteError", "Status"]

Status: TypeAlias = Literal["completed", "suspended", "failed", "cancelled"]
Output = TypeVar("Output")

_ATTACHED = "_memshelf_result"


class RunIncompleteError(Exception):
    """A run that was suspended or cancelled has no output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessResult(Generic[Output]):
    """How a run ended, and the thread as it is now.

    `completed`: `output` is the answer. `suspended`: `pending` are the calls that wait for an approval or a result.
    `failed`: `failure` is the error. `cancelled`: the run was told to stop. `state` can be gone on with in every case:
    nothing that happened is lost, and calls that never finished are marked as interrupted.
    """

    status: Status
    state: HarnessState
    usage: RunUsage
    output: Output | None = None
    failure: Exception | None = None
    run_id: str | None = None

    @property
    def pending(self) -> tuple[PendingCall, ...]:
        """What a suspended run waits for."""
        return tuple(self.state.pending)

    def output_or_raise(self) -> Output:
        """The output; raises `failure`, or `RunIncompleteError` when the run was suspended or cancelled."""
        if self.failure is not None:
            raise self.failure
        if self.status != "completed":
            waits = ", ".join(f"{call.name} ({call.tool_call_id})" for call in self.state.pending)
            raise RunIncompleteError(f"The run was {self.status}." + (f" It waits for {waits}." if waits else ""))
        return self.output  # type: ignore[return-value]  # a completed run has the output that its type says

    @classmethod
    def from_cancellation(cls, error: BaseException) -> HarnessResult[Output] | None:
        """The result of a run whose task was cancelled, from the error that came out of it.

        For `asyncio.CancelledError`, and for what it turned into on its way: the `TimeoutError` of a timeout, the
        `KeyboardInterrupt` of Ctrl-C. `None` when no run was cancelled.
        """
        pending, seen = [error], set[int]()
        while pending:
            each = pending.pop()
            if id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(found := getattr(each, _ATTACHED, None), cls):
                return found
            pending += [linked for linked in (each.__context__, each.__cause__) if linked is not None]
        return None

    def attach_to(self, error: BaseException) -> None:
        """Let `from_cancellation` find this result."""
        setattr(error, _ATTACHED, self)
