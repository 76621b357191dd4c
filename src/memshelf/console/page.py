"""One request on its way through the console, and the pages that answer it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from memshelf.console import text
from memshelf.console.api import Api, KeyRefusedError, RefusedError
from memshelf.console.form import Form
from memshelf.console.language import LANGUAGES, Language, catalogue, message
from memshelf.console.signed_in import Session

if TYPE_CHECKING:
    from memshelf.console.app import Console

__all__ = ["ROOT", "STATIC", "Handler", "Page", "Visit", "templates"]

ROOT = "/console"
"""Where the console is: every address and cookie of it is below."""

STATIC = {
    name: (kind, files(__package__).joinpath("static", name).read_bytes())
    for name, kind in {
        "console.css": "text/css; charset=utf-8",
        "console.js": "text/javascript; charset=utf-8",
        "icon.svg": "image/svg+xml",
    }.items()
}
"""Files by name, each with its type. Their address has a hash in it, so that browsers may keep them."""


def templates() -> Environment:
    """Every template, read and compiled: no page waits for the disk."""
    loader = PackageLoader(__package__)
    made = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {
        "root": ROOT,
        "languages": LANGUAGES,
        "static": {
            name: f"{ROOT}/static/{name}?v={sha256(data).hexdigest()[:12]}" for name, (_, data) in STATIC.items()
        },
        "query": text.path_query,
        "problem_types": frozenset(
            name.removeprefix("problem.") for name in catalogue("en") if name.startswith("problem.")
        ),
    }
    made.filters |= {
        "hidden": text.hidden,
        "shown": text.shown,
        "shown_lines": partial(text.shown, lines=True),
        "size": text.size,
        "time": text.times,
        "tail": text.tail,
    }
    for name in made.list_templates():
        made.get_template(name)
    return made


@dataclass(slots=True)
class Visit:
    """A request, in the visitor's language. `form` is there when a form was sent. `api` is there for who is signed
    in."""

    console: Console
    request: Request
    language: Language
    session: Session | None = None
    form: Form | None = None
    cookies: list[str] = field(default_factory=list)
    """What the answer has its `set-cookie` headers say."""

    @property
    def signed_in(self) -> Session:
        assert self.session is not None  # noqa: S101  # no page but that for signing in is shown without
        return self.session

    @property
    def api(self) -> Api:
        return Api(self.console.api, self.signed_in.key)

    @property
    def path(self) -> Mapping[str, str]:
        """The parameters in the path."""
        return self.request.path_params

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "")

    def t(self, name: str, **values: object) -> str:
        return message(self.language, name, **values)

    def render(
        self,
        template: str,
        status: int = 200,
        *,
        problem: RefusedError | None = None,
        **values: Any,  # whatever the template shows
    ) -> Response:
        """A page. With a `problem`, it is that of a form again, with what the API said of it."""
        if isinstance(problem, KeyRefusedError):
            raise problem
        notice = None
        if self.session is not None:
            notice, self.session.notice = self.session.notice, None
        body = self.console.templates.get_template(template).render(
            t=self.t,
            visit=self,
            language=self.language,
            signed_in=self.session is not None,
            session_token=self.session.token if self.session is not None else "",
            notice=notice,
            addressed=self.form is None,
            here=self.request.scope["path"],
            parameters={name: each for name, each in self.request.query_params.items() if name != "lang"},
            problem=problem,
            **{"kept": "", **values},
        )
        return Response(body, problem.status if problem is not None else status, media_type="text/html")

    def go(self, path: str, notice: str | None = None) -> Response:
        """On to a path below `ROOT`, where the notice of this name is shown."""
        if notice is not None:
            self.signed_in.notice = notice
        return RedirectResponse(ROOT + path, 303)


Handler: TypeAlias = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """A path below `ROOT`, and who answers there. `forms` says whether it also takes a form, or only that. `open` ones
    are for everybody."""

    path: str
    handler: Handler
    forms: bool | None = False
    """`None` takes nothing else."""
    open: bool = False

    @property
    def methods(self) -> list[str]:
        return ["POST"] if self.forms is None else ["GET", "POST"] if self.forms else ["GET"]
