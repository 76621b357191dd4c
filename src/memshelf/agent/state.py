"""One thread as portable JSON."""

from __future__ import annotations

from typing import Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, JsonValue, model_validator
from pydantic_ai import DeferredToolRequests, ModelMessage, RunContext, ToolCallPart
from pydantic_ai.capabilities import AbstractCapability
from pydantic_core import PydanticSerializationError
from typing_extensions import override

from memshelf.agent.permissions import TOOL_ID
from memshelf.agent.sendable import sound_value
from memshelf.agent.storable import storable

__all__ = ["STATE_FORMAT", "HarnessState", "PendingCall", "ThreadCapability", "pending_calls", "thread_state"]

STATE_FORMAT = 1
"""The newest format that this version reads, and the one that it writes."""

PendingKind: TypeAlias = Literal["approval", "external"]


class PendingCall(BaseModel):
    """A tool call that a suspended run waits for: an approval, or a result from outside the run."""

    model_config = ConfigDict(frozen=True)

    tool_call_id: str
    tool_id: str
    name: str
    args: dict[str, Any]  # Any: what the tool's own schema says
    kind: PendingKind = "approval"


class HarnessState(BaseModel):
    """A thread: its messages, what capabilities keep with it, and the calls that it waits for.

    Comes from `result.state`, and goes back in as `previous_state`. `model_dump_json` and `model_validate_json` are a
    round trip, also between machines and to later versions. A state of a newer format is refused, and so is a document
    with other fields, as another program's: it must not pass for a thread without messages. The messages are valid for
    every provider: only the calls in `pending` are unanswered, a text stands for what a tool returned that is no JSON,
    and U+FFFD for a lone surrogate. It holds the conversation as it is, secrets included.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # it is the conversation
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )

    format_version: int = STATE_FORMAT
    thread_id: str
    messages: list[ModelMessage] = []
    capability_state: dict[str, JsonValue] = {}
    pending: list[PendingCall] = []

    @model_validator(mode="before")
    @classmethod
    def _refuse_newer(cls, data: Any) -> Any:  # Any: whatever was stored
        version = data.get("format_version", STATE_FORMAT) if isinstance(data, dict) else STATE_FORMAT
        if isinstance(version, int) and version > STATE_FORMAT:
            raise ValueError(
                f"This thread was stored in format {version} by a newer memshelf; this version reads formats up to "
                f"{STATE_FORMAT}. Upgrade memshelf to go on with it."
            )
        return data

    @override
    def model_dump_json(self, **options: Any) -> str:  # Any: Pydantic's own
        """This thread as JSON."""
        try:
            return super().model_dump_json(**options)
        except PydanticSerializationError:  # a session log keeps what no JSON in UTF-8 can hold
            kept = sound_value(self.capability_state)
            messages = [storable(message) for message in self.messages]
            return BaseModel.model_dump_json(
                self.model_copy(update={"messages": messages, "capability_state": kept}), **options
            )

    def following(
        self,
        messages: list[ModelMessage],
        capability_state: dict[str, JsonValue],
        requests: DeferredToolRequests | None = None,
    ) -> Self:
        """This thread after a run."""
        before = {id(message) for message in self.messages}
        return self.model_copy(
            update={
                "messages": [each if id(each) in before else storable(each) for each in messages],
                "capability_state": sound_value(capability_state),
                "pending": pending_calls(requests) if requests is not None else [],
            }
        )


class ThreadCapability(AbstractCapability[object]):
    """Carries the capability state of a thread through one run."""

    def __init__(self, kept: dict[str, JsonValue]) -> None:
        self.kept = kept

    @classmethod
    @override
    def get_serialization_name(cls) -> str | None:
        return None


def thread_state(ctx: RunContext[Any]) -> dict[str, JsonValue] | None:
    """What capabilities keep with the thread of a run, by a key of their own; changes are stored with the thread.

    `None` on a plain `pydantic_ai.Agent`, which has no thread to keep it with.
    """
    return next((each.kept for each in ctx.capabilities.values() if isinstance(each, ThreadCapability)), None)


def pending_calls(requests: DeferredToolRequests) -> list[PendingCall]:
    """The calls that a run ended with."""

    def pending(call: ToolCallPart, kind: PendingKind) -> PendingCall:
        named = requests.metadata.get(call.tool_call_id, {}).get(TOOL_ID, call.tool_name)
        return PendingCall(
            tool_call_id=call.tool_call_id,
            tool_id=named,
            name=call.tool_name,
            args=sound_value(call.args_as_dict()),
            kind=kind,
        )

    return [
        *(pending(call, "approval") for call in requests.approvals),
        *(pending(call, "external") for call in requests.calls),
    ]
