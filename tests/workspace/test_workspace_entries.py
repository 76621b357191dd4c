"""What is written to a workspace is there, as it was given, on every store."""

from __future__ import annotations

import asyncio

import pytest
import yaml
from hypothesis import given, strategies as st

from memshelf import InProcessFileStore, Workspace
from memshelf.files.edits import find
from memshelf.origin import Origin
from memshelf.testing import refused
from memshelf.workspace import entries
from memshelf.workspace.entries import read_entry_file, written

TITLES = [
    "C++", "C#", "C", "c", "🎉", "🎊", "Deploy", "deploy", "a/b", "a\\b", "a_b", "a b", "../../etc/passwd", ".", "..",
    "[x](y)", "](memory/evil.md)", "- list", "- [link](memory/x.md) — y", "'quoted'", '"double"', "key: value", "#tag",
    "{a: b}", "*anchor", "&anchor", "!tag", "%yaml", "@at", "`tick`", "| pipe", "> fold", "? question", "no", "null",
    "~", "2026", "1.5", "2026-11-30", "---", "...", "中文标题", "中文标题二", "x" * 50 + "1", "x" * 50 + "2", "é",
    "İstanbul", "Straße", "👩‍👩‍👧", "a\u200bb", "ends with \\", "<b>bold</b>", "\ufeffbom", "y" * 200, "字" * 200,
]  # fmt: skip


async def test_an_entry_is_the_file_that_the_layout_promises(opened):
    workspace = opened()
    file = await workspace.write_memory_entry(
        title="Python Style",
        content="User prefers concise, typed Python. Avoid unnecessary comments.",
        memory_type="feedback",
        description="python coding style typed concise",
    )
    assert file == "feedback_python_style.md"
    stored = await workspace.store.read(f"memory/{file}")
    assert stored.text == (
        "---\nname: Python Style\ndescription: python coding style typed concise\ntype: feedback\n---\n\n"
        "User prefers concise, typed Python. Avoid unnecessary comments."
    )
    assert await workspace.memory_index() == (
        "- [Python Style](memory/feedback_python_style.md) — python coding style typed concise\n"
    )


async def test_titles_of_every_kind_have_files_of_their_own_and_come_back_as_they_were(opened):
    workspace = opened()
    files = [await workspace.write_memory_entry(title, f"About {title}.", "project") for title in TITLES]
    assert len(set(files)) == len(TITLES)
    assert [(await workspace.read_entry(file)).title for file in files] == TITLES
    assert {each.title for each in await opened().list_entries()} == set(TITLES)
    for file in files:
        head = (await workspace.store.read(f"memory/{file}")).text.split("---\n")[1]
        assert yaml.safe_load(head)["name"] in TITLES
    rows = (await workspace.memory_index()).removesuffix("\n").split("\n")
    assert len(rows) == len(TITLES), "one row an entry"
    await workspace.rebuild_index()
    assert (await workspace.memory_index()).removesuffix("\n").split("\n") == rows


CONTENTS = [
    "\n\nleading", "trailing \n\n", "---\nname: forged\n---\n", "a\r\nb\r\n", "\ufeffbom", "a\u2028b\x85c", "\x00",
    "🎉" * 50,
]  # fmt: skip


async def test_content_is_stored_to_the_byte(opened):
    workspace = opened()
    for content in CONTENTS:
        file = await workspace.write_memory_entry("Title", content, "user", "words")
        entry = await workspace.read_entry(file)
        assert (entry.title, entry.description, entry.content) == ("Title", "words", content)


async def test_white_space_and_unicode_forms_make_no_other_title(opened):
    workspace = opened()
    first = await workspace.write_memory_entry("Café  break", "one", "project")
    assert await workspace.write_memory_entry(" Cafe\u0301\nbreak\u3000", "two", "project") == first
    [entry] = await workspace.list_entries()
    assert (entry.title, (await workspace.read_entry(first)).content) == ("Café break", "two")


async def test_writing_again_updates_the_entry_and_moves_its_row_last(opened):
    workspace = opened()
    first = await workspace.write_memory_entry("One", "old", "user")
    await workspace.write_memory_entry("Two", "text", "user")
    other = await workspace.write_memory_entry("One", "of another type", "project")
    assert await workspace.write_memory_entry("One", "new", "user", "about one") == first != other
    assert [line[:7] for line in (await workspace.memory_index()).splitlines()] == ["- [Two]", "- [One]", "- [One]"]
    assert (await workspace.memory_index()).endswith(f"- [One](memory/{first}) — about one\n")
    newest, *_ = await workspace.list_entries()
    assert newest.file == first


FAULTS = [
    {"title": ""}, {"title": " \n "}, {"title": "x" * 201}, {"title": "x" * 26_000}, {"title": "a\x00b"},
    {"title": "a\x1b[31m"}, {"title": "half \ud800"}, {"content": ""}, {"content": " \n"}, {"description": "x" * 201},
    {"source": "auto_extract"}, {"source": "verified"}, {"source": None},
    {"memory_type": "../user"}, {"memory_type": "note"}, {"memory_type": ""}, {"memory_type": "User"},
]  # fmt: skip


async def test_what_cannot_be_kept_is_refused_before_anything_is_written(opened):
    workspace = opened()
    for fault in FAULTS:
        with pytest.raises(ValueError, match=r"\."):
            await workspace.write_memory_entry(**{"title": "T", "content": "C", "memory_type": "user"} | fault)
    assert await workspace.store.list() == []


async def test_content_that_is_too_large_or_no_text_is_refused_by_the_store(opened):
    workspace = opened()
    await refused("too_large", workspace.write_memory_entry("T", "x" * 200_000, "user"))
    await refused("invalid_file", workspace.write_memory_entry("T", "half \ud800", "user"))
    assert await workspace.list_entries() == []
    assert await workspace.memory_index() == ""
    await workspace.write_memory_entry("Tea", "Green.", "user")
    for content in ("half \ud800", "first\nhalf \ud800"):
        await refused("invalid_file", workspace.write_memory_entry("T", content, "user"))
    assert [each.title for each in await workspace.list_entries()] == ["Tea"]


async def test_a_multi_line_description_is_folded(opened):
    workspace = opened()
    file = await workspace.write_memory_entry("T", "C", "user", "one\ntwo:  three ](x)\u2028four")
    assert (await workspace.read_entry(file)).description == "one two: three ](x) four"
    assert await workspace.memory_index() == f"- [T](memory/{file}) — one two: three ](x) four\n"


async def test_forgetting_removes_the_file_and_its_row(opened):
    workspace, other = opened(), opened()
    kept = await workspace.write_memory_entry("Kept", "tea", "user")
    gone = await workspace.write_memory_entry("Gone", "coffee", "user")
    assert len(await other.list_entries()) == 2
    await workspace.forget(gone)
    assert [each.file for each in await other.list_entries()] == [kept]
    assert await other.search("coffee") == []
    assert gone not in await workspace.memory_index()
    await refused("not_found", workspace.forget(gone))
    await refused("not_found", workspace.read_entry(gone))
    again = await workspace.write_memory_entry("Gone", "back", "user")
    assert again == gone


async def test_no_name_of_a_file_leads_out_of_the_memory(opened):
    workspace = opened()
    for file in ("../MEMORY.md", "/etc/passwd", "a/../../x.md", "..\\x.md", "", "notes.txt", "a\x00.md"):
        for call in (workspace.read_entry, workspace.forget, workspace.promote, workspace.reject):
            await refused("invalid_path", call(file))


async def test_fifty_writes_at_once_are_all_there_with_their_rows(opened):
    workspace = opened()
    files = await asyncio.gather(
        *(workspace.write_memory_entry(f"Fact {each}", f"value {each}", "project") for each in range(50))
    )
    assert len(set(files)) == 50
    assert {each.title for each in await opened().list_entries()} == {f"Fact {each}" for each in range(50)}
    assert sorted((await workspace.memory_index()).splitlines()) == sorted(
        f"- [Fact {each}](memory/project_fact_{each}.md) — value {each}" for each in range(50)
    )


async def test_two_handles_that_write_one_title_at_once_keep_one_entry(opened):
    first, second = opened(), opened()
    files = await asyncio.gather(
        *(handle.write_memory_entry("Same", f"by {name}", "user") for handle, name in ((first, "a"), (second, "b")))
    )
    assert len(set(files)) == 1
    assert len(await opened().list_entries()) == 1
    assert (await first.memory_index()).count("\n") == 1


async def test_candidates_are_recalled_with_a_mark_listed_promoted_and_rejected(opened):
    workspace = opened()
    auto = await workspace.write_memory_entry("Tea", "Drinks oolong.", "user", "tea oolong", source="auto")
    bad = await workspace.write_memory_entry("Wrong", "Hates tea.", "user", "tea", source="auto")
    assert await workspace.memory_index() == ""
    assert {each.file for each in await workspace.candidates()} == {auto, bad}
    assert "### Tea (extracted automatically, not confirmed)\n\nDrinks oolong." in (
        await workspace.get_relevant_memories("oolong")
    )
    await workspace.reject(bad)
    assert await workspace.promote(auto) == auto
    assert await workspace.candidates() == []
    assert await workspace.memory_index() == f"- [Tea](memory/{auto}) — tea oolong\n"
    assert "### Tea\n\nDrinks oolong." in await workspace.get_relevant_memories("oolong")
    await refused("conflict", workspace.reject(auto))


async def test_a_rejection_stays_with_the_user_with_whom_it_began(directory):
    workspace = directory("alice")
    for user in ("bob", "alice"):
        workspace.set_user(user)
        file = await workspace.write_memory_entry("Tea", "Drinks oolong.", "user", source="auto")
    rejecting = asyncio.create_task(workspace.reject(file))
    await asyncio.sleep(0)
    workspace.set_user("bob")
    await rejecting
    assert [each.file for each in await workspace.candidates()] == [file]
    workspace.set_user("alice")
    assert await workspace.candidates() == []


class Meanwhile(InProcessFileStore):
    """A store in which something else happens right after the next read."""

    then = None

    async def read(self, path):
        found, then, self.then = await super().read(path), self.then, None
        if then is not None:
            await then()
        return found


@pytest.mark.parametrize("confirmed", [False, True])
async def test_a_candidate_that_is_rewritten_at_that_very_moment_is_promoted_as_it_is_then(confirmed):
    store = Meanwhile()
    workspace = Workspace.on(lambda user: store, embedder=None)
    if confirmed:
        await workspace.write_memory_entry("Tea", "Drinks green tea.", "user")
    file = await workspace.write_memory_entry("Tea", "Drinks oolong.", "user", source="auto")
    store.then = lambda: workspace.write_memory_entry("Tea", "Drinks oolong, cold.", "user", source="auto")
    kept = await workspace.promote(file)
    assert (kept == file) is not confirmed
    assert (await workspace.read_entry(kept)).content == "Drinks oolong, cold."
    assert [each.source for each in await workspace.list_entries()] == ["confirmed"]


async def test_a_candidate_that_is_rejected_at_that_very_moment_is_not_promoted():
    store = Meanwhile()
    workspace = Workspace.on(lambda user: store, embedder=None)
    file = await workspace.write_memory_entry("Tea", "Drinks oolong.", "user", source="auto")
    store.then = lambda: workspace.reject(file)
    await refused("not_found", workspace.promote(file))
    assert await workspace.list_entries() == []


async def test_a_candidate_that_is_promoted_at_that_very_moment_is_not_rejected():
    store = Meanwhile()
    workspace = Workspace.on(lambda user: store, embedder=None)
    file = await workspace.write_memory_entry("Tea", "Drinks oolong.", "user", source="auto")
    store.then = lambda: workspace.promote(file)
    await refused("version_mismatch", workspace.reject(file))
    assert (await workspace.read_entry(file)).source == "confirmed"


async def test_a_candidate_never_replaces_what_is_confirmed_until_it_is_promoted(opened):
    workspace = opened()
    confirmed = await workspace.write_memory_entry("Tea", "Green.", "user")
    candidate = await workspace.write_memory_entry("Tea", "Oolong.", "user", source="auto")
    assert candidate != confirmed
    assert await workspace.write_memory_entry("Tea", "Black.", "user", source="auto") == candidate
    assert (await workspace.read_entry(confirmed)).content == "Green."
    assert await workspace.promote(candidate) == confirmed
    assert (await workspace.read_entry(confirmed)).content == "Black."
    assert [each.file for each in await workspace.list_entries()] == [confirmed]


async def test_a_confirmed_write_takes_the_place_of_a_candidate(opened):
    workspace = opened()
    candidate = await workspace.write_memory_entry("Tea", "Oolong.", "user", source="auto")
    assert await workspace.write_memory_entry("Tea", "Green.", "user") == candidate
    assert await workspace.candidates() == []
    assert candidate in await workspace.memory_index()


async def test_keys_that_others_keep_in_the_frontmatter_survive_an_update(opened):
    workspace = opened()
    text = "---\nname: Tea\ntype: user\ntags: [a, b]\nsince: 2024-05-01\nsource: verified\n---\n\nOld.\n"
    await workspace.store.write("memory/by-hand.md", text, expected=None, origin=Origin())
    assert await workspace.write_memory_entry("Tea", "New.", "user", "leaf") == "by-hand.md"
    stored = (await workspace.store.read("memory/by-hand.md")).text
    assert yaml.safe_load(stored.split("---\n")[1]) == yaml.safe_load(
        "{name: Tea, description: leaf, type: user, tags: [a, b], since: 2024-05-01}"
    )
    assert stored.endswith("---\n\nNew.")


async def test_what_others_keep_in_the_frontmatter_stays_as_they_wrote_it(opened):
    workspace = opened()
    lines = [
        "mine: yes", "version: 1.10", "zip: 012", "at: 12:30:00", "amount: 1_000", "day: 2026-02-30", "quoted: 'x'",
        "tags: [a, b]", "text: |\n  one\n  two", "nothing:", "图标: 🎉",
    ]  # fmt: skip
    head = "\n".join(lines)
    for number, text in enumerate((f"name: Tea 0\ntype: user\n{head}", "{name: Tea 1, type: user, mine: yes}")):
        path = f"memory/tea-{number}.md"
        await workspace.store.write(path, f"---\n{text}\n---\n\nOld.\n", expected=None, origin=Origin())
        await workspace.write_memory_entry(f"Tea {number}", "New.", "user")
        stored = (await workspace.store.read(path)).text
        assert stored == f"---\nname: Tea {number}\ntype: user\n{lines[0] if number else head}\n---\n\nNew."


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("note: see: here", "note: 'see: here'"),
        ("tags: [a, b\nversion: 1.10", "tags: '[a, b'\nversion: 1.10"),
        (
            "title: Core (Split: Core)\nseen:\n- x: 1\n- y\n图标: 🎉",
            "title: 'Core (Split: Core)'\nseen:\n- x: 1\n- y\n图标: 🎉",
        ),
        ("to: @ann", "to: '@ann'"),
        ("name: Tea: green\nzip: 012", "zip: 012"),
    ],
)
def test_what_others_keep_in_a_frontmatter_that_is_no_yaml_survives_an_update(given, kept):
    """As it may be in files that a person writes."""
    before = f"---\nname: Tea\ntype: user\n{given}\n---\n\nOld.\n"
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load(before.split("---\n")[1])
    assert written("Tea", "", "user", "New.", "confirmed", before) == f"---\nname: Tea\ntype: user\n{kept}\n---\n\nNew."


NOT_TO_BE_KEPT = [
    "n: " + "[" * 900 + "]" * 900, "n: !!bool x", "n: !!int ''", "n: !!float ''", "n: !!timestamp x", "n: 2026-02-30",
    "n: !!binary '@'", "? [a]\n: b", "n: !!python/object:os.system x",
]  # fmt: skip


async def test_a_key_that_cannot_be_kept_does_not_keep_an_entry_from_being_written(opened):
    workspace = opened()
    for number, head in enumerate(NOT_TO_BE_KEPT):
        text = f"---\nname: Tea {number}\ntype: user\n{head}\n---\n\nOld.\n"
        await workspace.store.write(f"memory/tea-{number}.md", text, expected=None, origin=Origin())
        assert await workspace.write_memory_entry(f"Tea {number}", "New.", "user") == f"tea-{number}.md"
        assert (await workspace.read_entry(f"tea-{number}.md")).content == "New."


async def test_what_metadata_says_of_an_entry_ends_when_the_entry_is_written(opened):
    workspace = opened()
    text = "---\nname: Tea\nmetadata:\n  type: user\n  source: auto\n  description: old\n  node: 7\n---\n\nGreen.\n"
    await workspace.store.write("memory/tea.md", text, expected=None, origin=Origin())
    assert [each.file for each in await workspace.candidates()] == ["tea.md"]
    assert await workspace.promote("tea.md") == "tea.md"
    assert await workspace.candidates() == []
    await workspace.write_memory_entry("Tea", "Black.", "user")
    stored = (await workspace.store.read("memory/tea.md")).text
    assert yaml.safe_load(stored.split("---\n")[1]) == {"name": "Tea", "type": "user", "metadata": {"node": 7}}


async def test_another_entrys_file_is_never_taken(opened):
    workspace = opened()
    for name in ("user_tea.md", "user_tea_x.md"):
        await workspace.store.write(f"memory/{name}", "A note of mine.\n", expected=None, origin=Origin())
    file = await workspace.write_memory_entry("Tea", "Green.", "user")
    assert file not in ("user_tea.md", "user_tea_x.md")
    assert (await find(workspace.store, "memory/user_tea.md")).text == "A note of mine.\n"


def test_what_is_written_without_yaml_is_what_yaml_would_write():
    words = [
        "true",
        "No",
        "null",
        "Y",
        "a b",
        "A, b (c)",
        "x-y",
        "日期 2026",
        "a: b",
        "a #b",
        "- a",
        "end-",
        "é",
        "0x1",
        "e1",
    ]
    for title in [*TITLES, *words]:
        text = written(title, title, "user", "", "confirmed")
        head = yaml.safe_load(text.split("---\n")[1])
        assert head == {"name": title, "description": title, "type": "user"}
        assert read_entry_file("x.md", text).title == title


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["name", "description", "type", "source", "tags", "日期", "on", "a b", "1", "-"]),
            st.text(st.sampled_from("abnoY 日é1_-,()/+:#'\r\u2028"), max_size=6)
            | st.sampled_from(["true", "no", "null", "Tea (green)", "~", "0x1", " x", "x "]),
        ),
        max_size=4,
    )
)
def test_what_is_read_without_yaml_is_what_yaml_would_read(lines):
    head = "".join(f"{key}: {value}\n" for key, value in lines)
    plain = entries._plain_fields(head)
    if plain is not None:
        assert plain == (yaml.load(head, Loader=yaml.BaseLoader) or {})
        assert plain == (yaml.safe_load(head) or {})


async def test_a_hundred_writers_of_one_title_all_have_their_turn(opened):
    workspace, other = opened(), opened()
    files = await asyncio.gather(
        *((workspace, other)[n % 2].write_memory_entry("Tea", f"Cup {n}.", "user") for n in range(100))
    )
    assert set(files) == {"user_tea.md"}
    [entry] = await workspace.list_entries()
    assert (await workspace.read_entry(entry.file)).content.startswith("Cup ")
    await asyncio.gather(*((workspace, other)[n % 2].experiences.learn("Use pnpm.") for n in range(100)))
    assert [each.lesson for each in await workspace.experiences.list()] == ["Use pnpm."]
