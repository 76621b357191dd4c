"""A session as Markdown, to read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from memshelf.threads.rows import Row, tool_calls

__all__ = ["transcript"]

_SPEAKERS = {"user": "User", "assistant": "Assistant", "system": "System", "compact_boundary": "Summary"}


def transcript(rows: Iterable[Row]) -> Iterator[str]:
    """Heading and text of every message; the calls of a model and their results as code. Events are left out."""
    for row in rows:
        time = str(row.get("timestamp", ""))[:19].replace("T", " ")
        match row["type"]:
            case "tool":
                yield f"## Result of {row.get('tool_name')}\n\n{_code(_text(row.get('content')))}\n\n"
            case "user" | "assistant" | "system" | "compact_boundary" as type_:
                said = [_text(row.get("content")), *(_code(_call(call)) for call in tool_calls(row))]
                yield "\n\n".join([f"## {_SPEAKERS[type_]} ({time})", *filter(None, said)]) + "\n\n"


def _text(content: object) -> str:
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)


def _call(call: Row) -> str:
    args = call.get("args")
    return f"{call.get('name')}({args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)})"


def _code(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
