"""The console as an ASGI application, to be served at `ROOT`."""

from __future__ import annotations

import time
from collections.abc import Callable
from secrets import compare_digest
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memshelf.console.api import KeyRefusedError, RefusedError
from memshelf.console.form import FormError, from_here, read_form
from memshelf.console.language import LANGUAGES, chosen
from memshelf.console.page import ROOT, STATIC, Page, Visit, templates
from memshelf.console.routes import access, history, memories, reading, stores, versions
from memshelf.console.signed_in import Sessions

__all__ = ["PAGES", "Console"]

PAGES: tuple[Page, ...] = (
    *access.PAGES,
    *stores.PAGES,
    *memories.PAGES,
    *versions.PAGES,
    *history.PAGES,
    *reading.PAGES,
)

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    # With `no-referrer`, browsers would send forms with `Origin: null`, and there would be nothing to check.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
_YEAR = 31_536_000
_ELSEWHERE = ("cross-site", "same-site")
"""Whoever follows a link from another site comes without the cookie, and with it when the page is asked for again."""


class Console:
    """What all visits share. `api` is the service's API, which is asked with the key of whoever is signed in."""

    def __init__(self, api: ASGIApp, clock: Callable[[], float] = time.monotonic) -> None:
        self.api = api
        self.sessions = Sessions(clock)
        self.templates = templates()
        routes = [Route(each.path, self._endpoint(each), methods=each.methods) for each in PAGES]
        self._router = Router(
            [*routes, Route("/static/{name}", _static)], redirect_slashes=False, default=self._nothing
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = {**scope, "app": self}  # so that the router raises what it refuses
        begun = False

        async def guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                said = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *((name.encode(), value.encode()) for name, value in _HEADERS.items() if name.encode() not in said),
                ]
            await send(message)

        request = Request(scope, receive)
        try:
            await self._router(scope, receive, guarded)
        except HTTPException as error:
            response = self._visit(request).render("error.html", error.status_code, error="method")
            response.headers.update(error.headers or {})
            await response(scope, receive, guarded)
        except Exception:
            if not begun:
                await self._visit(request).render("error.html", 500, error="crash")(scope, receive, guarded)
            raise  # it is logged at the door

    async def _nothing(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if scope["path"] == ROOT:
            await RedirectResponse(f"{ROOT}/", 308)(scope, receive, send)
            return
        visit = self._visit(request)
        await visit.render("error.html", 404, error="nothing")(scope, receive, send)

    def _visit(self, request: Request) -> Visit:
        asked = request.query_params.get("lang")
        language = chosen(asked, request.cookies.get(access.LANGUAGE), request.headers.get("accept-language", ""))
        visit = Visit(self, request, language, self.sessions.find(request.cookies.get(access.SESSION, "")))
        if asked in LANGUAGES:
            visit.cookies.append(access.cookie(request, access.LANGUAGE, language, _YEAR))
        return visit

    def _endpoint(self, page: Page) -> Callable[[Request], object]:
        async def answer(request: Request) -> Response:
            visit = self._visit(request)
            try:
                response = await self._answer(page, visit)
            except FormError as error:
                response = visit.render("error.html", error.status, error="form")
            except KeyRefusedError:
                self.sessions.end(request.cookies.get(access.SESSION, ""))
                visit.session = None
                response = self._ask_to_sign_in(visit)
            except RefusedError as refusal:
                response = visit.render("error.html", problem=refusal, error="refused", kept=_kept(visit))
                if refusal.retry_after is not None:
                    response.headers["retry-after"] = refusal.retry_after
            for each in visit.cookies:
                response.headers.append("set-cookie", each)
            return response

        return answer

    async def _answer(self, page: Page, visit: Visit) -> Response:
        if visit.request.method == "POST":
            if not from_here(visit.request):
                return visit.render("error.html", 403, error="elsewhere")
            visit.form = await read_form(visit.request)
        if page.open:
            return await page.handler(visit)
        if visit.session is None:
            return self._ask_to_sign_in(visit)
        if visit.form is not None and not _same(visit.form.get("token"), visit.session.token):
            return visit.render("error.html", 403, error="token", kept=_kept(visit))
        return await page.handler(visit)

    def _ask_to_sign_in(self, visit: Visit) -> Response:
        if visit.form is not None:
            return visit.render("error.html", 401, error="signed_out", kept=_kept(visit))
        scope = visit.request.scope
        asked = scope["query_string"].decode("latin-1")
        back = scope["path"] + (f"?{asked}" if asked else "")
        if visit.request.headers.get("sec-fetch-site") in _ELSEWHERE:
            return visit.render("again.html", back=back)
        return RedirectResponse(f"{ROOT}/sign-in?back={quote(back, safe='')}", 303)


def _same(one: str, other: str) -> bool:
    return compare_digest(one.encode(), other.encode())


def _kept(visit: Visit) -> str:
    """What somebody typed that is not to be lost, whatever became of the form."""
    return visit.form.get("content") or visit.form.get("description") if visit.form is not None else ""


async def _static(request: Request) -> Response:
    found = STATIC.get(request.path_params["name"])
    if found is None:
        return Response(status_code=404)
    return Response(found[1], media_type=found[0], headers={"cache-control": f"public, max-age={_YEAR}, immutable"})
