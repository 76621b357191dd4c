"""The published description of the API says what the service does: no more and no less."""

from __future__ import annotations

import itertools
import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings, strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from serving import Service

from memshelf.service.app import OPERATIONS
from memshelf.service.openapi import described
from memshelf.service.operation import Operation

SCHEMA = schemathesis.openapi.from_dict(described(OPERATIONS))
DESCRIBED = [result.ok() for result in SCHEMA.get_all_operations()]
pytestmark = pytest.mark.parametrize(
    "engine", ["sqlite"], indirect=True, scope="session"
)  # descriptions know no engine

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]


@pytest.fixture
def ids(service: Service) -> dict[str, str]:
    """Something that is there, for every kind of id in a path."""
    store = service.store()
    memory = service.memory(store, "/a/b")
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "newer"})
    body = {"agent": "a", "environment_id": "e", "resources": [{"type": "memory_store", "memory_store_id": store}]}
    session = service.post("/v1/sessions", body).json["id"]
    return {
        "memory_store_id": store,
        "memory_id": memory["id"],
        "memory_version_id": memory["memory_version_id"],
        "session_id": session,
    }


@pytest.mark.parametrize("operation", DESCRIBED, ids=lambda operation: operation.label)
def test_every_answer_is_as_described(operation, service, ids):
    """Requests that fit the description and requests that do not, on resources that are there and that are not."""

    @settings(max_examples=12, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(data=st.data(), real=st.booleans())
    def check(data, real):
        mode = data.draw(st.sampled_from(list(schemathesis.GenerationMode)))
        case = data.draw(operation.as_strategy(generation_mode=mode))
        checks = list(CHECKS)
        for name in ("authorization", "x-api-key"):  # with a drawn key, all that there is to see is a 401
            (case.headers or {}).pop(name, None)
        if real:
            case.path_parameters = {name: ids[name] for name in case.path_parameters or {}}
        elif mode is schemathesis.GenerationMode.NEGATIVE:
            checks.append(negative_data_rejection)
        case.call_and_validate(base_url=service.url, headers={"authorization": f"Bearer {service.key}"}, checks=checks)

    check()


def test_the_description_is_published(service):
    assert service.get("/openapi.json", key="").json == json.loads(json.dumps(described(OPERATIONS)))


def test_every_operation_is_described_once(engine):
    described_ids = [operation.definition.raw["operationId"] for operation in DESCRIBED]
    assert len(described_ids) == len(OPERATIONS) == len(set(described_ids))
    assert all(operation.summary for operation in OPERATIONS)


def paths_of(operation: Operation, ids: dict[str, str]) -> str:
    path = operation.path
    for name, id in ids.items():
        path = path.replace(f"{{{name}}}", id)
    return path


@pytest.mark.parametrize("base", ["/v1", "/api/agent/managed/v1"])
def test_every_operation_has_the_error_envelope(service, base):
    """Without a key 401, with a wrong method 405, on what is not there 404, each with the request's id."""
    nowhere = dict.fromkeys(("memory_store_id", "memory_id", "memory_version_id", "session_id"), "nowhere")
    for operation in OPERATIONS:
        path = base + paths_of(operation, nowhere)
        assert service.call(operation.method, path, key="").error == "authentication_error"
        refused = service.call("PUT", path)
        assert (refused.status, refused.error) == (405, "invalid_request_error")
        assert operation.method in refused.headers["allow"].split(", ")
        body = {"unknown": 1} if operation.method == "POST" else None
        answered = service.call(operation.method, path, body)
        if answered.status == 200:
            assert operation.method == "GET"
            assert "{" not in operation.path
        else:
            assert answered.status in (400, 404)
            assert answered.error in ("invalid_request_error", "not_found_error")


def test_the_statuses_of_errors_are_all_described(engine):
    for path, method in itertools.product(SCHEMA.raw_schema["paths"].values(), ("get", "post", "delete")):
        if method in path:
            assert {"400", "401", "403", "404", "408", "409", "413", "415", "429", "431", "500", "503", "504"} < set(
                path[method]["responses"]
            )
