"""Signing in with an API key, and out."""

from __future__ import annotations

import re
import secrets
from hmac import compare_digest
from urllib.parse import unquote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memshelf.console.api import Api, KeyRefusedError, RefusedError
from memshelf.console.page import ROOT, Page, Visit

__all__ = ["LANGUAGE", "PAGES", "SESSION", "cookie"]

SESSION = "memshelf_console"
LANGUAGE = "memshelf_console_language"
_SIGNING_IN = "memshelf_console_form"
_TOKEN = re.compile("[A-Za-z0-9_-]{43}")


def cookie(request: Request, name: str, value: str, seconds: int | None = None) -> str:
    """A `set-cookie` header. Whether the browser came by https, a proxy in front says; who lies about it has a cookie
    that is of no use to them."""
    secure = request.scope["scheme"] == "https" or request.headers.get("x-forwarded-proto") == "https"
    age = f"; Max-Age={seconds}" if seconds is not None else ""
    return f"{name}={value}; Path={ROOT}; HttpOnly; SameSite=Strict{'; Secure' if secure else ''}{age}"


async def _home(visit: Visit) -> Response:
    return visit.go("/stores")


async def _sign_in(visit: Visit) -> Response:
    back = _inside(visit.form.get("back") if visit.form is not None else visit.query("back"))
    if visit.form is None:
        if visit.session is not None:
            return RedirectResponse(back, 303)
        return _asked(visit, back)
    expected = visit.request.cookies.get(_SIGNING_IN, "")
    if not expected or not compare_digest(visit.form.get("token").encode(), expected.encode()):
        if visit.session is not None:  # in another tab
            return RedirectResponse(back, 303)
        return _asked(visit, back, 403, "stale")
    key = visit.form.get("key").strip()
    if not key.isascii() or not key.isprintable() or not key:
        return _asked(visit, back, 401, "unknown")
    try:
        await Api(visit.console.api, key).get("memory_stores", limit=1)
    except KeyRefusedError:
        return _asked(visit, back, 401, "unknown")
    except RefusedError as refusal:
        if refusal.status == 403:
            return _asked(visit, back, 403, "token")
        return _asked(visit, back, problem=refusal)
    visit.console.sessions.end(visit.request.cookies.get(SESSION, ""))
    id = visit.console.sessions.begin(key)
    visit.cookies += (cookie(visit.request, SESSION, id), cookie(visit.request, _SIGNING_IN, "", 0))
    return RedirectResponse(back, 303)


def _asked(
    visit: Visit, back: str, status: int = 200, wrong: str | None = None, problem: RefusedError | None = None
) -> Response:
    """The form for signing in. Its token is also in a cookie: no other site can have somebody sign in here. Forms in
    several tabs have the same."""
    token = visit.request.cookies.get(_SIGNING_IN, "")
    if _TOKEN.fullmatch(token) is None:
        token = secrets.token_urlsafe(32)
    visit.cookies.append(cookie(visit.request, _SIGNING_IN, token))
    visit.session = None
    return visit.render("sign_in.html", status, back=back, wrong=wrong, form_token=token, problem=problem)


def _inside(back: str) -> str:
    """An address to go to, if it is one of the console."""
    parts = urlsplit(back)
    if (
        parts.scheme
        or parts.netloc
        or not parts.path.startswith(f"{ROOT}/")
        or "\\" in back
        or ".." in unquote(parts.path)
    ):
        return f"{ROOT}/stores"
    return back


async def _sign_out(visit: Visit) -> Response:
    visit.console.sessions.end(visit.request.cookies.get(SESSION, ""))
    visit.cookies.append(cookie(visit.request, SESSION, "", 0))
    return RedirectResponse(f"{ROOT}/sign-in", 303)


PAGES = (
    Page("/", _home),
    Page("/sign-in", _sign_in, forms=True, open=True),
    Page("/sign-out", _sign_out, forms=None, open=True),
)
