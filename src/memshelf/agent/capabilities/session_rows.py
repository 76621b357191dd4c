"""A thread's messages as rows of a session log, and back.

A row reads without knowing this framework: what was said is its `content`. What else the framework keeps of a message
stands beside it, under `pydantic_ai`, so that a session goes on with the very messages that it was stopped with. Rows
without that, as other programs write them, are read by their type and content.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from pydantic import ValidationError
from pydantic_ai import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import BaseToolReturnPart, ModelRequestPart

from memshelf.agent.capabilities.said import is_ours
from memshelf.agent.capabilities.summaries import attach, is_summary
from memshelf.agent.storable import storable
from memshelf.threads.rows import Row, calls_of, tool_calls

__all__ = ["Replayed", "is_system_prompt", "messages_of", "rows_of"]

_OURS = "pydantic_ai"
_MESSAGES = ("user", "assistant", "tool", "system")


def rows_of(message: ModelMessage, instructions: str | None = None) -> list[Row]:
    """The rows of one message, in order. A summary that stands in it is left out: the boundary before it has that.

    So are its instructions, where they are the `instructions` of the request that was logged before it in its run.
    """
    try:
        # Metadata of an application may be anything; no model is sent it, and a log needs no more than to name it.
        [whole] = ModelMessagesTypeAdapter.dump_python([message], mode="json", fallback=repr)
    except (ValueError, RecursionError):  # so may what a tool returns, which must not cost the results beside it
        message = storable(message)
        [whole] = ModelMessagesTypeAdapter.dump_python([message], mode="json", fallback=repr)
    parts: list[Row] = whole.pop("parts")
    run_id = whole.pop("run_id")
    kept = _given(whole)
    if isinstance(message, ModelResponse):
        kept["usage"] = {key: value for key, value in whole["usage"].items() if value}
        rows = [_response_row(parts, kept)]
    else:
        found = (_request_row(part, dumped) for part, dumped in zip(message.parts, parts, strict=True))
        rows = [row for row in found if row is not None]
        if message.instructions == instructions:
            kept.pop("instructions", None)
        else:
            kept["instructions"] = message.instructions
        if rows:
            rows[0][_OURS]["message"] = kept
    return [row | {"run_id": run_id} if run_id is not None else row for row in rows]


def _response_row(parts: list[Row], kept: Row) -> Row:
    texts = [part for part in parts if part["part_kind"] == "text"]
    calls = [part for part in parts if part["part_kind"] == "tool-call"]
    row: Row = {"type": "assistant", "content": "\n\n".join(part["content"] for part in texts)}
    if calls:
        row["tool_calls"] = [
            {"id": call.pop("tool_call_id"), "name": call.pop("tool_name"), "args": call.pop("args")} for call in calls
        ]
    if len(texts) == 1:
        del texts[0]["content"]
    return {**row, _OURS: {"message": kept | {"parts": [_given(part) for part in parts]}}}


def _request_row(part: ModelRequestPart, dumped: Row) -> Row | None:
    row: Row
    if isinstance(part, UserPromptPart):
        content = dumped.pop("content")
        if isinstance(part.content, str):
            row = {"type": "user", "content": content}
        else:
            count = len(list(takewhile(is_ours, part.content)))
            said = [each for each, item in zip(content, part.content[:count], strict=False) if not is_summary(item)]
            rest = content[count:]
            if not rest:  # a notice of memory's own
                return (
                    {"type": "system", "content": None, _OURS: {"part": dumped | {"content": said}}} if said else None
                )
            alone = bool(count) and len(rest) == 1 and isinstance(rest[0], str)
            row = {"type": "user", "content": rest[0] if alone else rest}
            row |= {"context": said} if said else {}
    elif isinstance(part, BaseToolReturnPart):
        row = {"type": "tool", **{key: dumped.pop(key) for key in ("content", "tool_call_id", "tool_name", "outcome")}}
    elif isinstance(part, SystemPromptPart):
        row = {"type": "system", "content": dumped.pop("content")}
    else:
        row = {"type": "system", "content": None}
    return {**row, _OURS: {"part": _given(dumped)}}


def _given(dumped: Row) -> Row:
    return {key: value for key, value in dumped.items() if value is not None}


def is_system_prompt(row: Row) -> bool:
    """Whether a row holds a system prompt of the agent's."""
    return row["type"] == "system" and isinstance(row.get("content"), str)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A message as it was, and the rows that it came from."""

    message: ModelMessage
    rows: list[Row]


def messages_of(rows: Iterable[Row]) -> list[Replayed]:
    """The messages in the rows of a session, in an order that every provider takes. Boundaries are not looked at.

    Runs that wrote at the same time stand one after the other. A call that was taken for interrupted and yet has a
    result has that. A summary that was made after a run stands with the run's last response.
    """
    groups, summaries = _grouped(list(rows))
    messages = _validated(groups)
    for at, summary in summaries.items():
        if isinstance(messages[at], ModelResponse):
            attach(messages[: at + 1], summary)
    begun: dict[object, int] = {}
    for at, group in enumerate(groups):
        begun.setdefault(group[0].get("run_id"), at)
    order = sorted(range(len(groups)), key=lambda at: begun[run] if (run := groups[at][0].get("run_id")) else at)
    return _answering([Replayed(messages[at], groups[at]) for at in order])


def _grouped(rows: Sequence[Row]) -> tuple[list[list[Row]], dict[int, str]]:
    """The rows of each message, and the summaries by the message that each was made after."""
    groups: list[list[Row]] = []
    summaries: dict[int, str] = {}
    for row in _paired(rows):
        if row["type"] == "event" and row.get("event") == "summary" and groups:
            last = next((at for at in reversed(range(len(groups))) if groups[at][0]["type"] == "assistant"), 0)
            summaries[last] = str(row.get("content"))
        elif row["type"] not in _MESSAGES:
            continue
        elif groups and _continues(groups[-1][-1], row):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups, summaries


def _paired(rows: Sequence[Row]) -> list[Row]:
    """The rows with each result behind its call, and one for each call: its own, or else what says "interrupted".

    A result that stands behind a later response is moved, such as one that a seal made up for a row that was lost.
    """
    responses: dict[object, list[int]] = {}
    for position, row in enumerate(rows):
        if row["type"] == "assistant":
            responses.setdefault(row.get("run_id"), []).append(position)
    gone: set[int] = set()
    moved: dict[int, list[Row]] = {}
    for call in calls_of(rows):
        if not call.results:
            continue
        at = next((each for each in call.results if rows[each].get("outcome") != "interrupted"), call.results[0])
        gone.update(each for each in call.results if each != at)
        runs = {call.run_id, rows[at].get("run_id")}
        others = [responses.get(run_id, []) for run_id in runs]
        # Rows of no run stand among those of runs, which are put together.
        if None in runs or any(bisect_left(each, at) > bisect_right(each, call.position) for each in others):
            gone.add(at)
            moved.setdefault(call.position, []).append({**rows[at], "run_id": call.run_id})
    kept: list[Row] = []
    for position, row in enumerate(rows):
        if position not in gone:
            kept.append(row)
        kept += moved.get(position, ())
    return kept


def _answering(replayed: Iterable[Replayed]) -> list[Replayed]:
    """The messages without results that answer no call of the response before them, such as one that was lost: no
    provider takes them."""
    kept: list[Replayed] = []
    asked: set[str] = set()
    for each in replayed:
        message = each.message
        if isinstance(message, ModelResponse):
            asked = {call.tool_call_id for call in message.tool_calls}
        else:
            parts = [part for part in message.parts if (answered := _answered(part)) is None or answered in asked]
            asked.difference_update(map(_answered, parts))
            if len(parts) < len(message.parts):
                message = replace(message, parts=parts)
        if message.parts or message is each.message:
            kept.append(Replayed(message, each.rows))
    return kept


def _answered(part: ModelRequestPart) -> str | None:
    """The id of the call that a part is the result of."""
    if isinstance(part, BaseToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name is not None):
        return part.tool_call_id
    return None


def _continues(before: Row, row: Row) -> bool:
    """Whether a row is of the same message as the one before it."""
    if "assistant" in (before["type"], row["type"]) or before.get("run_id") != row.get("run_id"):
        return False
    ours = _ours(row)
    return bool(ours) and "message" not in ours


def _validated(groups: Sequence[Sequence[Row]]) -> list[ModelMessage]:
    instructions: Row = {}  # of each run, where they are the same as before
    dumped: list[Row | None] = []
    for group in groups:
        try:
            message = _dumped(group)
            if message["kind"] == "request" and message["run_id"] is not None:
                told = {"instructions": instructions.get(message["run_id"])} | message
                message, instructions[message["run_id"]] = told, told["instructions"]
            dumped.append(message)
        except (KeyError, TypeError, AttributeError, ValueError):  # edited by hand, or by a newer version
            dumped.append(None)
    try:
        return ModelMessagesTypeAdapter.validate_python(dumped)
    except ValidationError:
        return [_each(message, group) for message, group in zip(dumped, groups, strict=True)]


def _each(dumped: Row | None, group: Sequence[Row]) -> ModelMessage:
    try:
        return ModelMessagesTypeAdapter.validate_python([dumped])[0]
    except ValidationError:
        return _plain(group)


def _dumped(group: Sequence[Row]) -> Row:
    first = group[0]
    kept = _ours(first).get("message", {})
    if first["type"] != "assistant":
        parts = [_request_part(row) for row in group]
        return {**kept, "kind": "request", "parts": parts, "run_id": first.get("run_id")}
    calls = iter(tool_calls(first))
    parts = [_response_part(part, first, calls) for part in kept.get("parts", ())]
    if not kept:
        parts = [_text(first), *({"part_kind": "tool-call", **_named(call)} for call in calls)]
    return {**kept, "kind": "response", "parts": parts, "run_id": first.get("run_id")}


def _response_part(part: Row, row: Row, calls: Iterator[Row]) -> Row:
    if part["part_kind"] == "tool-call":
        return part | _named(next(calls, {}))
    if part["part_kind"] == "text" and "content" not in part:
        return part | _text(row)
    return part


def _text(row: Row) -> Row:
    return {"part_kind": "text", "content": _said(row)}


def _named(call: Row) -> Row:
    return {"tool_name": call["name"], "tool_call_id": call["id"], "args": _args(call)}


def _args(call: Row) -> str | Row | None:
    """What a model called with. Edited by hand, it may be what no call has."""
    args = call.get("args")
    return args if isinstance(args, str | dict) else None


def _request_part(row: Row) -> Row:
    content = row.get("content")
    part: Row = dict(_ours(row).get("part", {}))
    match row["type"]:
        case "user":
            said = content if _is_user_content(content) else _said(row)
            if context := row.get("context"):
                said = [*context, *(said if isinstance(said, list) else [said])]
            return {"part_kind": "user-prompt", **part, "content": said}
        case "tool":
            named = {"tool_name": row.get("tool_name") or "tool", "tool_call_id": row["tool_call_id"]}
            outcome = row.get("outcome") or "success"
            return {"part_kind": "tool-return", **part, **named, "outcome": outcome, "content": content}
        case _:
            return {"part_kind": "system-prompt", **part, "content": content} if is_system_prompt(row) else part


def _is_user_content(content: object) -> bool:
    """Whether it is a list of texts, files and the like, rather than some value that another program logged."""
    return isinstance(content, list) and all(
        isinstance(each, str) or (isinstance(each, dict) and "kind" in each) for each in content
    )


def _plain(group: Sequence[Row]) -> ModelMessage:
    """The message without what cannot be read of it."""
    first = group[0]
    if first["type"] == "assistant":
        calls = [ToolCallPart(call["name"], _args(call), tool_call_id=call["id"]) for call in tool_calls(first)]
        return ModelResponse([TextPart(_said(first)), *calls], run_id=first.get("run_id"))
    parts: list[ModelRequestPart] = []
    for row in group:
        match row["type"]:
            case "user":
                parts.append(UserPromptPart(_said(row)))
            case "tool":
                call_id = str(row.get("tool_call_id"))
                parts.append(ToolReturnPart(str(row.get("tool_name")), row.get("content"), tool_call_id=call_id))
            case _ if is_system_prompt(row):
                parts.append(SystemPromptPart(_said(row)))
    return ModelRequest(parts, run_id=first.get("run_id"))


def _said(row: Row) -> str:
    content = row.get("content")
    return content if isinstance(content, str) else "" if content is None else json.dumps(content, ensure_ascii=False)


def _ours(row: Row) -> Row:
    ours = row.get(_OURS)
    return ours if isinstance(ours, dict) else {}
