"""The agent door, on Pydantic AI. It needs the extra `agent`."""

try:
    import pydantic_ai as _pydantic_ai  # noqa: F401  # only to name the extra when it is missing
except ModuleNotFoundError as error:
    if error.name != "pydantic_ai":
        raise
    raise ModuleNotFoundError(
        'Agents need the extra "agent", which is not installed: pip install "memshelf[agent]"', name="pydantic_ai"
    ) from error
