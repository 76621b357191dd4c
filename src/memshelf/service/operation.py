"""The operations of the API: what each takes and answers, and how a request comes to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_origin
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from memshelf.errors import MemoryStoreError
from memshelf.service.body import read_body
from memshelf.service.call import Call
from memshelf.service.errors import ApiError, invalid_request, not_found, status_of
from memshelf.service.subject import require_there

__all__ = ["Handler", "Method", "Operation", "Resource", "Scoped"]

Method: TypeAlias = Literal["GET", "POST", "DELETE"]
Handler: TypeAlias = Callable[..., Awaitable[Any]]  # (call), and then query and body if the operation has them
Scoped: TypeAlias = Literal["workspace", "session", "store_read", "store_write"]


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    `query` and `body` are models of what it takes, `answer` of what it answers; the handler returns the answer as JSON
    values. `scoped` says what a session's token may do with it: nothing (`workspace`), use it on its own session, or on
    a store that it mounts. With `creates`, the answer has the status of a creation.
    """

    method: Method
    path: str
    handler: Handler
    answer: type[BaseModel]
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    scoped: Scoped = "workspace"
    creates: bool = False

    @cached_property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").strip().partition("\n")[0]

    @cached_property
    def _lists(self) -> frozenset[str]:
        """The query parameters that may stand more than once, or with `[]`."""
        fields = self.query.model_fields if self.query is not None else {}
        return frozenset(
            field.alias or name for name, field in fields.items() if get_origin(field.annotation) in (list, tuple)
        )

    @cached_property
    def _single(self) -> frozenset[str]:
        """The query parameters that stand once."""
        fields = self.query.model_fields if self.query is not None else {}
        return frozenset(field.alias or name for name, field in fields.items()) - self._lists

    @cached_property
    def _unasked(self) -> BaseModel | None:
        """What a request without a query says, if it may be without one."""
        try:
            return self.query.model_validate({}) if self.query is not None else None
        except ValidationError:
            return None

    async def answer_call(self, call: Call) -> Any:
        self._authorise(call)
        try:
            return await self._answered(call)
        except (ApiError, MemoryStoreError) as refusal:
            if status_of(refusal) == 400:  # what is not there is 404, whatever is asked of it
                await require_there(call)
            raise

    async def _answered(self, call: Call) -> Any:
        arguments: list[BaseModel] = []
        if self.query is not None:
            unasked = self._unasked if not call.scope["query_string"] else None
            arguments.append(unasked or _validated(self.query.model_validate, self._query(call)))
        if self.body is not None:
            data = await read_body(call)
            arguments.append(_validated(self.body.model_validate_json, data or b"{}"))
        return await self.handler(call, *arguments)

    def _query(self, call: Call) -> dict[str, Any]:
        values: dict[str, Any] = {}
        text: bytes = call.scope["query_string"]
        if not text:
            return values
        try:
            pairs = parse_qsl(text.decode(), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError:
            raise invalid_request("The query is not UTF-8, percent-encoded.") from None
        for name, value in pairs:
            if name.removesuffix("[]") in self._lists:
                values.setdefault(name.removesuffix("[]"), []).append(value)
            elif name in values and name in self._single:
                raise invalid_request(f"{name}: it stands once in the query.")
            else:
                values[name] = value
        return values

    def _authorise(self, call: Call) -> None:
        mounts = call.caller.mounts
        if mounts is None:
            return
        if self.scoped == "workspace":
            raise ApiError(403, "permission_error", "A session's token cannot do this: use an API key.")
        if self.scoped == "session":
            if call.path["session_id"] != call.caller.session_id:
                raise not_found(f"There is no session {call.path['session_id']}.")
            return
        access = mounts.get(call.path["memory_store_id"])
        if access is None:
            raise not_found(f"There is no memory store {call.path['memory_store_id']}.")
        if self.scoped == "store_write" and access != "read_write":
            raise ApiError(403, "permission_error", "The session mounts this memory store read_only.")


class Resource:
    """All operations of one path. `route` is how it is named in metrics and logs. What takes GET takes HEAD, which is
    answered as GET is, without the body."""

    def __init__(self, route: str, operations: Mapping[str, Operation]) -> None:
        self.route = route
        self._operations = {**operations, "HEAD": operations["GET"]} if "GET" in operations else operations
        self._allowed = ", ".join(sorted(self._operations))

    def operation(self, method: str) -> Operation:
        """405 when there is none."""
        found = self._operations.get(method)
        if found is None:
            headers = {"allow": self._allowed}
            raise ApiError(405, "invalid_request_error", f"This path takes {self._allowed}.", headers=headers)
        return found


def _validated(validate: Callable[[Any], BaseModel], data: object) -> BaseModel:
    try:
        return validate(data)
    except ValidationError as error:
        raise invalid_request(_explained(error)) from None


_SHOWN_PROBLEMS = 3
_SHOWN_CHARS = 100


def _explained(error: ValidationError) -> str:
    """What is wrong, by field. Values are left out: they may be anything, and long."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    shown = []
    for problem in problems[:_SHOWN_PROBLEMS]:
        field = ".".join(str(part) for part in problem["loc"]) or "body"
        message = "Unknown field" if problem["type"] == "extra_forbidden" else problem["msg"]
        shown.append(f"{field[:_SHOWN_CHARS]}: {message}")
    more = len(problems) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "") + "."
