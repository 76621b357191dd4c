"""What a browser sends: a form, which must come from a page of this console."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import ClientDisconnect, Request

__all__ = ["Form", "FormError", "from_here", "read_form"]

_MOST_BYTES = 4_194_304
_MOST_FIELDS = 200
_SECONDS = 30.0


class FormError(Exception):
    """A form that is not read: the status that says so."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Form:
    """The fields of a form, with line ends as they were before the browser made CRLF of them."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = [(name, value.replace("\r\n", "\n")) for name, value in pairs]

    def get(self, name: str) -> str:
        return next((value for each, value in self._pairs if each == name), "")

    def every(self, name: str) -> list[str]:
        return [value for each, value in self._pairs if each == name]


async def read_form(request: Request) -> Form:
    """The form of a request. `FormError` for one that is too long, too late, or none."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise FormError(415)
    data = bytearray()
    try:
        async with asyncio.timeout(_SECONDS):
            async for chunk in request.stream():
                data += chunk
                if len(data) > _MOST_BYTES:
                    raise FormError(413)
        pairs = parse_qsl(data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except TimeoutError:
        raise FormError(408) from None
    except ClientDisconnect:  # nobody waits for the answer
        raise FormError(400) from None
    except ValueError:  # also what is no UTF-8
        raise FormError(400) from None
    return Form(pairs)


def from_here(request: Request) -> bool:
    """Whether a browser says that a page of this origin sent the form.

    `Sec-Fetch-Site` is what it says wherever it is sure of its connection; else `Origin` must be the host that was
    asked. A client that sends neither is no browser, and needs the form's token like all.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")
