"""The documented example through the real OpenAI Responses provider, against a server on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic_ai import ModelHTTPError
from pydantic_ai.messages import PartDeltaEvent, TextPartDelta
from responses_api import ResponsesApi, function_call, message

from memshelf import (
    AgentSpec,
    DirectoryFileStore,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    InProcessFileStore,
    MemoryCursors,
)

DOCUMENTED = Path(__file__).parents[2] / "docs" / "agents.md"
PREFERENCE = "---\ndescription: Language and tone preferences\n---\n- Reply in Chinese.\n"
REMEMBERS = (
    [function_call("memory_file_create", "call_1", memory="user", path="prefs/language.md", content=PREFERENCE)],
    [message("好的，我会用中文回答。")],
    [message("你喜欢中文回答。")],
)


@pytest.fixture
async def api(monkeypatch):
    """The server that the OpenAI provider finds in its environment."""
    server = ResponsesApi(*REMEMBERS)
    async with server.serving() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-on-this-machine")
        monkeypatch.delenv("MEMSHELF_MODEL", raising=False)
        yield server


def _texts(item):
    content = item["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content]


def _assert_conversation(requests, directory):
    """What the three requests of the example carried, and what is on the disk."""
    first, round_, second = requests
    assert [request["model"] for request in requests] == ["gpt-5"] * 3
    names = [tool["name"] for tool in first["tools"]]
    assert names[0] == "memory_file_view"
    assert len(names) == 7
    assert first["tools"] == round_["tools"] == second["tools"]
    assert '<memory name="user" kind="file" access="write">' in first["instructions"]
    assert first["instructions"] == round_["instructions"] == second["instructions"]
    assert str(directory) not in json.dumps(requests)

    # The context comes before the user's text, in the request that carries it, and stays there.
    users = [text for item in first["input"] if item["role"] == "user" for text in _texts(item)]
    assert users[0].startswith('<memory-context memory="user" trust="untrusted" kind="full">')
    assert users[1:] == ["I prefer answers in Chinese. Remember that."]
    assert round_["input"][: len(first["input"])] == first["input"]
    assert second["input"][: len(round_["input"])] == round_["input"]

    # The result of the call goes back under its id.
    [result] = [item for item in round_["input"] if item.get("type") == "function_call_output"]
    assert result["call_id"] == "call_1"
    written = json.loads(result["output"])
    assert written["path"] == "prefs/language.md"
    assert written["size"] == len(PREFERENCE.encode())
    assert (directory / "prefs" / "language.md").read_bytes() == PREFERENCE.encode()

    # The second run is shown the directory again: its store lists no single changes.
    users = [text for item in second["input"] if item.get("role") == "user" for text in _texts(item)]
    assert [text.startswith("<memory-context") for text in users] == [True, False, True, False]
    assert '"index":["prefs/language.md: Language and tone preferences"]' in users[2]
    assert users[3] == "What do you know about me?"


async def test_the_documented_example_runs_as_it_stands(api, tmp_path):
    [code] = re.findall(r"```python\n(import asyncio\n.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        cwd=tmp_path,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await child.communicate()
    assert errors.decode() == ""
    assert output.decode() == "好的，我会用中文回答。\n你喜欢中文回答。\n"
    assert set(api.authorizations) == {"Bearer sk-on-this-machine"}
    assert not any(request.get("stream") for request in api.requests)
    _assert_conversation(api.requests, tmp_path / ".memory" / "user")


async def test_the_same_conversation_streamed(api, tmp_path):
    memory = FileMemoryCapability(
        [FileMount("user", DirectoryFileStore(tmp_path / "user"), "write", always_load=("README.md",))],
        cursors=MemoryCursors(),
    )
    executable = HarnessBuilder().build(AgentSpec(model="openai-responses:gpt-5"), capabilities=(memory,))
    first = executable.stream("I prefer answers in Chinese. Remember that.")
    events = [event async for event in first]
    deltas = [event.delta for event in events if isinstance(event, PartDeltaEvent)]
    assert sum(isinstance(delta, TextPartDelta) for delta in deltas) >= 1
    assert first.result.output_or_raise() == "好的，我会用中文回答。"
    second = executable.stream("What do you know about me?", previous_state=first.result.state)
    assert [event async for event in second]
    assert second.result.output_or_raise() == "你喜欢中文回答。"
    assert all(request["stream"] for request in api.requests)
    _assert_conversation(api.requests, tmp_path / "user")


async def test_a_refusal_reaches_the_provider_with_the_file_as_it_is(monkeypatch, tmp_path):
    store = DirectoryFileStore(tmp_path / "user")
    server = ResponsesApi(
        [function_call("memory_file_create", "call_1", memory="user", path="a.md", content="likes tea\n")],
        [function_call("memory_file_create", "call_2", memory="user", path="a.md", content="likes milk\n")],
        [message("done")],
    )
    async with server.serving() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-on-this-machine")
        memory = FileMemoryCapability([FileMount("user", store, "write")])
        executable = HarnessBuilder().build(AgentSpec(model="openai-responses:gpt-5"), capabilities=(memory,))
        assert (await executable.run("hi")).output_or_raise() == "done"
    outputs = [each for each in server.requests[-1]["input"] if each.get("type") == "function_call_output"]
    refusal = json.loads(json.loads(outputs[-1]["output"])["error"])  # this API has no error flag; it is wrapped
    assert refusal["error"] == "already_exists"
    assert refusal["current"]["content"] == "likes tea\n"


async def test_a_request_that_the_provider_retries_carries_the_same_bytes(monkeypatch):
    server = ResponsesApi(503, [message("done")])
    async with server.serving() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-on-this-machine")
        cursors = MemoryCursors()
        memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "write")], cursors=cursors)
        executable = HarnessBuilder().build(AgentSpec(model="openai-responses:gpt-5"), capabilities=(memory,))
        assert (await executable.run("hi")).output_or_raise() == "done"
    first, second = server.bodies
    assert first == second
    assert first.count(b"</memory-context>") == 1
    assert cursors.snapshot().keys() == {"user"}


async def test_a_model_that_the_provider_does_not_know_fails_the_run_with_its_words(monkeypatch):
    server = ResponsesApi(404)
    async with server.serving() as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-on-this-machine")
        result = await HarnessBuilder().build(AgentSpec(model="openai-responses:gpt-99")).run("hi")
    assert result.status == "failed"
    with pytest.raises(ModelHTTPError, match=r"404.*gpt-99.*try again"):
        result.output_or_raise()


@pytest.mark.parametrize("entered", [True, False])
async def test_an_executable_that_is_entered_keeps_its_connections(api, entered):
    memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "write")])
    executable = HarnessBuilder().build(AgentSpec(model="openai-responses:gpt-5"), capabilities=(memory,))
    async with executable if entered else nullcontext():
        await executable.run("hi")
        await executable.run("hi")
    assert api.connections == (1 if entered else 2)
