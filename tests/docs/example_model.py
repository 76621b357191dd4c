"""A model for the documents' examples: an OpenAI API on this machine that remembers what it is asked to remember."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "agent"))
from responses_api import ResponsesApi, function_call, message
from threaded import in_a_thread

FACT = "Order green tea at the café. 我在咖啡馆该点什么？绿茶。"
"""What it remembers, in words that a search by words finds."""
REMEMBER = ("emember", "记住")


class ExampleModel(ResponsesApi):
    """Asked to remember, it writes to the first memory that it may write; else it has an answer for all."""

    def __init__(self) -> None:
        super().__init__()
        self._replies = self  # there is always a next one, made from the question

    def pop(self, _: int) -> None:
        return None

    def _answer(self, asked: dict[str, Any], _: object) -> bytes:
        answer: bytes = super()._answer(asked, self._items(asked))
        return answer

    def _items(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        last = asked["input"][-1]
        said = json.dumps(last, ensure_ascii=False) if last.get("role") == "user" else ""
        tools = {tool["name"]: tool["parameters"] for tool in asked.get("tools", ())}
        name = f"noted-{len(self.requests)}"
        written = {
            "memory_file_create": {"path": f"{name}.md", "content": "As asked.\n"},
            "memory_record_add": {"text": FACT},
        }
        write = next((tool for tool in written if tool in tools), None)
        if write is None or not any(word in said for word in REMEMBER):
            return [message("Noted.")]
        memory = tools[write]["properties"]["memory"]["enum"][0]
        return [function_call(write, f"call_{name}", memory=memory, **written[write])]


@contextmanager
def serving() -> Iterator[tuple[ExampleModel, dict[str, str]]]:
    """The model, and the environment in which the OpenAI provider finds it."""
    model = ExampleModel()
    with in_a_thread(model.serving()) as url:
        yield model, {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-on-this-machine"}
