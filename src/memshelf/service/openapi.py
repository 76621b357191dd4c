"""The published description of the API, made from the operations themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from memshelf import __version__
from memshelf.service.operation import Operation
from memshelf.service.wire.answers import ErrorAnswer

__all__ = ["described"]

Json = dict[str, Any]  # JSON has many types

_REF = "#/components/schemas/{model}"
_ABOUT = """\
Named memory stores, memories, immutable versions, and sessions that mount stores.

The same API speaks two dialects. Requests with `zai-version` and `zai-beta` headers are answered as the Zhipu platform
answers them, in the protocol that `zai-beta` names; all others as Anthropic's. Operations below `/v1/memshelf` are
memshelf's own.

HEAD is answered as GET is, without the body.
"""
_ERRORS = {
    "400": "The request cannot succeed as it stands.",
    "401": "There is no valid API key.",
    "403": "The caller may not do this.",
    "404": "There is no such resource in the caller's workspace.",
    "408": "The body did not arrive in time.",
    "409": "The resource is in another state than the request expects.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "429": "Too many requests.",
    "431": "The head of the request is too large.",
    "500": "The service made a mistake.",
    "503": "The database cannot be used now.",
    "504": "A change may or may not have been made.",
}


def described(operations: Iterable[Operation]) -> Json:
    """The document, for OpenAPI 3.1."""
    operations = tuple(operations)
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(ErrorAnswer, "serialization")]
    for operation in operations:
        models.append((operation.answer, "serialization"))
        if operation.body is not None:
            models.append((operation.body, "validation"))
    refs, definitions = models_json_schema(list(dict.fromkeys(models)), ref_template=_REF)
    paths: Json = {}
    for operation in operations:
        paths.setdefault(f"/v1{operation.path}", {})[operation.method.lower()] = _operation(operation, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": "memshelf", "version": __version__, "description": _ABOUT},
        "servers": [{"url": "/"}, {"url": "/api/agent/managed"}],
        "security": [{"bearer": []}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _operation(operation: Operation, refs: Mapping[Any, Json]) -> Json:
    answer = _json_of(refs[operation.answer, "serialization"])
    error = _json_of(refs[ErrorAnswer, "serialization"])
    statuses = ["200", "201"] if operation.creates else ["200"]
    document: Json = {
        "operationId": operation.handler.__name__.strip("_") + "_" + operation.path.strip("/").replace("/", "_"),
        "summary": operation.summary,
        "tags": [_tag(operation.path)],
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation.query)],
        "responses": {
            **{status: {"description": "Done.", "content": answer} for status in statuses},
            **{status: {"description": text, "content": error} for status, text in _ERRORS.items()},
        },
    }
    if operation.body is not None:
        document["requestBody"] = {
            "required": bool(operation.body.model_json_schema().get("required")),
            "content": _json_of(refs[operation.body, "validation"]),
        }
    document["operationId"] = document["operationId"].replace("{", "").replace("}", "")
    return document


def _json_of(schema: Json) -> Json:
    return {"application/json": {"schema": schema}}


def _tag(path: str) -> str:
    named = [part for part in path.split("/") if part and not part.startswith("{")]
    if named[0] == "memshelf":
        return "memshelf extensions"
    return named[1] if len(named) > 1 and named[1] in ("memories", "memory_versions") else named[0]


def _path_parameters(path: str) -> list[Json]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(query: type[BaseModel] | None) -> list[Json]:
    if query is None:
        return []
    schema = query.model_json_schema()
    required = schema.get("required", ())
    parameters = []
    for name, field in schema["properties"].items():
        parameter: Json = {"name": name, "in": "query", "required": name in required}
        if "description" in field:
            parameter["description"] = field["description"]
        parameter["schema"] = _present(field)
        parameters.append(parameter)
    return parameters


def _present(field: Json) -> Json:
    """The schema of a parameter that is there: it cannot be null."""
    options = [option for option in field.get("anyOf", ()) if option != {"type": "null"}]
    kept = {key: value for key, value in field.items() if key not in ("anyOf", "title", "description")}
    if kept.get("default", ...) is None:
        del kept["default"]
    return {**kept, **options[0]} if options else kept
