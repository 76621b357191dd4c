"""A loopback server that speaks the OpenAI Responses API, whole or streamed, from a script."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import asynccontextmanager


def message(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


def function_call(name, call_id, **arguments):
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments, ensure_ascii=False),
        "status": "completed",
    }


class ResponsesApi:
    """Answers each request with the next list of output items, or an HTTP status, and remembers what was asked."""

    def __init__(self, *replies):
        self._replies = list(replies)
        self._ids = itertools.count(1)
        self.requests = []
        self.bodies = []
        self.authorizations = []
        self.connections = 0

    @asynccontextmanager
    async def serving(self):
        """The base URL of the running server."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _connection(self, reader, writer):
        self.connections += 1
        try:
            while (head := await self._head(reader)) is not None:
                line, headers = head
                body = await reader.readexactly(int(headers["content-length"]))
                self.bodies.append(body)
                asked = json.loads(body)
                assert line.startswith("POST /v1/responses ")
                self.requests.append(asked)
                self.authorizations.append(headers["authorization"])
                writer.write(self._answer(asked, self._replies.pop(0)))
                await writer.drain()
        finally:
            writer.close()

    @staticmethod
    async def _head(reader):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            return None
        line, *fields = head.strip().split("\r\n")
        return line, {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}

    def _answer(self, asked, items):
        if isinstance(items, int):
            return _http("application/json", b'{"error": {"message": "try again"}}', items)
        prefix = {"message": "msg", "function_call": "fc"}
        output = [{"id": f"{prefix[item['type']]}_{next(self._ids)}", **item} for item in items]
        response = {
            "id": f"resp_{next(self._ids)}",
            "object": "response",
            "created_at": 1_700_000_000,
            "status": "completed",
            "model": asked["model"],
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 5,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 15,
            },
        }
        if not asked.get("stream"):
            return _http("application/json", json.dumps(response).encode())
        events = [
            {**event, "sequence_number": number, "type": event["type"]}
            for number, event in enumerate(_events(response, output))
        ]
        return _http(
            "text/event-stream",
            "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode(),
        )


def _events(response, output):
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(output):
        at = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "function_call":
            started = {**item, "arguments": "", "status": "in_progress"}
            yield {"type": "response.output_item.added", "output_index": index, "item": started}
            for piece in _halves(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
        else:
            started = {**item, "content": [], "status": "in_progress"}
            yield {"type": "response.output_item.added", "output_index": index, "item": started}
            [part] = item["content"]
            at = {**at, "content_index": 0}
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            for piece in _halves(part["text"]):
                yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **at, "part": part}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _halves(text):
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def _http(content_type, payload, status=200):
    head = f"HTTP/1.1 {status} -\r\nContent-Type: {content_type}\r\nContent-Length: {len(payload)}\r\n\r\n"
    return head.encode() + payload
