"""Who gets in, for how long, and what comes from elsewhere."""

from __future__ import annotations

import re

import pytest
from visiting import ORIGIN, Browser, Host, Page

from memshelf.console.signed_in import IDLE_SECONDS, WHOLE_SECONDS


def cookies(page_or_answer) -> dict[str, str]:
    found = page_or_answer.headers.get_list("set-cookie")
    return {each.partition("=")[0]: each for each in found}


async def test_nothing_is_shown_without_a_key(host, visitor):
    browser = visitor()
    store = await host.store("Private name")
    for path in ("", "/", "/stores", f"/stores/{store}", f"/stores/{store}/history?page=x"):
        page = await browser.get(path)
        assert page.status == 200
        assert page.url.path == "/console/sign-in"
        assert "Private name" not in page.html
    answer = await browser.client.post(f"/console/stores/{store}/archive", data={"token": ""})
    assert answer.status_code == 401


async def test_a_key_opens_its_workspace_and_leads_to_where_one_wanted_to_go(host, visitor):
    store = await host.store("Plans")
    browser = visitor()
    await browser.get(f"/stores/{store}?prefix=%2Fa%2F")
    page = await browser.send({"key": f" {host.key}\n"})
    assert (page.status, page.url.path, page.url.query) == (200, f"/console/stores/{store}", b"prefix=%2Fa%2F")
    assert (await browser.get("/sign-in")).url.path == "/console/stores"


@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/",
        "//evil.example/console/",
        "/v1/x",
        "/console/../v1",
        "/console/%2E%2e//evil.example",
        "x",
        "\\\\e",
    ],
)
async def test_signing_in_leads_nowhere_else(host, visitor, back):
    browser = visitor()
    await browser.get("/sign-in")
    page = await browser.send({"key": host.key, "back": back})
    assert (page.url.host, page.url.path) == ("shelf.example", "/console/stores")


@pytest.mark.parametrize("key", ["", "msk_wrong", "msk_ключ", "a\r\nx-api-key: b"])
async def test_a_wrong_key_is_told_and_not_shown_again(host, visitor, key):
    page = await visitor().sign_in(key)
    assert page.status == 401
    assert "unknown, or it was revoked" in page.text
    assert page.answer.headers.get_list("set-cookie")
    assert "memshelf_console=" not in str(page.answer.headers)
    assert key == "" or key not in page.html


async def test_the_token_of_a_session_is_no_key(host, visitor):
    store = await host.store()
    mount = {"type": "memory_store", "memory_store_id": store}
    session = await host.call("POST", "/v1/sessions", {"agent": "a", "environment_id": "e", "resources": [mount]})
    token = (await host.call("POST", f"/v1/memshelf/sessions/{session['id']}/token"))["token"]
    page = await visitor().sign_in(token)
    assert (page.status, "token of a session" in page.text) == (403, True)


async def test_the_cookie_is_for_the_console_alone_and_says_nothing_of_the_key(host, visitor):
    browser = visitor()
    await browser.get("/sign-in")
    form = browser.page.form()
    data = {**dict(form.fields), "key": host.key}
    plain = await browser.client.post("/console/sign-in", data=data)
    cookie = cookies(plain)["memshelf_console"]
    assert cookie.endswith("; Path=/console; HttpOnly; SameSite=Strict")
    assert host.key not in str(plain.headers)
    assert host.key not in (await browser.get("/stores")).html
    await browser.get("/sign-in")
    behind = host.browser(**{"x-forwarded-proto": "https"})
    await behind.get("/sign-in")
    assert "; Secure" in cookies(behind.page.answer)["memshelf_console_form"]


async def test_an_id_that_somebody_brings_along_is_never_taken(host, visitor):
    browser = visitor()
    browser.client.cookies.set("memshelf_console", "chosen-by-somebody", domain="shelf.example", path="/console")
    await browser.sign_in(host.key)
    assert len(host.console.sessions._sessions) == 1
    assert "chosen-by-somebody" not in host.console.sessions._sessions
    other = visitor()
    other.client.cookies.set("memshelf_console", "chosen-by-somebody", domain="shelf.example", path="/console")
    assert (await other.get("/stores")).url.path == "/console/sign-in"


async def test_signing_in_again_ends_the_session_before(host, browser):
    [before] = host.console.sessions._sessions
    await browser.client.get("/console/sign-in")
    stale = browser.client.cookies
    page = await host.browser().sign_in(host.key)
    assert page.status == 200
    assert len(host.console.sessions._sessions) == 2
    assert before in host.console.sessions._sessions
    assert stale.get("memshelf_console") == before


async def test_whoever_has_two_tabs_open_signs_in_on_either(host, visitor):
    browser = visitor()
    first = await browser.get("/sign-in?back=/console/stores/new")
    second = await browser.get("/sign-in")
    fields = [(name, host.key if name == "key" else value) for name, value in first.form().fields]
    assert (await browser.post("/console/sign-in", fields)).url.path == "/console/stores/new"
    fields = [(name, "" if name == "key" else value) for name, value in second.form().fields]
    assert (await browser.post("/console/sign-in", fields)).url.path == "/console/stores"
    assert len(host.console.sessions._sessions) == 1


@pytest.mark.parametrize("brought", ["x", "a" * 44, '"><script>alert(1)</script>' + "a" * 16])
async def test_a_token_that_no_form_had_is_replaced(visitor, brought):
    browser = visitor()
    browser.client.cookies.set("memshelf_console_form", brought, domain="shelf.example", path="/console")
    page = await browser.get("/sign-in")
    assert len(page.field("token")) == 43
    assert page.field("token") != brought


async def test_signing_out_ends_the_session_for_good(host, browser):
    kept = browser.client.cookies.get("memshelf_console")
    out = next(each for each in browser.page.forms if each.action.endswith("/sign-out"))
    page = await browser.post(out.action, out.fields)
    assert page.url.path == "/console/sign-in"
    browser.client.cookies.set("memshelf_console", kept, domain="shelf.example", path="/console")
    assert (await browser.get("/stores")).url.path == "/console/sign-in"


async def test_signing_out_after_the_session_has_ended_is_no_error(host, browser):
    out = next(each for each in browser.page.forms if each.action.endswith("/sign-out"))
    host.now += IDLE_SECONDS
    page = await browser.post(out.action, out.fields)
    assert (page.status, page.url.path, page.url.query) == (200, "/console/sign-in", b"")
    await browser.sign_in(host.key)
    refused = await browser.post(out.action, out.fields, {"sec-fetch-site": "cross-site"})
    assert (refused.status, len(host.console.sessions._sessions)) == (403, 1)


async def test_a_session_ends_when_it_is_not_used_and_after_a_day_of_work_in_any_case(host, browser):
    host.now += IDLE_SECONDS - 1
    assert (await browser.get("/stores")).url.path == "/console/stores"
    host.now += IDLE_SECONDS
    assert (await browser.get("/stores")).url.path == "/console/sign-in"
    await browser.sign_in(host.key)
    for _ in range(int(WHOLE_SECONDS / IDLE_SECONDS * 2) - 1):
        host.now += IDLE_SECONDS / 2
        assert (await browser.get("/stores")).url.path == "/console/stores"
    host.now += IDLE_SECONDS / 2
    assert (await browser.get("/stores")).url.path == "/console/sign-in"


async def test_what_was_typed_is_shown_when_the_session_has_ended(host, browser):
    store = await host.store()
    await browser.get(f"/stores/{store}/memories")
    host.now += IDLE_SECONDS
    page = await browser.send({"path": "/a.md", "content": "an hour's <b>work</b>"})
    assert page.status == 401
    assert "an hour's <b>work</b>" in page.text
    await browser.sign_in(host.key)
    await browser.get(f"/stores/{store}/settings")
    host.now += IDLE_SECONDS
    assert "What we know." in (await browser.send({"description": "What we know."})).text
    assert await host.versions(store) == []


async def test_a_revoked_key_ends_it_at_the_next_request(host, browser):
    [key] = await host.accounts.keys()
    await host.accounts.revoke(key.id)
    assert (await browser.get("/stores")).url.path == "/console/sign-in"
    assert not host.console.sessions._sessions


async def test_there_are_never_more_sessions_than_a_number(host, visitor, monkeypatch):
    monkeypatch.setattr("memshelf.console.signed_in._MOST_SESSIONS", 2)
    first, second, third = visitor(), visitor(), visitor()
    await first.sign_in(host.key)
    await second.sign_in(host.key)
    await first.get("/stores")
    await third.sign_in(host.key)
    assert (await second.get("/stores")).url.path == "/console/sign-in"
    assert (await first.get("/stores")).url.path == "/console/stores"


async def test_wrong_keys_of_somebody_else_lock_nobody_out(host, visitor):
    """Behind a proxy, all have one address; and no key can be guessed."""
    browser = visitor()
    for _ in range(30):
        assert (await browser.sign_in("msk_guess")).status == 401
    assert (await visitor().sign_in(host.key)).url.path == "/console/stores"


async def test_a_form_needs_the_token_of_its_session(host, browser):
    await browser.get("/stores/new")
    page = await browser.send({"token": "guessed", "name": "Planted"})
    assert page.status == 403
    await browser.get("/stores/new")
    page = await browser.post("/console/stores/new", [("name", "Planted")])
    assert page.status == 403
    assert (await host.call("GET", "/v1/memory_stores"))["data"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "http://shelf.example.evil"},
    ],
)
async def test_a_form_from_another_site_is_refused_whatever_it_knows(host, browser, headers):
    await browser.get("/stores/new")
    page = await browser.send({"name": "Planted"}, headers=headers)
    assert page.status == 403
    assert (await host.call("GET", "/v1/memory_stores"))["data"] == []


async def test_a_browser_that_vouches_for_the_form_may_be_behind_a_proxy_that_renames_the_host(host, browser):
    await browser.get("/stores/new")
    headers = {"origin": "https://memory.example", "sec-fetch-site": "same-origin"}
    assert (await browser.send({"name": "Mine"}, headers=headers)).status == 200
    assert [each["name"] for each in (await host.call("GET", "/v1/memory_stores"))["data"]] == ["Mine"]


async def test_nobody_is_signed_in_by_another_site(host, visitor):
    browser = visitor()
    page = await browser.post("/console/sign-in", [("token", "x"), ("key", host.key), ("back", "")])
    assert page.status == 403
    assert not host.console.sessions._sessions


async def test_every_answer_says_what_it_may_do(host, browser, visitor):
    [style] = [attributes["href"] for tag, attributes in browser.page.tags if attributes.get("rel") == "stylesheet"]
    for answer in (
        browser.page.answer,
        (await browser.get("/nowhere")).answer,
        (await visitor().get("/sign-in")).answer,
        await browser.client.get("/console/stores"),
        await browser.client.put("/console/stores"),
        await browser.client.get(style),
        await browser.client.get("/console"),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        if answer.request.url.path != "/console/static/console.css":
            assert answer.headers["cache-control"] == "no-store"
            assert "<style" not in answer.text
            assert " style=" not in answer.text
            assert "<script>" not in answer.text


async def test_a_method_that_there_is_not_is_refused_with_a_page(host, browser):
    for method, path in (("PUT", "/console/stores"), ("GET", "/console/sign-out"), ("DELETE", "/console/stores/new")):
        answer = await browser.client.request(method, path)
        assert (answer.status_code, "That is not possible here" in answer.text) == (405, True)
        assert answer.headers["allow"]


async def test_pages_ask_for_nothing_but_what_the_console_serves(browser):
    asked = [
        attributes[name]
        for tag, attributes in browser.page.tags
        for name in ("src", "href")
        if tag in ("script", "link", "img") and name in attributes
    ]
    assert len(asked) == 4
    for path in asked:
        answer = await browser.client.get(path)
        assert (answer.status_code, path.startswith("/console/static/")) == (200, True)
        assert "immutable" in answer.headers["cache-control"]
        assert b"http" not in answer.content.replace(b"http://www.w3.org/2000/svg", b"")
    assert (await browser.client.get("/console/static/..%2Fapp.py")).status_code == 404


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (b"x=" + b"a" * 4_194_305, "application/x-www-form-urlencoded", 413),
        (b"{}", "application/json", 415),
        (b"x=%ff", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a=1" for _ in range(300)), "application/x-www-form-urlencoded", 400),
    ],
)
async def test_what_is_no_form_is_refused(host, browser, data, kind, status):
    headers = {"content-type": kind, "origin": ORIGIN}
    answer = await browser.client.post("/console/stores/new", content=data, headers=headers)
    assert answer.status_code == status
    assert Page(answer).tags


async def test_the_api_does_not_know_the_cookie(host, browser):
    """And the console knows no key in a header."""
    cookie = {"cookie": f"memshelf_console={browser.client.cookies.get('memshelf_console')}"}
    assert (await browser.client.get("/v1/memory_stores", headers=cookie)).status_code == 401
    other: Browser = host.browser(authorization=f"Bearer {host.key}")
    assert (await other.get("/stores")).url.path == "/console/sign-in"


async def test_the_rest_of_the_service_is_as_without_it(host: Host, browser):
    for path, status in (("/", 404), ("/consoles", 404), ("/healthz", 200), ("/openapi.json", 200)):
        answer = await browser.client.get(path)
        assert (answer.status_code, "content-security-policy" in answer.headers) == (status, False)
    assert "console" not in (await browser.client.get("/openapi.json")).text
    routes = set(re.findall('route="([^"]*)"', (await browser.client.get("/metrics")).text))
    assert {each for each in routes if "console" in each} == {"/console"}  # and no path of anybody's


async def test_a_link_from_another_site_leads_to_the_page_of_who_is_signed_in(host, visitor):
    """A browser sends the cookie only when the console itself asks for the page again."""
    store = await host.store()
    browser = visitor()
    page = await browser.get(f'/stores/{store}?prefix=/"a"/', headers={"sec-fetch-site": "cross-site"})
    assert page.status == 200
    [again] = [attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv")]
    assert again == f"0; url=/console/stores/{store}?prefix=/%22a%22/"
    page = await browser.get(again.partition("=")[2], headers={"sec-fetch-site": "same-origin"})
    assert page.url.path == "/console/sign-in"


@pytest.mark.parametrize("name", ["[", "a b", "x:y:z", "\u00e9", "a/b?c", ""])
async def test_an_odd_name_of_the_host_is_no_crash(host, browser, name):
    page = await browser.get("/stores", headers={"host": name.encode("latin-1")})
    assert (page.status, page.answer.request.headers["host"]) == (200, name)
    await browser.get("/stores/new")
    assert (await browser.send({"name": "x"}, headers={"host": name.encode("latin-1")})).status in (303, 403)
