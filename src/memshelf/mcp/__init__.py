"""The MCP door: memories as tools, resources and a prompt of a Model Context Protocol server. Needs the extra `mcp`."""

try:
    import mcp as _mcp  # noqa: F401  # only to name the extra when it is missing
except ModuleNotFoundError as error:
    if error.name != "mcp":
        raise
    raise ModuleNotFoundError(
        'The MCP server needs the extra "mcp", which is not installed: pip install "memshelf[mcp]"', name="mcp"
    ) from error
