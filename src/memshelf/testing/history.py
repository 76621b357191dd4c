"""The contract of `HistoryFileStore`, as tests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from memshelf.files import edits
from memshelf.files.model import Changes, FullResync, Version
from memshelf.files.protocol import HistoryFileStore
from memshelf.limits import FileFormat
from memshelf.origin import Origin
from memshelf.testing.harness import ORIGIN, StoreContract, contents, refused, scenario

__all__ = ["HistoryFileStoreContract"]

_CALL = Origin("run-1", "ann", "call-1", "session-1", "key-1")


async def _all_versions(store: HistoryFileStore, path: str | None = None, *, limit: int = 50) -> list[Version]:
    found: list[Version] = []
    cursor: str | None = None
    while True:
        page = await store.versions(path, limit=limit, cursor=cursor)
        found += page.versions
        if (cursor := page.next_cursor) is None:
            return found


class HistoryFileStoreContract(StoreContract):
    """What every store with history guarantees, beyond `FileStoreContract`. `own_origin`: the origin of a change is
    recorded as it is given; a service knows better by which key, or in which session, a change was made."""

    own_origin = True

    def _recorded(self, origin: Origin) -> Origin:
        return origin if self.own_origin else replace(origin, session_id=None, api_key_id=None)

    # Versions

    @scenario
    async def test_every_change_writes_one_version_that_tells_who_made_it(self, store: HistoryFileStore) -> None:
        origins = [Origin("run", "ann", f"call-{each}") for each in range(4)]
        before = datetime.now(UTC) - timedelta(seconds=1)
        created = await store.write("a", "one", expected=None, origin=origins[0])
        modified = await store.write("a", "tüe", expected=created, origin=origins[1])
        moved = await store.move("a", "b/c", expected=modified, origin=origins[2])
        await store.delete("b/c", expected=moved, origin=origins[3])
        newest = await _all_versions(store)
        assert [version.operation for version in newest] == ["deleted", "modified", "modified", "created"]
        assert [version.path for version in newest] == ["b/c", "b/c", "a", "a"]
        assert [version.text for version in newest] == [None, "tüe", "tüe", "one"]
        assert [version.size for version in newest] == [None, 4, 4, 3]
        assert newest[1].sha256 == sha256("tüe".encode()).hexdigest()
        assert newest[0].sha256 is None
        assert [version.id for version in newest[1:]] == [moved, modified, created]
        assert [version.parent_id for version in newest] == [moved, modified, created, None]
        assert [self._recorded(version.origin) for version in newest] == origins[::-1]
        assert len({version.file_id for version in newest}) == 1
        times = [version.created_at for version in newest]
        assert times == sorted(times, reverse=True)
        assert all(before <= time <= datetime.now(UTC) + timedelta(seconds=1) for time in times)
        for version in newest:
            assert await store.read_version(version.id) == version

    @scenario
    async def test_what_changes_nothing_writes_no_version(self, store: HistoryFileStore) -> None:
        version = await store.write("a", "one", expected=None, origin=ORIGIN)
        await store.write("a", "one", expected=version, origin=ORIGIN)
        await refused("already_exists", store.write("a", "two", expected=None, origin=ORIGIN))
        await refused("version_mismatch", store.delete("a", expected="x", origin=ORIGIN))
        await refused("invalid_file", store.write("b", "\ud800", expected=None, origin=ORIGIN))
        assert len(await _all_versions(store)) == 1

    @scenario
    async def test_a_path_that_is_used_again_is_another_file(self, store: HistoryFileStore) -> None:
        first = await store.write("a", "one", expected=None, origin=ORIGIN)
        await store.delete("a", expected=first, origin=ORIGIN)
        second = await store.write("a", "one", expected=None, origin=ORIGIN)
        assert first != second
        one, other = await store.read_version(first), await store.read_version(second)
        assert one.file_id != other.file_id
        assert other.parent_id is None

    @scenario
    async def test_versions_of_a_path_follow_its_files_through_moves(self, store: HistoryFileStore) -> None:
        a = await store.write("a", "one", expected=None, origin=ORIGIN)
        b = await store.move("a", "b", expected=a, origin=ORIGIN)
        c = await store.write("b", "two", expected=b, origin=ORIGIN)
        other = await store.write("a", "another file", expected=None, origin=ORIGIN)
        await store.write("ab", "near miss", expected=None, origin=ORIGIN)
        assert [version.id for version in await _all_versions(store, "b")] == [c, b, a]
        assert [version.id for version in await _all_versions(store, "a")] == [other, c, b, a]
        assert await _all_versions(store, "never") == []
        await refused("invalid_path", store.versions("/a"))

    @scenario
    async def test_pages_of_versions_are_complete_while_others_write(self, store: HistoryFileStore) -> None:
        written = [await store.write(f"f{each}", "x", expected=None, origin=ORIGIN) for each in range(7)]
        found: list[str] = []
        page = await store.versions(limit=3)
        while True:
            found += (version.id for version in page.versions)
            await store.write(f"late{len(found)}", "x", expected=None, origin=ORIGIN)
            if page.next_cursor is None:
                break
            page = await store.versions(limit=3, cursor=page.next_cursor)
        assert found == written[::-1]
        assert len((await store.versions(limit=1 << 70)).versions) > len(written)
        for cursor in ("", "nonsense", "-1", "\x00"):
            await refused("invalid_cursor", store.versions(cursor=cursor))

    @scenario
    async def test_versions_since_a_time_leave_out_older_ones(self, store: HistoryFileStore) -> None:
        await store.write("a", "one", expected=None, origin=ORIGIN)
        newest = (await store.versions()).versions[0]
        assert (await store.versions(since=newest.created_at)).versions == (newest,)
        assert (await store.versions(since=newest.created_at + timedelta(seconds=1))).versions == ()
        assert len((await store.versions("a", since=newest.created_at - timedelta(days=1))).versions) == 1

    @scenario
    async def test_an_unknown_version_is_not_found(self, store: HistoryFileStore) -> None:
        for version in ("", "memver_unknown", "%", "\x00", "\ud800"):
            await refused("not_found", store.read_version(version))
            await refused("not_found", store.redact(version, by="ann"))
            await refused("not_found", store.restore(version, expected=None, origin=ORIGIN))

    # Restore

    @scenario
    async def test_a_restore_writes_old_content_back_as_a_new_version(self, store: HistoryFileStore) -> None:
        first = await store.write("a", "one", expected=None, origin=ORIGIN)
        second = await store.write("a", "two", expected=first, origin=ORIGIN)
        await refused("version_mismatch", store.restore(first, expected=first, origin=ORIGIN))
        await refused("already_exists", store.restore(first, expected=None, origin=ORIGIN))
        third = await store.restore(first, expected=second, origin=_CALL)
        file = await store.read("a")
        assert (file.text, file.version) == ("one", third)
        assert self._recorded((await store.read_version(third)).origin) == self._recorded(_CALL)
        await store.delete("a", expected=third, origin=ORIGIN)
        deleted = (await store.versions()).versions[0].id
        await refused("not_found", store.restore(deleted, expected=None, origin=ORIGIN))
        await store.restore(second, expected=None, origin=ORIGIN)
        assert await contents(store) == {"a": "two"}

    # Redaction

    @scenario
    async def test_a_redaction_erases_content_and_path_and_keeps_the_rest(self, store: HistoryFileStore) -> None:
        first = await store.write("a", "secret", expected=None, origin=_CALL)
        await store.write("a", "two", expected=first, origin=ORIGIN)
        before = await store.read_version(first)
        redacted = await store.redact(first, by="bob")
        assert (redacted.path, redacted.text, redacted.sha256, redacted.size) == (None, None, None, None)
        assert redacted.redacted_by == "bob"
        assert redacted.redacted_at is not None
        kept = ("id", "file_id", "parent_id", "operation", "origin", "created_at")
        assert [getattr(redacted, name) for name in kept] == [getattr(before, name) for name in kept]
        assert await store.read_version(first) == redacted
        assert await store.redact(first, by="eve") == redacted
        await refused("not_found", store.restore(first, expected=None, origin=ORIGIN))
        assert await contents(store) == {"a": "two"}

    @scenario
    async def test_a_file_is_found_by_a_path_as_long_as_a_version_names_it(self, store: HistoryFileStore) -> None:
        first = await store.write("a", "1", expected=None, origin=ORIGIN)
        second = await store.write("a", "2", expected=first, origin=ORIGIN)
        third = await store.move("a", "b", expected=second, origin=ORIGIN)
        await store.redact(first, by="ann")
        history = [third, second, first]
        assert [each.id for each in (await store.versions("a")).versions] == history
        await store.redact(second, by="ann")
        assert (await store.versions("a")).versions == ()
        assert [each.id for each in (await store.versions("b")).versions] == history

    @scenario
    async def test_the_current_version_of_a_live_file_is_not_redacted(self, store: HistoryFileStore) -> None:
        version = await store.write("a", "one", expected=None, origin=ORIGIN)
        await refused("forbidden", store.redact(version, by="ann"))
        assert (await store.read("a")).text == "one"
        await store.delete("a", expected=version, origin=ORIGIN)
        for each in await _all_versions(store):
            await store.redact(each.id, by="ann")
        assert {version.path for version in await _all_versions(store)} == {None}

    # Cursors

    @scenario
    async def test_changes_are_exact_until_a_redaction_removes_a_path(self, store: HistoryFileStore) -> None:
        a = await store.write("a", "one", expected=None, origin=ORIGIN)
        start = (await store.changes(None)).cursor
        b = await store.move("a", "b", expected=a, origin=ORIGIN)
        answer = await store.changes(start)
        assert isinstance(answer, Changes)
        assert sorted(answer.paths) == ["a", "b"]
        await store.delete("b", expected=b, origin=ORIGIN)
        middle = (await store.changes(None)).cursor
        await store.write("c", "one", expected=None, origin=ORIGIN)
        for version in await _all_versions(store, "b"):
            await store.redact(version.id, by="ann")
        assert isinstance(await store.changes(start), FullResync)
        answer = await store.changes(middle)
        assert isinstance(answer, Changes)
        assert answer.paths == ("c",)

    # Replay of a tool call

    @scenario
    async def test_a_tool_call_made_again_answers_with_its_first_result(self, store: HistoryFileStore) -> None:
        write = Origin("run", "ann", "write")
        first = await store.write("a", "one", expected=None, origin=write)
        assert await store.write("a", "one", expected=None, origin=write) == first
        change = Origin("run", "ann", "change")
        second = await store.write("a", "two", expected=first, origin=change)
        move = Origin("run", "ann", "move")
        third = await store.move("a", "b", expected=second, origin=move)
        assert await store.write("a", "two", expected=first, origin=change) == second
        delete = Origin("run", "ann", "delete")
        await store.delete("b", expected=third, origin=delete)
        assert await store.move("a", "b", expected=second, origin=move) == third
        await store.delete("b", expected=third, origin=delete)
        assert len(await _all_versions(store)) == 4
        replayed = await store.replayed(move)
        assert replayed is not None
        assert replayed.id == third
        assert await store.replayed(Origin("run", "ann", "other")) is None
        assert await store.replayed(Origin("run", "ann", None)) is None

    @scenario
    async def test_a_tool_call_made_again_with_other_arguments_is_refused(self, store: HistoryFileStore) -> None:
        call = Origin("run", "ann", "call")
        first = await store.write("a", "one", expected=None, origin=call)
        other = await store.write("b", "one", expected=None, origin=ORIGIN)
        await refused("forbidden", store.write("a", "two", expected=None, origin=call))
        await refused("forbidden", store.write("a", "two", expected=first, origin=call))
        await refused("forbidden", store.write("c", "one", expected=None, origin=call))
        await refused("forbidden", store.move("b", "c", expected=other, origin=call))
        await refused("forbidden", store.delete("b", expected=other, origin=call))
        assert await contents(store) == {"a": "one", "b": "one"}

    @scenario
    async def test_a_tool_call_made_again_after_its_version_was_redacted_is_refused(
        self, store: HistoryFileStore
    ) -> None:
        call = Origin("run", "ann", "call")
        first = await store.write("a", "one", expected=None, origin=call)
        await store.write("a", "two", expected=first, origin=ORIGIN)
        await store.redact(first, by="ann")
        await refused("forbidden", store.write("a", "one", expected=None, origin=call))

    @scenario
    async def test_an_edit_made_again_is_applied_once(self, store: HistoryFileStore) -> None:
        format = FileFormat()
        await store.write("a", "likes tea", expected=None, origin=ORIGIN)
        for _ in range(2):
            await edits.edit(store, "a", "tea", "coffee", origin=Origin("run", None, "edit"), format=format, retries=3)
            await edits.append(store, "a", "more", origin=Origin("run", None, "append"), format=format, retries=3)
            await edits.move(store, "a", "b", origin=Origin("run", None, "move"), format=format, retries=3)
        assert await contents(store) == {"b": "likes coffee\nmore"}
        await refused(
            "forbidden",
            edits.append(store, "b", "other", origin=Origin("run", None, "append"), format=format, retries=3),
        )

    @scenario
    async def test_a_purge_removes_history_too(self, store: HistoryFileStore) -> None:
        version = await store.write("a", "one", expected=None, origin=_CALL)
        await store.purge()
        assert await _all_versions(store) == []
        await refused("not_found", store.read_version(version))
        assert await store.replayed(_CALL) is None
        await store.write("a", "two", expected=None, origin=_CALL)
