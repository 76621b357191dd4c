"""The console in a real browser: a Chromium that the system has."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

sys.path.append(str(Path(__file__).parent.parent / "service"))
from serving import Service

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP memory.test 127.0.0.1",
]
_SIZES = {"wide": (1_200, 900), "narrow": (320, 800)}

pytestmark = pytest.mark.slow

# What a person who hears the page needs: names of fields, one heading at the top and none that is skipped, and a page
# that is no wider than the window.
_CHECK = """() => {
  const wrong = [];
  for (const field of document.querySelectorAll("input:not([type=hidden]), textarea, select"))
    if (!field.labels || !field.labels.length) wrong.push("no label: " + field.outerHTML.slice(0, 80));
  for (const each of document.querySelectorAll("a, button"))
    if (!each.textContent.trim()) wrong.push("no name: " + each.outerHTML.slice(0, 80));
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((each) => Number(each.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1 || levels[0] !== 1) wrong.push("headings: " + levels);
  levels.forEach((level, at) => { if (at && level > levels[at - 1] + 1) wrong.push("headings: " + levels); });
  if (!document.documentElement.lang) wrong.push("no language");
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over > 0) wrong.push("wider than the window by " + over);
  return wrong;
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if _CHROMIUM is None:
        pytest.skip("There is no Chromium here.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("console")
    service = Service("--data", str(place / "data"), log=place / "service.log")
    service.first_key()
    yield service
    service.close()


class Window:
    """A page that is looked at whenever it has changed, and that must not complain."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self._hear(message.text, message.type))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.on("dialog", lambda dialog: self._unexpected(dialog))

    def _hear(self, text: str, kind: str) -> None:
        if kind in ("error", "warning") and "status of 409" not in text:
            self.complaints.append(text)

    def _asked(self, url: str) -> None:
        if not url.startswith("http://127.0.0.1:"):
            self.complaints.append(f"asked for {url}")

    def _unexpected(self, dialog: Any) -> None:
        self.complaints.append(dialog.message or dialog.type)
        dialog.accept()

    def look(self) -> None:
        assert self.page.evaluate(_CHECK) == [], self.page.url
        assert self.complaints == [], self.page.url

    def follow(self, name: str) -> None:
        self.go(self.page.get_by_role("link", name=name, exact=True).first)

    def press(self, name: str) -> None:
        self.go(self.page.locator("main").get_by_role("button", name=name, exact=True))

    def go(self, to: Locator) -> None:
        with self.page.expect_navigation():
            to.click()
        self.look()

    def says(self, text: str) -> None:
        expect(self.page.locator("main")).to_contain_text(text)


@pytest.mark.parametrize("size", _SIZES)
def test_a_memory_is_looked_after_from_the_beginning_to_the_end(chromium: Browser, service: Service, size: str) -> None:
    width, height = _SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, locale="en-GB")
    window = Window(context.new_page())
    page = window.page
    page.goto(f"{service.url}/console")
    window.look()
    page.get_by_label("API key").fill(service.key)
    window.press("Sign in")

    window.follow("New store")
    page.get_by_label("Name").fill(f"Notes, {size}")
    window.press("Create store")
    store = page.url.rpartition("/")[2]

    window.follow("New memory")
    page.get_by_label("Path").fill("/prefs/tea.md")
    page.get_by_label("Content").fill("\nLikes green tea.\nNo sugar.\n<script>alert(1)</script>\n")
    window.press("Create memory")
    window.says("The memory was created.")
    window.says("<script>alert(1)</script>")
    memory = page.url.rpartition("/")[2]

    window.follow("Edit")
    expect(page.get_by_label("Content")).to_have_value("\nLikes green tea.\nNo sugar.\n<script>alert(1)</script>\n")
    page.get_by_label("Content").fill("Likes oolong tea.\nNo sugar.\n")
    address = f"/v1/memory_stores/{store}/memories/{memory}"
    assert service.post(address, {"content": "Likes green tea.\nNo sugar, no milk.\n"}).status == 200
    with page.expect_navigation():
        page.keyboard.press("Control+s")
    window.says("Somebody else changed this memory")
    window.says("no milk")
    expect(page.get_by_label("Your text")).to_have_value("Likes oolong tea.\nNo sugar.\n")
    window.look()
    page.get_by_label("Your text").fill("Likes oolong tea.\nNo sugar, no milk.\n")
    window.press("Save my text over it")
    window.says("The memory was saved.")
    assert service.get(address).json["content"] == "Likes oolong tea.\nNo sugar, no milk.\n"

    window.follow("Versions")
    window.follow("Changes")
    expect(page.locator("del mark")).to_have_text("green")
    expect(page.locator("ins mark")).to_have_text("oolong")
    window.follow("Restore the one before")
    window.press("Restore")
    window.says("The version was restored.")
    window.says("Likes green tea.")

    window.follow("Versions")
    window.go(page.locator("tbody a:has(time)").nth(1))
    window.says("oolong")
    window.follow("Redact")
    page.get_by_label("Yes, erase this version for good").check()
    window.press("Redact")
    window.says("The version was redacted.")
    versions = service.get(f"/v1/memory_stores/{store}/memory_versions").json["data"]
    assert [each["redacted_at"] is None for each in versions] == [True, False, True, True]

    page.goto(f"{service.url}/console/stores/{store}")
    window.follow("prefs/")
    page.keyboard.press("/")
    page.keyboard.type("milk")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?**")
    window.says("/prefs/tea.md")
    window.look()
    for tab in ("History", "As it was", "Undo", "Sessions", "Verify", "Settings", "Memories"):
        window.follow(tab)
    window.follow("中文")
    expect(page.locator("h2").first).to_have_text("全部记忆")
    window.follow("English")
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("h1")).to_have_text("Sign in")
    page.go_back()
    page.reload()
    expect(page.locator("h1")).to_have_text("Sign in")
    assert window.complaints == []
    context.close()


@pytest.mark.parametrize("size", _SIZES)
def test_no_name_is_too_long_for_a_window(chromium: Browser, service: Service, size: str) -> None:
    store = service.post("/v1/memory_stores", {"name": "n" * 255, "description": "d" * 1_024}).json["id"]
    service.memory(store, f"/{'f' * 400}/{'x' * 600}", "w" * 100_000)
    width, height = _SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, locale="zh-CN")
    window = Window(context.new_page())
    page = window.page
    page.goto(f"{service.url}/console/stores/{store}")
    page.get_by_label("API 密钥").fill(service.key)
    window.press("登录")
    expect(page.locator("h1")).to_contain_text("nnn")
    window.go(page.locator(".folder a"))
    window.go(page.locator(".path a").last)
    window.follow("版本")
    for tab in (
        "history",
        "history?kind=user&actor=x",
        "moment?time=2999-01-01",
        "search?query=www",
        "settings",
        "delete",
    ):
        page.goto(f"{service.url}/console/stores/{store}/{tab}")
        window.look()
    context.close()


def test_a_form_that_is_sent_with_a_double_click_is_sent_once(chromium: Browser, service: Service) -> None:
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(f"{service.url}/console/stores/new")
    page.get_by_label("API key").fill(service.key)
    page.get_by_role("button", name="Sign in").click()
    submit = "new Event('submit', {bubbles: true, cancelable: true})"
    sent = page.evaluate(f"() => [1, 2].map(() => document.querySelector('main form').dispatchEvent({submit}))")
    assert sent == [True, False]
    context.close()


def test_it_works_without_scripts_and_the_browser_asks_before_work_is_lost_with_them(
    chromium: Browser, service: Service
) -> None:
    store = service.store("Scripts")
    memory = service.memory(store, "/a.md", "one")["id"]
    for scripts in (False, True):
        context = chromium.new_context(java_script_enabled=scripts, locale="en-GB")
        page = context.new_page()
        page.goto(f"{service.url}/console/stores/{store}/memories/{memory}/edit")
        page.get_by_label("API key").fill(service.key)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Content").fill(f"typed, {scripts}")
        if scripts:
            asked: list[str] = []
            page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))  # noqa: B023
            page.get_by_role("link", name="Cancel").click(no_wait_after=True)
            expect(page.get_by_label("Content")).to_have_value("typed, True")
            assert asked == ["beforeunload"]
            service.post(f"/v1/memory_stores/{store}/memories/{memory}", {"content": "theirs"})
            page.get_by_role("button", name="Save").click()
            page.get_by_role("link", name="Cancel").click(no_wait_after=True)
            expect(page.get_by_label("Your text")).to_have_value("typed, True")
            assert asked == ["beforeunload"] * 2
        page.get_by_role("button", name="Save").click()
        expect(page.locator("main")).to_contain_text("The memory was saved.")
        expect(page.locator("main")).to_contain_text(f"typed, {scripts}")
        context.close()


def test_a_name_without_https_works_as_well(chromium: Browser, service: Service) -> None:
    """Browsers trust it less than this machine, and do not say which site a form comes from: `Origin` does."""
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    said: list[dict[str, str]] = []
    page.on("request", lambda request: said.append(request.all_headers()) if request.method == "POST" else None)
    page.goto(f"http://memory.test:{service.port}/console")
    page.get_by_label("API key").fill(service.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Stores")
    assert ["sec-fetch-site" in each for each in said] == [False]
    assert said[0]["origin"] == f"http://memory.test:{service.port}"
    context.close()


def test_a_link_on_another_site_opens_the_page_of_who_is_signed_in(chromium: Browser, service: Service) -> None:
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(f"{service.url}/console/stores/new")
    page.get_by_label("API key").fill(service.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("New store")
    elsewhere = f"http://localhost:{service.port}/chat"
    html = f"<a href='{service.url}/console/stores/new?x=1'>look</a>"
    page.route(elsewhere, lambda route: route.fulfill(content_type="text/html", body=html))
    page.goto(elsewhere)
    page.get_by_role("link", name="look").click()
    expect(page.locator("h1")).to_have_text("New store")
    assert page.url.endswith("/console/stores/new?x=1")
    context.close()


def test_another_site_can_send_no_form_and_show_no_page(chromium: Browser, service: Service) -> None:
    store = service.store("Framed by nobody")
    context = chromium.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(f"{service.url}/console/stores")
    page.get_by_label("API key").fill(service.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Stores")
    elsewhere = service.url.replace("127.0.0.1", "localhost")
    archive = f"{service.url}/console/stores/{store}/archive"
    form = f"<form method=post action='{archive}'><button>go</button></form>"
    html = f"{form}<iframe src='{service.url}/console/stores'></iframe>"
    page.route(f"{elsewhere}/evil", lambda route: route.fulfill(content_type="text/html", body=html))
    page.goto(f"{elsewhere}/evil")
    frame = next(each for each in page.frames if each != page.main_frame)
    assert "Framed by nobody" not in frame.content()
    page.get_by_role("button", name="go").click()
    expect(page.locator("h1")).to_have_text("This form did not come from the console")
    assert service.get(f"/v1/memory_stores/{store}").json["archived_at"] is None
    context.close()
