"""Users never meet."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from memshelf import InProcessFileStore, MemoryStoreError, Workspace, WorkspaceConfig
from memshelf.testing import refused
from memshelf.workspace.users import checked_user, directory_name, user_of

ODD = [
    "default", "alice", "Alice", "a/b", "a\\b", "a_b", "a%2Fb", "a b", ".", "..", "../x", "...", "~", "-", "_", "%",
    "%2E", "用户", "é", "e\u0301", "\u212b", "\u00c5", "ⅷ", "a.b", "CON", "x:y", "🎉", "a" * 128, "<b>", "'", '"', "*",
    "?", "|", ".memshelf", "users", "字" * 80,
]  # fmt: skip


def test_the_mapping_from_users_to_directories_is_injective_and_reversible():
    names = {user: directory_name(user) for user in ODD}
    assert len(set(names.values())) == len(ODD)
    assert len({name.encode() for name in names.values()}) == len(ODD)
    assert {user: user_of(name) for user, name in names.items()} == {user: user for user in ODD}
    assert not any(name in (".", "..") or set("/\\.:<>\"'*?|~") & set(name) for name in names.values())


def test_names_that_the_specification_gives_are_kept():
    assert directory_name("Ann_9-x") == "Ann_9-x"
    assert directory_name("用户é") == "用户é"
    assert directory_name("a.b/c d") == "a%2Eb%2Fc%20d"
    assert directory_name("🎉") == "%F0%9F%8E%89"


@pytest.mark.parametrize("user", [" a", "a ", "a\n", "\x00", "a\tb", "x" * 129, "字" * 100, "\ud800", " ", "\u3000"])
def test_odd_ids_are_refused(user, tmp_path):
    with pytest.raises(ValueError, match="user id"):
        checked_user(user)
    with pytest.raises(ValueError, match="user id"):
        Workspace(tmp_path).set_user(user)
    assert os.listdir(tmp_path) == []


def test_no_id_is_the_default_one(tmp_path):
    assert [Workspace(tmp_path, user).user_id for user in (None, "")] == ["default", "default"]


async def test_deleting_the_user_of_an_empty_id_deletes_nobody(tmp_path):
    workspace = Workspace(tmp_path)
    await workspace.write_memory_entry("Name", "I am Ann.", "user")
    with pytest.raises(ValueError, match="user id"):
        await workspace.delete_user("", confirm=True)
    assert await workspace.list_users() == ["default"]


def test_an_empty_path_is_no_workspace():
    with pytest.raises(ValueError, match="`path` is empty"):
        Workspace("")
    with pytest.raises(ValueError, match="`path` is empty"):
        Workspace.folder("")


@pytest.mark.parametrize("directory", ["a.b", "a%2fb", "%41", "%", "a b", "%ZZ", ".memshelf"])
def test_a_directory_that_is_no_users_is_not_listed(directory):
    assert user_of(directory) is None


async def test_every_odd_user_has_a_memory_of_its_own(directory, tmp_path):
    for user in ODD:
        await directory(user).write_memory_entry("Name", f"I am {user!r}.", "user")
    assert await directory().list_users() == sorted(ODD)
    for user in ODD:
        [entry] = await directory(user).list_entries()
        assert (await directory(user).read_entry(entry.file)).content == f"I am {user!r}."
    assert set(os.listdir(tmp_path)) == {"users"}
    assert len(os.listdir(tmp_path / "users")) == len(ODD)


async def test_another_user_is_never_shown_what_the_first_one_kept(opened):
    workspace = opened("alice")
    await workspace.write_memory_entry("Secret", "The word is zebra.", "user")
    surfaced: set[str] = set()
    assert "zebra" in await workspace.get_relevant_memories("zebra", already_surfaced=surfaced)
    frozen = await workspace.freeze_snapshots()
    workspace.set_user("bob")
    assert workspace.user_id == "bob"
    assert await workspace.list_entries() == []
    assert await workspace.get_relevant_memories("zebra") == ""
    assert await workspace.get_relevant_memories("") == ""
    assert await workspace.search("zebra") == []
    assert await workspace.memory_index() == ""
    assert "Secret" not in (await workspace.freeze_snapshots()).text()
    await workspace.write_memory_entry("Mine", "A lion.", "user")
    workspace.set_user("alice")
    assert [each.title for each in await workspace.list_entries()] == ["Secret"]
    assert frozen.user_id == "alice"


async def test_deleting_a_user_takes_only_that_users_memory(opened):
    alice, bob = opened("alice"), opened("bob")
    await alice.write_memory_entry("A", "text", "user")
    await bob.write_memory_entry("B", "text", "user")
    with pytest.raises(ValueError, match="confirm"):
        await alice.delete_user("bob")
    assert await alice.delete_user("bob", confirm=True)
    assert await bob.list_entries() == []
    assert await opened("bob").list_entries() == []
    assert [each.title for each in await opened("alice").list_entries()] == ["A"]
    assert not await alice.delete_user("bob", confirm=True)
    assert await alice.delete_user("alice", confirm=True)
    assert await alice.list_entries() == []
    await alice.write_memory_entry("Again", "text", "user")
    assert [each.title for each in await opened("alice").list_entries()] == ["Again"]


async def test_deleting_the_user_called_dot_leaves_everybody_else(directory, tmp_path):
    for user in (".", "..", "alice"):
        await directory(user).write_memory_entry("T", "text", "user")
    assert await directory().delete_user(".", confirm=True)
    assert await directory().delete_user("..", confirm=True)
    assert await directory().list_users() == ["alice"]
    assert (tmp_path / "users" / "alice" / "memory" / "user_t.md").exists()


async def test_a_link_in_the_place_of_a_user_is_removed_and_not_followed(directory, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "users").mkdir()
    (tmp_path / "users" / "eve").symlink_to(outside)
    (outside / "note.md").write_text("Somebody else's.")
    assert await directory().delete_user("eve", confirm=True)
    assert [path.name for path in outside.iterdir()] == ["note.md"]
    assert await directory().list_users() == []


async def test_a_file_in_the_place_of_the_users_is_said_to_be_unavailable(directory, tmp_path):
    (tmp_path / "users").write_text("")
    workspace = directory()
    await refused("unavailable", workspace.list_users())
    await refused("unavailable", workspace.write_memory_entry("T", "x", "user"))
    with pytest.raises(MemoryStoreError) as refusal:
        workspace.initialize()
    assert refusal.value.code == "unavailable"


def test_initialising_makes_what_a_person_looks_for_and_can_be_repeated(tmp_path):
    workspace = Workspace(tmp_path / "w", user_id="alice")
    workspace.initialize()
    rules = tmp_path / "w" / "users" / "alice" / "AGENTS.md"
    rules.write_text("Always use tabs.\n")
    workspace.initialize()
    assert rules.read_text() == "Always use tabs.\n"
    assert sorted(os.listdir(rules.parent)) == ["AGENTS.md", "conversations", "memory"]
    assert os.listdir(tmp_path / "w") == ["users"], "no AGENTS.md at the root"
    assert rules.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("first", ["initialize", "entry", "conversation"])
async def test_nobody_else_reads_a_workspace_or_who_its_users_are_whatever_the_umask(tmp_path, first):
    workspace = Workspace(tmp_path / "above" / "w", user_id="alice", embedder=None)
    before = os.umask(0)
    try:
        if first == "initialize":
            workspace.initialize()
        elif first == "entry":
            await workspace.write_memory_entry("Tea", "Green.", "user")
        else:
            await workspace.archive_conversation([{"role": "user", "content": "hi"}], "s1")
    finally:
        os.umask(before)
    assert {str(each) for each in tmp_path.rglob("*") if each.stat().st_mode & 0o077} == set()


async def test_nothing_is_written_before_the_first_write(directory, tmp_path):
    workspace = directory()
    assert await workspace.list_entries() == []
    assert await workspace.get_relevant_memories("anything") == ""
    assert await workspace.list_users() == []
    await workspace.freeze_snapshots(cwd=tmp_path)
    assert os.listdir(tmp_path) == []


async def test_the_layout_can_be_named_otherwise(tmp_path):
    config = WorkspaceConfig(agent_md="RULES.md", memory_md="INDEX.md", memory_dir="facts/all", users_dir="people")
    workspace = Workspace(tmp_path, "ann", config, durable=False, embedder=None)
    workspace.initialize()
    file = await workspace.write_memory_entry("Tea", "Green.", "user")
    root = tmp_path / "people" / "ann"
    assert (root / "facts" / "all" / file).exists()
    assert (root / "INDEX.md").read_text() == f"- [Tea](facts/all/{file}) — Green.\n"
    assert (root / "RULES.md").exists()


@pytest.mark.parametrize("name", ["", "../x", "/x", "a//b", "a\\b", ".", "a/../b"])
def test_a_layout_that_leads_out_of_the_workspace_is_refused(name):
    for field in ("agent_md", "memory_md", "users_dir", "conversations_dir"):
        with pytest.raises(ValueError, match=field):
            WorkspaceConfig(**{field: name})
    if name:
        with pytest.raises(ValueError, match="memory_dir"):
            WorkspaceConfig(memory_dir=name)


async def test_a_closed_workspace_opens_again(tmp_path):
    async with Workspace(tmp_path, durable=False) as workspace:
        await workspace.write_memory_entry("Tea", "Drinks oolong.", "user")
    assert [each.title for each in await workspace.search("oolong")] == ["Tea"]
    await workspace.write_memory_entry("Coffee", "Black.", "user")
    await workspace.aclose()
    assert len(await Workspace(tmp_path, embedder=None).list_entries()) == 2


async def test_one_workspace_serves_any_number_of_users(directory):
    workspace = directory()
    users = [f"user-{number}" for number in range(100)]
    for user in users:
        workspace.set_user(user)
        await workspace.write_memory_entry("Name", f"I am {user}.", "user")
    for user in users:
        workspace.set_user(user)
        [entry] = await workspace.list_entries()
        assert entry.hook == f"I am {user}."
    assert len(workspace._users) < 50
    assert await workspace.list_users() == sorted(users)


async def test_a_folder_is_emptied_once(tmp_path):
    workspace = Workspace.folder(tmp_path, embedder=None)
    await workspace.write_memory_entry("T", "x", "user")
    await workspace.archive_conversation([{"role": "user", "content": "tea " * 50_000}])
    assert await workspace.delete_user("default", confirm=True)
    assert not await workspace.delete_user("default", confirm=True)
    assert await workspace.search_conversations("tea") == []


async def test_a_layout_whose_names_are_decomposed_is_found_again():
    store = InProcessFileStore()
    config = WorkspaceConfig(memory_dir="me\u0301moire", memory_md="INDEX\u0327.md", agent_md="RE\u0300GLES.md")
    workspace = Workspace.on(lambda user: store, config=config, embedder=None)
    await workspace.write_memory_entry("Tea", "Green.", "user")
    again = Workspace.on(lambda user: store, config=config, embedder=None)
    assert [each.file for each in await again.list_entries()] == ["user_tea.md"]
    assert await again.read_entry("me\u0301moire/user_tea.md") == await again.read_entry("user_tea.md")
    beside = Workspace.on(lambda user: store, config=replace(config, memory_dir=""), embedder=None)
    assert [each.file for each in await beside.list_entries()] == ["m\u00e9moire/user_tea.md"]
