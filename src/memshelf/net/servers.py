"""The address of a server that somebody names, and the key for it. Refusals do not repeat what may be a secret."""

from __future__ import annotations

from urllib.parse import urlsplit

__all__ = ["server_address", "server_key"]

_REFUSAL = (
    "base_url is the http or https address of a server, such as https://memory.example.com, without a name, password, "
    "query or fragment."
)


def server_address(base_url: object) -> str:
    """The address as paths are put behind it, else `ValueError`."""
    from httpx2 import URL, InvalidURL  # callers have it, each with an error that names the extra

    if not isinstance(base_url, str) or not base_url.isprintable() or any(each in base_url for each in " ?#\\"):
        raise ValueError(_REFUSAL)
    try:
        parts = urlsplit(base_url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        URL(base_url)
    except (ValueError, InvalidURL):
        sound = False
    if not sound or "@" in parts.netloc:
        raise ValueError(_REFUSAL)
    return base_url.rstrip("/")


def server_key(api_key: object) -> str:
    """The key as a header takes it, else `ValueError`."""
    if (
        not isinstance(api_key, str)
        or not api_key
        or not api_key.isascii()
        or not api_key.isprintable()
        or " " in api_key
    ):
        raise ValueError("api_key is one or more printable ASCII characters, without spaces.")
    return api_key
