"""Which tools a run may call: rules by tool ID, and the capability that keeps them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Self, TypeAlias, assert_never, get_args

from pydantic_ai import ApprovalRequired, RunContext, ToolCallPart, ToolDefinition, ToolFailed
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from typing_extensions import override

from memshelf.arguments import checked_argument
from memshelf.files.tools import FILE_TOOLS
from memshelf.records.tools import RECORD_TOOLS
from memshelf.workspace.tools import WORKSPACE_TOOLS

__all__ = ["TOOL_ID", "Permission", "ToolPermissionCapability", "ToolPermissions", "require_memory_tool", "tool_id"]

Permission: TypeAlias = Literal["allow", "ask", "deny"]

TOOL_ID = "tool_id"
"""The key of a tool's metadata under which its ID stands."""

_STRICTNESS: dict[Permission, int] = {"allow": 0, "ask": 1, "deny": 2}
_RULE = re.compile(r"\S+")
_TOOL_IDS = {
    **{tool.name: tool.id for tool in FILE_TOOLS.values()},
    **{tool.name: tool.id for tool in RECORD_TOOLS.values()},
}
_WORKSPACE_IDS = [tool.id for tool in WORKSPACE_TOOLS.values()]  # tools of others may well have the same names
_MEMORY_IDS = (*_TOOL_IDS.values(), *_WORKSPACE_IDS)


@dataclass(frozen=True, slots=True)
class ToolPermissions:
    """What happens when a run calls a tool: `allow`, `ask` (the run suspends for approval) or `deny` (a refusal).

    `rules` maps a tool ID, or a pattern in which each `*` stands for any characters, to a permission; what no rule
    matches follows `default`. A tool without an ID goes by its name. The most specific rule wins: an ID before any
    pattern, then the pattern with the most characters besides `*`, and among equals the strictest.

    A rule that is malformed, or that could never apply to the memory tools it means, is a `ValueError`.
    """

    default: Permission = "allow"
    rules: Mapping[str, Permission] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_permission("default", self.default)
        for rule, permission in checked_argument("rules", self.rules, Mapping).items():
            _check_rule(rule)
            _check_permission(rule, permission)
        object.__setattr__(self, "rules", MappingProxyType(dict(self.rules)))

    def __reduce__(self) -> tuple[type[Self], tuple[Permission, dict[str, Permission]]]:
        return type(self), (self.default, dict(self.rules))  # a view can be neither copied nor pickled

    def of(self, tool: str) -> Permission:
        """The permission of a tool, by its ID."""
        matching = [
            (rule == tool, len(rule.replace("*", "")), _STRICTNESS[permission], permission)
            for rule, permission in self.rules.items()
            if _matches(rule, tool)
        ]
        return max(matching)[-1] if matching else self.default


def tool_id(definition: ToolDefinition) -> str:
    """A tool's ID, or its name when it has none."""
    named = (definition.metadata or {}).get(TOOL_ID)
    return named if isinstance(named, str) else definition.name


class ToolPermissionCapability(AbstractCapability[object]):
    """Keeps `permissions` over every tool of a run.

    A denied tool whose calls the host makes (`ExternalToolset`) is not offered: its calls run nothing here that could
    refuse them. One to ask about suspends the run anyway.

    On a plain `pydantic_ai.Agent`, `ask` needs `DeferredToolRequests` among the output types.
    """

    id: str | None = "memshelf-permissions"

    def __init__(self, permissions: ToolPermissions) -> None:
        self._permissions = permissions

    @classmethod
    @override
    def get_serialization_name(cls) -> str | None:
        return None

    @override
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")  # nothing may act on a call that is not permitted

    @override
    async def prepare_tools(self, ctx: RunContext[object], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        for each in tool_defs:
            if each.name in self._permissions.rules and tool_id(each) != each.name:
                raise ValueError(_by_id(each.name, tool_id(each)))  # it would not apply, and nobody would know
        return [each for each in tool_defs if each.kind != "external" or self._permissions.of(tool_id(each)) != "deny"]

    @override
    async def before_tool_execute(
        self,
        ctx: RunContext[object],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],  # Any: what the tool's own schema says
    ) -> dict[str, Any]:
        tool = tool_id(tool_def)
        permission = self._permissions.of(tool)
        match permission:
            case "allow":
                return args
            case "ask":
                if not ctx.tool_call_approved:
                    raise ApprovalRequired(metadata={TOOL_ID: tool})
                return args
            case "deny":
                raise ToolFailed(_refusal(tool_def.name))
            case _:
                assert_never(permission)


def _refusal(name: str) -> str:
    message = f"{name} is not permitted here; nothing was done. Go on without it, or tell the user what you would need."
    return json.dumps({"error": "permission_denied", "message": message}, separators=(",", ":"))


def _by_id(name: str, id: str) -> str:
    return f"Tool permission {name}: that tool goes by its ID, {id}."


def _matches(rule: str, tool: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, rule.split("*"))), tool, re.DOTALL) is not None


def _check_permission(rule: str, permission: Permission) -> None:
    if permission not in get_args(Permission):
        raise ValueError(f"Tool permission {rule}: one of allow, ask, deny, not {permission!r}.")


def _check_rule(rule: str) -> None:
    if not isinstance(rule, str) or _RULE.fullmatch(rule) is None:
        raise ValueError(f"A tool permission rule is a tool ID or a pattern such as memory.file.*, not {rule!r}.")
    if rule in _TOOL_IDS:
        raise ValueError(_by_id(rule, _TOOL_IDS[rule]))
    if rule.startswith("memory."):
        require_memory_tool(rule)


def require_memory_tool(rule: str) -> None:
    """`ValueError` for a rule that applies to no tool of a memory or a workspace."""
    if any(_matches(rule, id) for id in _MEMORY_IDS):
        return
    kind = rule.removeprefix("memory.").split(".")[0]
    meant = [id for id in _MEMORY_IDS if id.startswith(f"memory.{kind}.")]
    which = f"{kind} tool" if meant else "tool"
    raise ValueError(f"Tool permission {rule}: no {which} has that ID. There are {', '.join(meant or _MEMORY_IDS)}.")
