"""What a browser does, as far as the console needs it: cookies, forms, redirects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx2

from memshelf.console.app import Console
from memshelf.origin import Origin
from memshelf.service.accounts import Accounts
from memshelf.service.app import create_app
from memshelf.service.config import ServiceConfig
from memshelf.service.state import ServiceState
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf

ORIGIN = "http://shelf.example"


class Host:
    """The service and its console on a database of their own. `now` is the console's clock."""

    def __init__(self, place: Path, config: ServiceConfig | None = None) -> None:
        self.now = 1_000.0
        self._engine = SqliteEngine(place / "memshelf.db", recreate=False)
        self.accounts = Accounts(self._engine)
        self._shelf = Shelf(self._engine)
        state = ServiceState(self._shelf, config or ServiceConfig(key_seconds=0))
        self.app = create_app(state, {"/console": self._console})
        self.key = ""
        self._clients: list[httpx2.AsyncClient] = []

    def _console(self, api: Any) -> Console:
        self.console = Console(api, clock=lambda: self.now)
        return self.console

    async def begin(self) -> None:
        self.key = await self.accounts.create_key("default")

    def browser(self, **headers: str) -> Browser:
        client = httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=ORIGIN, headers=headers)
        self._clients.append(client)
        return Browser(client)

    async def call(self, method: str, path: str, body: Any = None, *, key: str | None = None) -> Any:
        """A request to the API, as any other client makes it."""
        headers = {"authorization": f"Bearer {key or self.key}"}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=ORIGIN) as client:
            answer = await client.request(method, path, json=body, headers=headers)
        assert answer.status_code < 400, answer.text
        return answer.json()

    async def store(self, name: str = "Notes", **more: Any) -> str:
        return (await self.call("POST", "/v1/memory_stores", {"name": name, **more}))["id"]

    async def memory(self, store: str, path: str, content: str = "x", key: str | None = None) -> Any:
        body = {"path": path, "content": content}
        return await self.call("POST", f"/v1/memory_stores/{store}/memories?view=full", body, key=key)

    async def memory_of(self, user: str, store: str, path: str) -> None:
        """A memory that a user made, as on the command line of the service's machine."""
        memories = Memories(self._shelf, await self.accounts.workspace("default"), store)
        await memories.create(path, "x", origin=Origin(principal_id=user))

    async def write(self, store: str, memory: str, content: str, key: str | None = None) -> Any:
        body = {"content": content}
        return await self.call("POST", f"/v1/memory_stores/{store}/memories/{memory}", body, key=key)

    async def versions(self, store: str) -> list[Any]:
        return (await self.call("GET", f"/v1/memory_stores/{store}/memory_versions"))["data"]

    async def aclose(self) -> None:
        for client in self._clients:
            await client.aclose()
        await self._engine.aclose()


@dataclass
class Form:
    method: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)


class Page(HTMLParser):
    """A page as a visitor has it: what it says, where it leads, and its forms."""

    def __init__(self, answer: httpx2.Response) -> None:
        super().__init__()
        self.status = answer.status_code
        self.url = answer.url
        self.answer = answer
        self.html = answer.text
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._said: list[str] = []
        self._area: str | None = None
        self.feed(self.html)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self._said))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if tag == "a":
            self.links.append(named.get("href") or "")
        elif tag == "form":
            self.forms.append(Form(named.get("method") or "get", named.get("action") or str(self.url.path)))
        elif self.forms and tag in ("input", "button") and named.get("name"):
            if named.get("type") != "checkbox":
                self.forms[-1].fields.append((named["name"] or "", named.get("value") or ""))
        elif tag == "textarea":
            self._area = named.get("name")
            self._said.append("\0")

    def handle_data(self, data: str) -> None:
        if self._said and self._said[-1] == "\0":
            self._said.pop()
            data = data.removeprefix("\n")  # as a browser reads a textarea
            if self.forms and self._area:
                self.forms[-1].fields.append((self._area, data))
        self._said.append(data)

    def form(self, action: str = "") -> Form:
        """The form that is sent with POST to the path that ends so, but not the one that signs out."""
        return next(
            each
            for each in self.forms
            if each.method == "post" and each.action.endswith(action) and not each.action.endswith("/sign-out")
        )

    def field(self, name: str) -> str:
        return next(value for each, value in self.form().fields if each == name)


class Browser:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.page: Page

    async def get(self, path: str, headers: Mapping[str, Any] | None = None) -> Page:
        """A page of the console, and where it leads on to."""
        answer = await self.client.get(path if path.startswith("/console") else f"/console{path}", headers=headers)
        return await self._arrived(answer)

    async def _arrived(self, answer: httpx2.Response) -> Page:
        while answer.is_redirect:
            answer = await self.client.get(answer.headers["location"])
        self.page = Page(answer)
        return self.page

    async def send(
        self, fields: Mapping[str, str] | None = None, /, *, action: str = "", headers: Mapping[str, Any] | None = None
    ) -> Page:
        """Fill in the form of the page, and send it as a browser does: with line ends of its own."""
        form = self.page.form(action)
        filled = dict(fields or {})
        pairs = [(name, filled.pop(name, value)) for name, value in form.fields]
        pairs += filled.items()
        return await self.post(form.action, pairs, headers)

    async def post(self, path: str, pairs: list[tuple[str, str]], headers: Mapping[str, Any] | None = None) -> Page:
        data = urlencode([(name, re.sub("\r\n|\r|\n", "\r\n", value)) for name, value in pairs])
        sent = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded", **(headers or {})}
        return await self._arrived(await self.client.post(path, content=data, headers=sent))

    async def sign_in(self, key: str) -> Page:
        await self.get("/sign-in")
        return await self.send({"key": key})
