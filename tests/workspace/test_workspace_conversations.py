"""A workspace archives conversations and keeps to its policy for credentials, whatever it is kept in."""

from __future__ import annotations

import pytest

from memshelf import InProcessFileStore, MemoryStoreError, Origin, Workspace, WorkspaceConfig
from memshelf.testing import refused

TEA = [{"role": "user", "content": "我喜欢喝绿茶。"}, {"role": "assistant", "content": "Noted: green tea."}]
SECRET = "部署密码是Abc12345x"


@pytest.fixture(params=["directory", "folder", "stores"])
def make(request, tmp_path):
    stores: dict[str, InProcessFileStore] = {}

    def workspace(**options):
        if request.param == "directory":
            return Workspace(tmp_path / "w", durable=False, **options)
        if request.param == "folder":
            return Workspace.folder(tmp_path / "w", durable=False, **options)
        return Workspace.on(lambda user: stores.setdefault(user, InProcessFileStore()), **options)

    return workspace


async def test_conversations_are_archived_and_found_and_are_no_entries(make):
    workspace = make()
    path = await workspace.archive_conversation(TEA, session_id="s1")
    assert path is not None
    assert path.startswith("conversations/")
    (turn,) = await make().search_conversations("绿茶")
    assert (turn.file, turn.session_id) == (path, "s1")
    assert await workspace.list_entries() == []
    assert (await workspace.store.read(path)).text.count("\n## ") == 1


async def test_each_user_has_their_own_conversations(tmp_path):
    workspace = Workspace(tmp_path, user_id="alice", durable=False)
    await workspace.archive_conversation(TEA)
    workspace.set_user("bob")
    assert await workspace.search_conversations("绿茶") == []
    await workspace.archive_conversation([{"role": "user", "content": "红茶"}])
    assert len(list((tmp_path / "users").glob("*/conversations/*.md"))) == 2
    workspace.set_user("alice")
    assert [turn.text for turn in await workspace.search_conversations("茶")] == ["我喜欢喝绿茶。\n\nNoted: green tea."]


async def test_the_directory_of_conversations_can_be_another(tmp_path):
    workspace = Workspace(tmp_path, config=WorkspaceConfig(conversations_dir="logs/chats"), durable=False)
    path = await workspace.archive_conversation(TEA)
    assert path is not None
    assert (tmp_path / "users/default" / path).is_file()
    assert path.startswith("logs/chats/")


async def test_a_file_in_the_place_of_the_conversations_is_told_of_at_once():
    store = InProcessFileStore()
    await store.write("conversations", "mine", expected=None, origin=Origin())
    workspace = Workspace.on(lambda user: store, embedder=None)
    await refused("already_exists", workspace.archive_conversation(TEA))


async def test_a_deleted_user_has_no_conversations(tmp_path):
    workspace = Workspace(tmp_path, durable=False)
    await workspace.archive_conversation(TEA)
    assert await workspace.delete_user("default", confirm=True)
    assert await workspace.search_conversations("绿茶") == []
    await workspace.archive_conversation(TEA)
    assert len(await workspace.search_conversations("绿茶")) == 1


async def test_entries_keep_to_the_policy_and_conversations_are_masked(make, caplog):
    workspace = make()
    file = await workspace.write_memory_entry("Deploy", SECRET)
    assert (await workspace.read_entry(file)).content == SECRET
    assert "An entry seems to hold a credential (password); it is kept as it is" in caplog.messages
    await workspace.archive_conversation([{"role": "user", "content": SECRET}])
    assert (await workspace.search_conversations("部署"))[0].text == "部署密码是[secret: password]"


async def test_credentials_of_entries_are_masked_wherever_they_stand(make):
    workspace = make(secrets="mask")
    file = await workspace.write_memory_entry(SECRET, SECRET, description=SECRET)
    entry = await workspace.read_entry(file)
    assert {entry.title, entry.content, entry.description} == {"部署密码是[secret: password]"}


async def test_an_entry_that_is_refused_changes_nothing(make):
    workspace = make(secrets="refuse")
    for texts in ((SECRET, "x", "x"), ("x", SECRET, "x"), ("x", "x", SECRET)):
        with pytest.raises(MemoryStoreError) as refusal:
            await workspace.write_memory_entry(texts[0], texts[1], description=texts[2])
        assert refusal.value.code == "invalid_text"
    assert await workspace.list_entries() == []
    await workspace.archive_conversation([{"role": "user", "content": SECRET}])
    assert (await workspace.search_conversations("部署"))[0].text == "部署密码是[secret: password]"


async def test_nothing_is_looked_for_where_the_policy_is_off(make, caplog):
    workspace = make(secrets="off")
    await workspace.write_memory_entry("Deploy", SECRET)
    await workspace.archive_conversation([{"role": "user", "content": SECRET}])
    assert (await workspace.search_conversations("部署"))[0].text == SECRET
    assert not any("credential" in message for message in caplog.messages)
