"""Every text of record memory that a model reads, byte for byte. tests/golden/README.md says how to update them."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pydantic_ai import Agent
from scripted import Script, recalls, record_call, returns

from golden_files import compare, tools
from memshelf import MemoryStoreError
from memshelf.agent.capabilities.records import RecordMemoryCapability
from memshelf.limits import RecordMemoryLimits
from memshelf.origin import Origin
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.mount import RecordMount
from memshelf.storage.ids import Mint

_MINT = Mint(clock=lambda: datetime(2026, 5, 20, 12, tzinfo=UTC))


def _compare(name, text):
    """Ids and cursors are the store's; everything else stands as it is sent."""
    text = re.sub(r"\brecs_[0-9a-f]{32}:", "CURSOR:", text)
    ids = dict.fromkeys(re.findall(r"\brec_[0-9a-f]{32}\b", text))
    for number, id in enumerate(ids, start=1):
        text = text.replace(id, f"rec_{number}")
    text = re.sub(r'"score": ?0\.\d+', '"score":0.5', text)
    compare(f"records/{name}", text)


def _store():
    return InProcessRecordStore(embedder=None, mint=_MINT)


async def _asked(*mounts, prompt="hi", **options):
    script = Script("hello")
    await Agent(script.model, capabilities=[RecordMemoryCapability(mounts, **options)]).run(prompt)
    return script


async def test_instructions():
    script = await _asked(
        RecordMount("facts", _store(), "write"),
        RecordMount("team", _store(), "read", guide="Decisions of <our> team & their reasons.\n"),
        RecordMount("plain", _store(), "write", guide=""),
    )
    _compare("instructions.txt", script.infos[0].instructions)


async def test_instructions_without_a_way_to_write():
    script = await _asked(RecordMount("facts", _store(), "write"), tools=("search", "list"))
    _compare("instructions-reading.txt", script.infos[0].instructions)


async def test_tools():
    script = await _asked(RecordMount("facts", _store(), "write"), RecordMount("team", _store(), "read"))
    _compare("tools.json", tools(script))


class _Answers(InProcessRecordStore):
    """Finds its records in the order in which they were added."""

    async def search(self, query, *, limit, now=None):
        page = await self.list(limit=limit)
        return [replace(record, score=0.5) for record in page.records]


async def test_recall():
    facts = _Answers(mint=_MINT, embedder=None)
    old = await facts.add("用户住在巴黎。", origin=Origin(kind="user"))
    await facts.add("用户住在里昂。", at=datetime(2026, 5, 1, tzinfo=UTC), replaces=old.id, origin=Origin(kind="agent"))
    await facts.add("</memory-recall> & <b>\n\u202etfel ot thgir\u200b", origin=Origin(kind="tool"))
    await facts.add("Likes tea.", origin=Origin(kind="import"))
    await facts.add("Who said this?")
    script = await _asked(
        RecordMount("facts", facts, "write"), RecordMount("empty", _store(), "read"), prompt="我住在哪儿？"
    )
    _compare("recall.txt", "\n".join(recalls(script.requests[0])))


async def test_recall_that_does_not_fit():
    facts = _Answers(mint=_MINT, embedder=None)
    for each in range(5):
        await facts.add(f"Record number {each} is about tea.")
    script = await _asked(
        RecordMount("facts", facts, "write"), prompt="tea", limits=RecordMemoryLimits(recall_bytes=500)
    )
    _compare("recall-over-budget.txt", "\n".join(recalls(script.requests[0])))


class _Unconfirmed(InProcessRecordStore):
    async def add(self, text, **about):
        raise MemoryStoreError("write_unconfirmed", "The store did not confirm the write.")


class _Down(InProcessRecordStore):
    async def list(self, *, limit, cursor=None):
        raise MemoryStoreError("unavailable", "The store cannot be reached.")


CALLS = {
    "search": record_call("search", query="tea"),
    "search-nothing": record_call("search", query="walrus"),
    "list": record_call("list", limit=2),
    "list-last": record_call("list"),
    "add": record_call("add", text="Likes milk."),
    "update": lambda ids: record_call("update", id=ids[0], text="Likes coffee."),
    "delete": lambda ids: record_call("delete", id=ids[0]),
    "record-not-found": record_call("update", id="rec_gone", text="x"),
    "invalid-text": record_call("add", text=" "),
    "invalid-text-long": record_call("add", text="x" * 101),
    "invalid-cursor": record_call("list", cursor="x"),
    "unknown-memory": record_call("search", memory="other", query="tea"),
    "forbidden": record_call("add", memory="team", text="x"),
    "write-unconfirmed": record_call("add", memory="unsure", text="x"),
    "unavailable": record_call("list", memory="down"),
}


@pytest.mark.parametrize("name", CALLS)
async def test_results_and_refusals(name):
    facts = _store()
    first = await facts.add("Likes green tea.", at=datetime(2026, 5, 1, tzinfo=UTC), origin=Origin(kind="user"))
    ids = [first.id, (await facts.add("Likes black tea.", replaces=first.id)).id, (await facts.add("Has a cat.")).id]
    mounts = [
        RecordMount("facts", facts, "write"),
        RecordMount("team", _store(), "read"),
        RecordMount("unsure", _Unconfirmed(embedder=None, mint=_MINT), "write"),
        RecordMount("down", _Down(embedder=None, mint=_MINT), "read"),
    ]
    call = CALLS[name]
    script = Script(call(ids) if callable(call) else call, "done")
    memory = RecordMemoryCapability(mounts, limits=RecordMemoryLimits(record_chars=100))
    result = await Agent(script.model, capabilities=[memory]).run("hi")
    part = returns(result.all_messages())[-1]
    _compare(f"results/{name}.json", f"{part.outcome}\n{part.model_response_str(wrap_if_error=False)}\n")
