"""Asking a model for a summary."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

from pydantic_ai import ModelRequest, RunContext, UserPromptPart
from pydantic_ai.direct import model_request
from pydantic_ai.models import Model, infer_model

from memshelf.threads.summary import SUMMARY_INSTRUCTIONS, Line, summary_request
from memshelf.threads.tokens import TokenCounter

__all__ = ["ask_for_summary"]


async def ask_for_summary(
    ctx: RunContext[Any],
    named: object,
    previous: str | None,
    lines: Sequence[Line],
    *,
    summary_tokens: int,
    max_tokens: int,
    seconds: float,
    count: TokenCounter,
) -> str:
    """The summary in `summary_tokens` by the model `named`, or else the run's own, of up to `max_tokens` of `lines`.

    What it took counts as usage of the run. Raises whatever goes wrong, `TimeoutError` after `seconds` too.
    """
    asked = summary_request(previous, lines, summary_tokens=summary_tokens, max_tokens=max_tokens, count=count)
    model = named if named is not None else ctx.model
    async with asyncio.timeout(seconds), AsyncExitStack() as stack:
        if isinstance(model, str):
            model = await stack.enter_async_context(infer_model(model))
        if not isinstance(model, Model):
            raise TypeError(f"A summary is made by a model or the name of one, not by {type(model).__name__}.")
        response = await model_request(
            model, [ModelRequest([UserPromptPart(asked)], instructions=SUMMARY_INSTRUCTIONS)]
        )
    ctx.usage.incr(response.usage)
    ctx.usage.requests += 1
    return response.text or ""
