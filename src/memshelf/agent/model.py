"""Which model answers."""

from __future__ import annotations

import os

from pydantic_ai import UserError
from pydantic_ai.models import Model, infer_model

__all__ = ["MODEL_VARIABLE", "ModelConfigurationError", "usable_model"]

MODEL_VARIABLE = "MEMSHELF_MODEL"
"""The environment variable that names the model of an agent that has none. memshelf reads no other."""


class ModelConfigurationError(Exception):
    """No model can be asked: none is named, its name is unknown, or its key or package is missing. Nothing ran."""


def usable_model(model: Model | str | None) -> Model | str:
    """The model to ask, or its name. `ModelConfigurationError` says what to set."""
    name = model if model is not None else os.environ.get(MODEL_VARIABLE)
    if not name:
        raise ModelConfigurationError(
            "This agent has no model. Name one, such as openai-responses:gpt-5, with Agent(model=...), "
            f"AgentSpec(model=...) or build(..., model=...), or set the environment variable {MODEL_VARIABLE}."
        )
    try:
        infer_model(name)  # only to see that it can be: a run opens a named model of its own, and closes it
    except (UserError, ImportError, ValueError) as error:
        raise ModelConfigurationError(f"The model {name} cannot be used. {_reason(error)}") from error
    return name


def _reason(error: Exception) -> str:
    # The framework also tells how to try it with an agent of its own, which is not what anybody is doing here.
    reason = str(error).partition(" To try Pydantic AI")[0]
    if reason.startswith("Unknown model"):
        return f"{reason}. A model is named provider:name, such as openai-responses:gpt-5."
    return reason
