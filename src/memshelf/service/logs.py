"""Logs as one JSON object a line, on standard error. They name requests, routes, keys and stores by id: never a path, a
content, a name, a query or a secret."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from memshelf.service.call import Call

__all__ = ["RequestLog", "configure", "crashed", "places"]

_service = logging.getLogger("memshelf.service")


class RequestLog:
    """One line for each request. Those of one turn of the event loop are written together."""

    def __init__(self, stream: TextIO | None) -> None:
        """`None` writes nothing."""
        self._stream = stream
        self._lines: list[str] = []

    def request(self, call: Call, seconds: float) -> None:
        if self._stream is None:
            return
        who = ""
        if (caller := call.signed_in) is not None:
            who = f',"workspace_id":"{caller.workspace_id}","key_id":"{caller.key_id}"'
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        # Nothing here needs escaping: times, numbers, ids and names of our own, and a method that the parser knows.
        self._lines.append(
            f'{{"time":"{_time(time.time())}","level":"info","event":"request","request_id":"{call.request_id}",'
            f'"method":"{call.scope["method"]}","route":"{call.route}","status":{call.status},'
            f'"ms":{seconds * 1000:.2f}{who}}}\n'
        )

    def _flush(self) -> None:
        assert self._stream is not None  # noqa: S101  # else nothing was written
        lines, self._lines = self._lines, []
        self._stream.write("".join(lines))
        self._stream.flush()


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "facts", {}))
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["at"] = places(record.exc_info[2])
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def configure(level: str) -> None:
    """Send the service's logs, and the server's, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name in ("memshelf.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())


def crashed(error: BaseException, request_id: str) -> None:
    """Log where an unexpected error came from. Its message may quote what a client sent, so it is left out."""
    _service.error("crash", extra={"facts": {"request_id": request_id}}, exc_info=error)


def places(trace: TracebackType | None) -> list[str]:
    """The places of a traceback, without the lines and values there."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
