"""Taking over what other programs keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from memshelf import InProcessFileStore, Workspace, import_memories
from memshelf.testing import refused


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def theirs(tmp_path):
    """A workspace as Agentica 1.5 writes it."""
    for user, facts in (("default", ("Python Style", "Deadline")), ("ann.b", ("Tea",))):
        root = tmp_path / "theirs" / "users" / user
        (root / "memory").mkdir(parents=True)
        rows = []
        for fact in facts:
            name = f"feedback_{fact.lower().replace(' ', '_')}.md"
            (root / "memory" / name).write_text(
                f"---\nname: {fact}\ndescription: about {fact}: all\ntype: feedback\nsource: verified\n---\n\n"
                f"On {fact}."
            )
            rows.append(f"- [{fact}](memory/{name}) — about {fact}: all")
        (root / "MEMORY.md").write_text("\n".join(rows))
        (root / "AGENTS.md").write_text(f"Rules of {user}.\n")
    candidates = tmp_path / "theirs" / "users" / "default" / "memory_candidates"
    candidates.mkdir()
    (candidates / "user_age.md").write_text(
        '---\nname: Age\ndescription: age\ntype: user\nsource: auto_extract\nevidence_refs: ["run 1"]\n---\n\nIs forty.'
    )
    return tmp_path / "theirs"


async def test_their_workspace_is_read_as_it_is_and_nothing_is_rewritten(theirs):
    before = _tree(theirs)
    workspace = Workspace(theirs, embedder=None)
    assert [each.title for each in await workspace.list_entries()] == ["Deadline", "Python Style"]
    [entry] = await workspace.search("python style")
    assert (entry.description, entry.content) == ("about Python Style: all", "On Python Style.")
    assert "Rules of default." in (await workspace.freeze_snapshots()).text()
    assert _tree(theirs) == before
    await workspace.write_memory_entry("Deadline", "Moved.", "feedback")
    after = _tree(theirs)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"users/default/MEMORY.md", "users/default/memory/feedback_deadline.md"}


async def test_a_workspace_is_imported_user_by_user(theirs, directory):
    before, into = _tree(theirs), directory()
    report = await import_memories(theirs, into)
    assert sorted(report.imported) == [
        "ann.b: AGENTS.md", "ann.b: feedback_tea.md", "default: AGENTS.md", "default: feedback_deadline.md",
        "default: feedback_python_style.md", "default: user_age.md",
    ]  # fmt: skip
    assert report.left == report.shortened == report.unchanged == []
    assert into.user_id == "default"
    assert await into.list_users() == ["ann.b", "default"]
    assert [each.title for each in await into.list_entries()] == ["Age", "Deadline", "Python Style"]
    assert [each.title for each in await into.candidates()] == ["Age"]
    assert _tree(theirs) == before
    again = await import_memories(theirs, into)
    assert (again.imported, again.left, len(again.unchanged)) == ([], [], 4)


async def test_what_is_there_already_is_left_alone_unless_it_is_to_be_replaced(theirs, opened):
    into = opened()
    file = await into.write_memory_entry("Deadline", "Mine.", "feedback")
    source = theirs / "users" / "default"
    report = await import_memories(source, into)
    assert report.left == [("default: feedback_deadline.md", "There is another entry of this title and type.")]
    assert (await into.read_entry(file)).content == "Mine."
    report = await import_memories(source, into, replace=True)
    assert report.imported == ["default: feedback_deadline.md"]
    assert (await into.read_entry(file)).content == "On Deadline."


async def test_a_folder_with_entries_beside_the_index_is_imported(tmp_path, directory):
    source = tmp_path / "memory"
    source.mkdir()
    (source / "MEMORY.md").write_text("- [Testing](feedback_testing.md) — no mocks\n")
    (source / "feedback_testing.md").write_text(
        "---\nname: Testing\ndescription: no mocks\nmetadata:\n  type: feedback\n---\n\nUse a database.\n"
    )
    (source / "long.md").write_text(f"---\nname: {'t' * 250}\ndescription: {'d' * 250}\ntype: user\n---\n\nBody.\n")
    (source / "empty.md").write_text("---\nname: Empty\n---\n\n")
    (source / "latin.md").write_bytes("---\nname: Café\n---\n\nOpen.\n".encode("latin-1"))
    into = directory("alice")
    report = await import_memories(source, into)
    assert sorted(report.imported) == ["alice: feedback_testing.md", "alice: long.md"]
    assert report.shortened == ["alice: long.md"]
    assert [name for name, _ in report.left] == ["alice: empty.md", "alice: latin.md"]
    assert report.left[1][1] == "It is not UTF-8 text."
    [long] = await into.search("t" * 200)
    assert long.content == f"{'t' * 250}\n\n{'d' * 250}\n\nBody.\n"


async def test_nowhere_is_not_found(tmp_path, directory):
    await refused("not_found", import_memories(tmp_path / "nowhere", directory()))


async def test_standing_rules_that_are_no_text_do_not_cost_the_other_users(theirs, directory):
    (theirs / "users" / "ann.b" / "AGENTS.md").write_bytes("规则\n".encode("gbk"))
    (theirs / "users" / "ann.b" / "MEMORY.md").write_bytes("索引\n".encode("gbk"))
    report = await import_memories(theirs, directory())
    assert [name for name, _ in report.left] == ["ann.b: AGENTS.md"]
    assert {"ann.b: feedback_tea.md", "default: AGENTS.md"} <= set(report.imported)


async def test_whoever_uses_the_workspace_meanwhile_stays_with_their_user(theirs):
    seen: list[str] = []
    stores: dict[str, InProcessFileStore] = {}

    class Watched(InProcessFileStore):
        async def write(self, *args, **options):
            seen.append(into.user_id)
            return await super().write(*args, **options)

    into = Workspace.on(lambda user: stores.setdefault(user, Watched()), "alice", embedder=None)
    await import_memories(theirs, into)
    assert stores.keys() == {"alice", "ann.b", "default"}
    assert set(seen) == {"alice"}
