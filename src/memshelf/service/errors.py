"""What goes wrong, as answers: one envelope for every error.

::

    {"type": "error", "error": {"type": ..., "message": ..., ...}, "request_id": "req_..."}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.stores.model import PathConflictError

if TYPE_CHECKING:
    from memshelf.service.dialect import Dialect

__all__ = [
    "ApiError",
    "ErrorType",
    "answer_to",
    "ended",
    "envelope",
    "internal_error",
    "invalid_request",
    "no_such_path",
    "not_found",
    "status_of",
]

ErrorType: TypeAlias = Literal[
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "memory_path_conflict_error",
    "memory_precondition_failed_error",
    "conflict_error",
    "request_too_large",
    "rate_limit_error",
    "timeout_error",
    "api_error",
    "overloaded_error",
]

_ANSWERS: dict[ErrorCode, tuple[int, ErrorType]] = {
    "invalid_path": (400, "invalid_request_error"),
    "invalid_file": (400, "invalid_request_error"),
    "invalid_pattern": (400, "invalid_request_error"),
    "invalid_value": (400, "invalid_request_error"),
    "invalid_cursor": (400, "invalid_request_error"),
    "too_large": (400, "invalid_request_error"),
    "memory_full": (400, "invalid_request_error"),
    "store_archived": (400, "invalid_request_error"),
    "forbidden": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "memory_deleted": (404, "not_found_error"),
    "already_exists": (409, "memory_path_conflict_error"),
    "version_mismatch": (409, "memory_precondition_failed_error"),
    "conflict": (409, "conflict_error"),
    "unavailable": (503, "api_error"),
    "write_unconfirmed": (504, "timeout_error"),
}

_SOON = {"retry-after": "1"}


class ApiError(Exception):
    """An answer that is an error. `details` stand beside its type and message."""

    def __init__(
        self,
        status: int,
        type: ErrorType,
        message: str,
        *,
        details: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type: ErrorType = type
        self.message = message
        self.details = dict(details or {})
        self.headers = dict(headers or {})


def invalid_request(message: str) -> ApiError:
    return ApiError(400, "invalid_request_error", message)


def not_found(message: str) -> ApiError:
    return ApiError(404, "not_found_error", message)


def no_such_path() -> ApiError:
    # Most often a client whose own address has the `/v1` that it puts before each path once more.
    said = "There is nothing at this path. The API is below /v1; the address that a client is given ends before it."
    return not_found(said)


def internal_error() -> ApiError:
    return ApiError(500, "api_error", "Internal error; the service's log has it under this request id.")


def ended(*, changing: bool) -> ApiError:
    """The answer to a request that was begun, when the service ends and waits no longer. `changing` says that it may
    have changed something."""
    if not changing:
        return ApiError(503, "api_error", "The service ended before it could do this; nothing changed.", headers=_SOON)
    message = (
        "The service ended before it confirmed the change: it may or may not have happened. Read before you write."
    )
    return ApiError(504, "timeout_error", message)


def status_of(refusal: ApiError | MemoryStoreError) -> int:
    return refusal.status if isinstance(refusal, ApiError) else _answer_of(refusal)[0]


def _answer_of(error: MemoryStoreError) -> tuple[int, ErrorType]:
    return _ANSWERS.get(error.code, (500, "api_error"))


def answer_to(error: MemoryStoreError, dialect: Dialect) -> ApiError:
    """The answer that stands for a refusal. A conflict is not to be tried again as it is, and what a database could not
    do is to be tried again soon."""
    status, type = _answer_of(error)
    if status != 409:
        return ApiError(status, type, error.message, headers=_SOON if status == 503 else {})
    details = {}
    if isinstance(error, PathConflictError):
        details = {"conflicting_memory_id": error.memory_id, "conflicting_path": error.path}
    if dialect.old:
        type = "invalid_request_error"
    return ApiError(status, type, error.message, details=details, headers={"x-should-retry": "false"})


def envelope(error: ApiError, request_id: str) -> dict[str, object]:
    return {
        "type": "error",
        "error": {"type": error.type, "message": error.message, **error.details},
        "request_id": request_id,
    }
