"""What an agent is, as data: Pydantic AI's own specification."""

from pydantic_ai import AgentSpec

__all__ = ["AgentSpec"]
