"""Logs as one JSON object a line, on standard error. They name requests, routes, keys and stores by id: never a path, a
content, a name, a query or a secret."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType

__all__ = ["access", "configure", "crashed", "places"]

access = logging.getLogger("memshelf.service.access")
_service = logging.getLogger("memshelf.service")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, object] = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
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
