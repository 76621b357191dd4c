"""Whatever many callers do to a store at once, each is answered as if the calls had been made one after the other, each
at some moment between its beginning and its end. The history says in which order: so each answer is compared with what
a model in memory gives, for a change at its place in the history, for anything else anywhere it can have been."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import math
import random
import secrets
import time
from typing import Any, NamedTuple

import pytest
from workspace_of_tests import WORKSPACE

from forked import finish, fork
from memshelf.errors import MemoryStoreError
from memshelf.limits import StoreLimits
from memshelf.origin import Origin
from memshelf.storage import postgres_writer
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.catalogue import Stores
from memshelf.stores.files import StoreFiles
from memshelf.stores.history import History
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import Verification

PATHS = ("/a", "/a/b", "/b", "/c")
LIMIT = 3
ROUNDS = 25


class Call(NamedTuple):
    """One call, from a process to the test. `answer` is `None` when the caller was cancelled and knows of nothing."""

    id: str
    kind: str
    arguments: dict[str, Any]
    start: float
    end: float
    answer: Any


class Stands(NamedTuple):
    path: str
    text: str
    version: str | None


def model(state: dict[str, Stands], kind: str, arguments: dict[str, Any]) -> Any:
    """The answer to a call where the memories stand so, by id: a code, what is there, or how the memory stands after
    a change, without its version."""
    match kind:
        case "page":
            return sorted(state.values())
        case "retrieve":
            return state.get(arguments["id"], "not_found")
        case "restore" if arguments["id"] not in state:
            kind, arguments = "create", {"path": arguments["path"], "text": arguments["text"]}
    own, path, text = arguments.get("id"), arguments.get("path"), arguments.get("text")
    stands = state.get(own)
    if kind == "create" and len(state) >= LIMIT:
        return "memory_full"
    if kind != "create":
        if stands is None:
            return "not_found"
        path, text = path or stands.path, text or stands.text
        if kind != "delete" and (path, text) == stands[:2]:
            return stands
        if arguments.get("sha256") not in (None, sha256(stands.text)):
            return "version_mismatch"
    if kind == "delete":
        return "deleted"
    others = [each.path for id, each in state.items() if id != own]
    if any(f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/") for other in others):
        return "already_exists"
    return Stands(path, text, None)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def check(calls, versions):
    """`versions` are all there are, the oldest first."""
    by_id = {call.id: call for call in calls}
    states, places = [{}], {}
    for version in versions:
        state = dict(states[-1])
        before = state.pop(version.file_id, None)
        assert version.parent_id == (before.version if before is not None else None), version
        if version.operation != "deleted":
            state[version.file_id] = Stands(f"/{version.path}", version.text, version.id)
        assert places.setdefault(version.origin.principal_id, len(states)) == len(states), "made twice"
        states.append(state)
    made_by = [by_id[version.origin.principal_id] for version in versions]
    # Between which times the store can have come to stand so: no sooner than what came before it was begun, and no
    # later than what came after it was answered.
    earliest = [-math.inf, *itertools.accumulate((call.start for call in made_by), max)]
    latest = [*itertools.accumulate((call.end for call in reversed(made_by)), min)][::-1]
    for number, call in enumerate(made_by, start=1):
        assert earliest[number] <= latest[number - 1], f"{call} comes after what began when it had been answered"
    for call in calls:
        if call.answer is None and call.id not in places:
            continue
        if (place := places.get(call.id)) is not None:
            gives = model(states[place - 1], call.kind, call.arguments)
            after = states[place].get(versions[place - 1].file_id)
            assert gives == (after._replace(version=None) if after is not None else "deleted"), call
            assert call.answer in (None, after or "deleted"), f"{after} came of {call}"
            continue
        possible = [
            state
            for state, since, until in zip(states, earliest, [*latest, math.inf], strict=True)
            if since <= call.end and call.start <= until
        ]
        assert any(model(state, call.kind, call.arguments) == call.answer for state in possible), (call, possible)


class Caller:
    """Makes calls and says of each what came of it. What it knows of the store is from answers, so it may be old."""

    def __init__(self, name, source, shelf, store, report):
        self.ids = (f"{name}.{number}" for number in itertools.count())
        self.source, self.report = source, report
        self.memories = Memories(shelf, WORKSPACE, store)
        self.history = History(shelf, WORKSPACE, store)
        self.known = {}
        self.versions = []

    def found(self, memory, text):
        stands = Stands(memory.path, memory.content if memory.content is not None else text, memory.version_id)
        self.known[memory.id] = stands
        self.versions = [*self.versions[-20:], (memory.id, stands)]
        return stands

    async def call(self):
        id, choice = next(self.ids), self.source.choice
        kind = choice(["create", "create", *["update"] * 5, "delete", "restore", "retrieve", "page"])
        if not self.known and kind != "create":
            kind = "page"
        arguments = {}
        if kind not in ("create", "page"):
            arguments["id"] = choice(list(self.known))
            if kind in ("update", "delete") and choice([True, False, False]):
                arguments["sha256"] = sha256(self.known[arguments["id"]].text)
        if kind == "restore":
            arguments["id"], stands = choice(self.versions)
            arguments |= {"path": stands.path, "text": stands.text}
        if kind == "create" or (kind == "update" and choice([True, False, False])):
            arguments["path"] = choice(PATHS)
        if kind == "create" or (kind == "update" and ("path" not in arguments or choice([True, False]))):
            arguments["text"] = choice([id, id, id, "again"])
        making = asyncio.ensure_future(self.make(kind, Origin(principal_id=id), **arguments))
        if self.source.random() < 0.1:
            asyncio.get_running_loop().call_later(self.source.random() * 0.005, making.cancel)
        start, end = time.monotonic(), math.inf
        try:
            answer = await making
            end = time.monotonic()
        except MemoryStoreError as error:
            answer, end = error.code, time.monotonic()
        except asyncio.CancelledError:
            answer = None
        self.report(json.dumps(Call(id, kind, arguments, start, end, answer)))

    async def make(self, kind, origin, id="", path=None, text=None, sha256=None):
        match kind:
            case "create":
                return self.found(await self.memories.create(path, text, origin=origin), text)
            case "update":
                updated = self.memories.update(id, content=text, path=path, expected_sha256=sha256, origin=origin)
                return self.found(await updated, text)
            case "delete":
                await self.memories.delete(id, expected_sha256=sha256, origin=origin)
                return "deleted"
            case "restore":
                version = next(stands.version for of, stands in self.versions if (of, *stands[:2]) == (id, path, text))
                return self.found(await self.history.restore(version, origin=origin), text)
            case "retrieve":
                return self.found(await self.memories.retrieve(id), None)
            case _:
                page = await self.memories.page(limit=100, content=True)
                self.known = {}
                return sorted(self.found(memory, None) for memory in page.items)


@pytest.fixture(params=["sqlite", "postgresql"])
def make_engine(request, tmp_path):
    if request.param == "sqlite":
        return lambda: SqliteEngine(tmp_path / "memshelf.db", durable=False)
    dsn, schema = request.getfixturevalue("postgres_server").dsn, f"linear_{secrets.token_hex(6)}"
    return lambda: PostgresEngine(dsn, schema)


def process(make_engine, store, name, tasks, seed):
    """What one of several processes does."""

    async def run(report):
        postgres_writer._CAUTION = 0
        shelf = Shelf(make_engine(), StoreLimits(memories=LIMIT))

        async def task(number):
            source = random.Random(f"{seed} {name} {number}")
            caller = Caller(f"{name}.{number}", source, shelf, store, report)
            for _ in range(ROUNDS):
                await asyncio.gather(*(caller.call() for _ in range(source.choice([1, 1, 4]))))

        await asyncio.gather(*(task(number) for number in range(tasks)))
        await shelf.engine.aclose()

    return lambda report: asyncio.run(run(report))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("processes", "tasks"), [(1, 10), (3, 1), (3, 4)])
def test_every_answer_is_true_at_its_place_in_the_history(make_engine, processes, tasks, seed):
    async def begin():
        engine = make_engine()
        await engine.write(
            lambda transaction: transaction.execute("INSERT INTO workspaces VALUES ($1, $2, 0)", WORKSPACE, "default")
        )
        store = await Stores(Shelf(engine), WORKSPACE).create("Notes")
        await engine.aclose()
        return store.id

    async def end():
        shelf = Shelf(make_engine())
        page = await StoreFiles(shelf, WORKSPACE, store).versions(None, None, 10_000, None)
        report = await Verification(shelf, WORKSPACE, store).verify()
        await shelf.engine.aclose()
        return page.versions[::-1], report

    store = asyncio.run(begin())
    children = [fork(process(make_engine, store, f"{number}", tasks, seed)) for number in range(processes)]
    lines = [line for report in finish(children) for line in report.splitlines()]
    versions, report = asyncio.run(end())
    assert report.intact, report.problems
    check([_read(*json.loads(line)) for line in lines], versions)


def _read(*fields):
    *others, answer = fields
    if isinstance(answer, list):
        listed = [Stands(*each) for each in answer] if all(isinstance(each, list) for each in answer) else None
        answer = listed if listed is not None else Stands(*answer)
    return Call(*others, answer)
