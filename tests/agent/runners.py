"""The ways to run an agent: plain or in the harness, in one go or as a stream."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent

from memshelf import AgentSpec, HarnessBuilder

__all__ = ["every_way", "harness", "plain"]


async def plain(script, capabilities, prompt, **options):
    """The messages of a run on a plain agent."""
    result = await Agent(script.model, capabilities=capabilities, **options).run(prompt)
    return result.all_messages()


async def plain_stream(script, capabilities, prompt, **options):
    async with Agent(script.model, capabilities=capabilities, **options).run_stream(prompt) as result:
        await result.get_output()
    return result.all_messages()


async def plain_events(script, capabilities, prompt, **options):
    async with Agent(script.model, capabilities=capabilities, **options).run_stream_events(prompt) as events:
        async for _ in events:
            pass
        return events.all_messages()


async def harness(script, capabilities, prompt):
    executable = HarnessBuilder().build(AgentSpec(), model=script.model, capabilities=capabilities)
    result = await executable.run(prompt)
    result.output_or_raise()
    return result.state.messages


async def harness_stream(script, capabilities, prompt):
    executable = HarnessBuilder().build(AgentSpec(), model=script.model, capabilities=capabilities)
    async with executable.stream(prompt) as stream:
        async for _ in stream:
            pass
    stream.result.output_or_raise()
    return stream.result.state.messages


every_way = pytest.mark.parametrize("run", [plain, plain_stream, plain_events, harness, harness_stream])
