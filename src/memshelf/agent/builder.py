"""From a specification to something that runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from pydantic_ai import Agent, AgentSpec, DeferredToolRequests, StructuredDict
from pydantic_ai.capabilities import AbstractCapability, AgentCapability
from pydantic_ai.models import Model
from pydantic_ai.output import OutputSpec

from memshelf.agent.capabilities.sendable import SendableRequests
from memshelf.agent.permissions import ToolPermissionCapability, ToolPermissions
from memshelf.agent.run import Executable
from memshelf.arguments import checked_argument

__all__ = ["HarnessBuilder", "pydantic_agent"]

Output = TypeVar("Output")


class HarnessBuilder:
    """Builds executables."""

    @overload
    def build(
        self,
        spec: AgentSpec,
        *,
        model: Model | str | None = None,
        capabilities: Sequence[AgentCapability[Any]] = (),
        permissions: ToolPermissions | None = None,
    ) -> Executable[str]: ...

    @overload
    def build(
        self,
        spec: AgentSpec,
        *,
        output_type: OutputSpec[Output],
        model: Model | str | None = None,
        capabilities: Sequence[AgentCapability[Any]] = (),
        permissions: ToolPermissions | None = None,
    ) -> Executable[Output]: ...

    def build(
        self,
        spec: AgentSpec,
        *,
        output_type: OutputSpec[Any] = str,
        model: Model | str | None = None,
        capabilities: Sequence[AgentCapability[Any]] = (),
        permissions: ToolPermissions | None = None,
    ) -> Executable[Any]:
        """An executable of `spec` with `capabilities`, under `permissions` (all tools allowed by default).

        `model`, a name or a Pydantic AI model, wins over the specification's; with neither, the environment variable
        `MEMSHELF_MODEL` names it at the first run. Building asks for no key and opens no connection: a model that
        cannot be used is a `ModelConfigurationError` of the first run.
        """
        if not isinstance(spec, AgentSpec):
            raise TypeError(f"build takes an AgentSpec, such as AgentSpec(model=...), not {spec!r}.")
        if output_type is str and spec.output_schema is not None:
            output_type = StructuredDict(spec.output_schema)
        agent = pydantic_agent(spec, output_type, capabilities, permissions)
        return Executable(agent, model if model is not None else spec.model)


def pydantic_agent(
    spec: AgentSpec,
    output_type: OutputSpec[Any],
    capabilities: Sequence[AgentCapability[Any]],
    permissions: ToolPermissions | None,
    **options: Any,  # Any: what else the framework's agent takes
) -> Agent[Any, Any]:
    """The framework's agent of `spec`, without a model: each run is given one."""
    checked_capabilities(capabilities)
    if output_type is None or isinstance(output_type, str):  # the framework would go round in circles
        raise TypeError(f"output_type is a type, such as str or a model of pydantic's, not {output_type!r}.")
    outputs = list(output_type) if isinstance(output_type, list | tuple) else [output_type]
    checked_argument("permissions", permissions, ToolPermissions, None)
    gate = [ToolPermissionCapability(permissions)] if permissions is not None else []
    return Agent.from_spec(
        spec.model_copy(update={"model": None}),
        # Not seen by the model: it lets a run end with calls that wait for an answer.
        output_type=[*outputs, DeferredToolRequests],
        capabilities=[*capabilities, *gate, SendableRequests()],
        defer_model_check=True,
        **options,
    )


def checked_capabilities(capabilities: Sequence[AgentCapability[Any]]) -> None:
    """`TypeError` for what is no sequence of capabilities: a store is mounted by one, and a class of them is none."""
    if not isinstance(capabilities, Sequence):
        raise TypeError(f"capabilities is a sequence, also of one: [...], not a {type(capabilities).__name__}.")
    for each in capabilities:
        if isinstance(each, type) or not (isinstance(each, AbstractCapability) or callable(each)):
            given = f"the class {each.__name__}" if isinstance(each, type) else type(each).__name__
            raise TypeError(
                "A capability is an object such as FileMemoryCapability([FileMount('notes', store, 'write')]), "
                f"not {given}."
            )
