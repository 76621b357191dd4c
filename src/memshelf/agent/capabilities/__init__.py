"""Memory as Pydantic AI capabilities: for any `pydantic_ai.Agent(capabilities=[...])`, and for the harness."""
