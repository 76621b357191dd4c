"""Answers that hold something else than a memory store gives: a clear refusal, and nothing of them gets through."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from hosted import URL, account, served
from memshelf import FileFormat, FileMount, MemoryStoreError, MemoryStoreFileStore, Origin, PlatformFileStore
from memshelf.files.tools import FileTools, failure
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.testing import refused

BOTH = pytest.mark.parametrize("kind", [MemoryStoreFileStore, PlatformFileStore])
WHO = Origin(run_id="run", tool_call_id="call")
ODD = ("\ud800", "../a", "/etc/passwd", "a\0b", "", None, True, -1, 1.5, [], {}, ["\ud800"], {"type": "memory"}, "9999")


class Liar:
    """A way to a service that changes what comes back: `turn` from an answer to another."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.turn = lambda status, answer: (status, answer)
        self.answers: list[object] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        reply = await self.client.request(
            request.method, request.url, headers=dict(request.headers), content=await request.aread()
        )
        self.answers.append(reply.json())
        status, answer = self.turn(reply.status_code, reply.json())
        return httpx2.Response(status, content=json.dumps(answer).encode())


@asynccontextmanager
async def lied_to(tmp_path, kind):
    engine = SqliteEngine(tmp_path / "memshelf.db", durable=False)
    async with served(engine) as client:
        key, store_id = await account(engine, tmp_path)
        liar = Liar(client)
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(liar)) as through:
            yield liar, lambda: kind(URL, key, store_id, client=through), kind(URL, key, store_id, client=client)


def places(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    if path:
        yield path
    for name, inner in (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else [])
    ):
        yield from places(inner, (*path, name))


def replaced(answer: object, path: tuple[object, ...], value: object) -> object:
    changed = copy.deepcopy(answer)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return changed


def call(store, number, version, fresh):
    """One of the things that a host or a model does with a store."""
    tools = FileTools([FileMount("m", store, "write")])
    calls = [
        lambda: store.list(),
        lambda: store.read("a.md"),
        lambda: store.changes(None),
        lambda: store.write(fresh, "x", expected=None, origin=Origin()),
        lambda: store.write("a.md", "x", expected="memver_other", origin=WHO),
        lambda: store.move("a.md", "in/the/way", expected=version, origin=WHO),
        lambda: tools.view("m", ""),
        lambda: tools.view("m", "a.md"),
        lambda: tools.grep("m", "tea"),
        lambda: tools.create("m", "a.md", "x", origin=Origin()),
    ]
    if isinstance(store, MemoryStoreFileStore):
        calls += [
            lambda: store.versions(),
            lambda: store.search("tea", regex=False, case_sensitive=True, path="", limit=5),
            lambda: store.read_version(version),
            lambda: store.replayed(WHO),
        ]
    return calls[number % len(calls)]()


@BOTH
async def test_whatever_stands_in_an_answer_it_is_used_or_refused(tmp_path, kind):
    """In one of the answers to each call, one field or more hold something odd."""
    chance = random.Random(20261130)
    async with lied_to(tmp_path, kind) as (liar, new, plain):
        version = await plain.write("a.md", "---\ndescription: d\n---\ntea\n", expected=None, origin=WHO)
        await plain.write("in/the/way/b", "x", expected=None, origin=Origin())

        def lie(status, answer):
            if chance.random() < 0.3:
                return status, answer
            for _ in range(chance.choice((1, 1, 1, 3))):
                answer = replaced(answer, chance.choice([*places(answer)]), chance.choice(ODD))
            return status if chance.random() < 0.9 else chance.choice((200, 301, 400, 404, 409, 500)), answer

        liar.turn = lie
        outcomes = set()
        for number in range(280):
            try:
                result = await call(new(), number, version, f"new/{number}")
            except MemoryStoreError as error:
                outcomes.add(error.code)
                result = failure(error, FileFormat())
            else:
                outcomes.add("done")
            assert "\\ud800" not in ascii(result)
        assert {"done", "unavailable", "write_unconfirmed"} < outcomes


@BOTH
async def test_a_path_that_would_lead_out_of_a_memory_is_in_no_listing(tmp_path, kind):
    async with lied_to(tmp_path, kind) as (liar, new, plain):
        await plain.write("a.md", "tea", expected=None, origin=Origin())
        for path in ("../a.md", "a/../../b", "/etc/passwd", "//etc/passwd", "a//b", "a/", ".", "a\0b"):
            prefix = "" if kind is MemoryStoreFileStore else "/"

            def elsewhere(status, answer, path=prefix + path):
                for item in answer.get("data") or []:
                    item["path"] = path
                return status, answer

            liar.turn = elsewhere
            await refused("unavailable", new().list())


async def test_another_file_than_the_one_that_was_asked_for_is_not_read(tmp_path):
    async with lied_to(tmp_path, MemoryStoreFileStore) as (liar, new, plain):
        await plain.write("a.md", "tea", expected=None, origin=Origin())
        liar.turn = lambda status, answer: (status, {**answer, "path": "b.md"})
        await refused("unavailable", new().read("a.md"))


async def test_a_purge_goes_on_when_others_delete_and_says_when_it_ends_in_the_midst(tmp_path):
    async with lied_to(tmp_path, PlatformFileStore) as (liar, new, plain):
        for path in ("a", "b", "c"):
            await plain.write(path, "tea", expected=None, origin=Origin())
        deleted = []

        def gone(status, answer):
            if answer.get("type") != "memory_deleted":
                return status, answer
            deleted.append(answer["id"])
            return 404, {"type": "error", "error": {"type": "not_found_error", "message": "gone"}}

        liar.turn = gone
        await new().purge()
        assert len(deleted) == 3
        assert await plain.list() == []

        await plain.write("d", "tea", expected=None, origin=Origin())
        liar.turn = lambda status, answer: (
            (429, {"error": {"message": "slow down"}}) if answer.get("type") == "memory_version" else (status, answer)
        )
        error = await refused("write_unconfirmed", new().purge())
        assert "slow down" in error.message
        assert await plain.list() == []
        error = await refused("unavailable", new().purge())
        assert "slow down" in error.message
