"""What a user has corrected, so that it need not be corrected again."""

from __future__ import annotations

import asyncio
import builtins
import hashlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Final, Literal, TypeAlias, get_args

from memshelf.arguments import checked_argument
from memshelf.credentials import SecretsPolicy, admit, check_policy
from memshelf.errors import MemoryStoreError
from memshelf.files.edits import find, find_text
from memshelf.files.format import validate_path
from memshelf.files.protocol import FileStore
from memshelf.forks import Process
from memshelf.origin import Origin
from memshelf.records.recall import EmbedderChoice
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.conversation import Said, said_in
from memshelf.workspace.corrections import correction_in, is_lasting, rule_in
from memshelf.workspace.entries import EntryInfo, MemoryEntry, folded, read_entry_file, written
from memshelf.workspace.index_file import IndexFile
from memshelf.workspace.recall import EntryRecall
from memshelf.workspace.turns import TRIES, Turns, give_way, overtaken

__all__ = ["EXPERIENCE_INDEX", "Experience", "ExperienceKind", "Experiences"]

ExperienceKind: TypeAlias = Literal["correction", "tool_error", "success_pattern"]

EXPERIENCE_INDEX: Final = "experiences/EXPERIENCE.md"
_UNDER = "experiences/"
_LESSON_CHARS, _TITLE_CHARS, _ASKED_CHARS, _MOST_TIMES = 1_000, 80, 120, 20
_SLUG_CHARS = 40
_ENDS = re.compile(r"[.,!?;:。、…]+(?=\s|$)")
_NOT_A_WORD = re.compile(r"[\W_]+")
_TIME = re.compile(r"^- (\d{4}-\d\d-\d\d\b(?: \d\d:\d\d:\d\d\b)?).*$", re.MULTILINE)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """A lesson, in a file below `experiences/`. `asked` is what the user had asked for when it was first learned.

    `times` is how often it had to be learned, `last` when it last was.
    """

    file: str
    kind: ExperienceKind
    lesson: str
    asked: str
    times: int
    last: date | None


class Experiences:
    """The experiences of one user, as files that a person may read, edit and remove, and an index of them.

    Only corrections ever enter a prompt. Several processes may share the files. Credentials are masked unless `secrets`
    says otherwise. Every call may raise `unavailable`.
    """

    def __init__(
        self,
        store: FileStore,
        *,
        embedder: EmbedderChoice = "default",
        secrets: SecretsPolicy = "mask",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = checked_argument("store", store, FileStore)
        self._index = IndexFile(store, WorkspaceConfig(memory_md=EXPERIENCE_INDEX, memory_dir=""), _UNDER)
        self._embedder = embedder
        self._secrets = check_policy(secrets)
        self._clock = clock
        self._turns = Turns()
        self._process = Process()
        self._begin()

    def _begin(self) -> None:
        self._recall = EntryRecall(self._embedder)
        self._known: dict[str, tuple[str, str, Experience]] = {}
        """By file: its version, its last time, and what is in it."""

    def close(self) -> None:
        """End the thread that searches; it starts again when needed."""
        self._recall.close()

    async def learn_from(self, messages: Iterable[Mapping[str, object]], *, origin: Origin | None = None) -> str | None:
        """Keep what the user's last message corrects in what the assistant said before; the file, or `None`.

        Each message has a `role` and a `content`. Most corrections are seen, in English and Chinese, and hardly
        anything else; what was not an answer to an assistant is none.
        """
        said = _together(said_in(messages))
        at = next((at for at in reversed(range(len(said))) if said[at][0] == "user"), 0)
        if at == 0 or said[at - 1][0] != "assistant":
            return None
        lesson = await asyncio.to_thread(correction_in, said[at][1])
        asked = next((text for speaker, text in reversed(said[:at]) if speaker == "user"), "")
        return await self.learn(lesson, asked=asked, origin=origin) if lesson is not None else None

    async def learn(
        self, lesson: str, kind: ExperienceKind = "correction", *, asked: str = "", origin: Origin | None = None
    ) -> str:
        """Keep a lesson, and answer the name of its file; one that is there already was learned once more.

        Lessons are the same that differ in nothing but how they are put: "Never add comments!" is "Please don't add
        comments".

        `asked` is what the user had asked for. `ValueError` for an unknown kind, or a lesson that is empty or has more
        than 1000 characters; `invalid_text` where the policy refuses credentials.
        """
        if kind not in get_args(ExperienceKind):
            raise ValueError(f"An experience is one of {', '.join(get_args(ExperienceKind))}, not {kind!r}.")
        for name, text in (("lesson", lesson), ("asked", asked)):
            checked_argument(name, text, str)
        lesson, asked = (_written(admit(text, self._secrets, subject="An experience")) for text in (lesson, asked))
        if not 1 <= len(lesson) <= _LESSON_CHARS:
            raise ValueError(f"A lesson has 1 to {_LESSON_CHARS} characters; this one has {len(lesson)}.")
        file = _file_name(kind, lesson)
        async with self._turns.of(file):
            entry = await self._write(file, kind, lesson, asked, origin or Origin())
        await self._show(file, entry.info)
        return file

    async def _show(self, file: str, entry: EntryInfo | None) -> None:
        try:
            await self._index.follow(file, entry)
        except MemoryStoreError as error:  # the lessons are as they should be, and the next one completes the index
            _LOG.warning("The index of experiences could not be updated: %s", error.code)

    async def _write(self, file: str, kind: ExperienceKind, lesson: str, asked: str, origin: Origin) -> MemoryEntry:
        time = f"- {self._clock().astimezone(UTC):%Y-%m-%d %H:%M:%S}" + (f": {asked[:_ASKED_CHARS]}" if asked else "")
        for attempt in range(TRIES):
            found = await find(self._store, _UNDER + file)
            if found is None:
                text = written(lesson[:_TITLE_CHARS], asked[:_ASKED_CHARS], kind, f"{lesson}\n\n{time}\n", "confirmed")
            else:
                text = _once_more(found.text, time)
            try:
                expected = found.version if found is not None else None
                await self._store.write(_UNDER + file, text, expected=expected, origin=origin)
            except MemoryStoreError as error:
                if not overtaken(error, _UNDER + file):
                    raise
                await give_way(attempt)
            else:
                return read_entry_file(file, text)
        raise MemoryStoreError("conflict_retries_exhausted", f"Other writers kept changing {file}; nothing changed.")

    async def list(self) -> builtins.list[Experience]:
        """All experiences, what was learned last first."""
        await self._refresh()
        found = sorted(self._known.values(), key=lambda each: (each[1], each[2].file), reverse=True)
        return [experience for _, _, experience in found]

    async def forget(self, file: str, *, origin: Origin | None = None) -> None:
        """Remove an experience and its row. `not_found`, `invalid_path`; `version_mismatch` if it changed just then."""
        path = validate_path(_UNDER + checked_argument("file", file, str).removeprefix(_UNDER))
        if path == EXPERIENCE_INDEX:
            raise MemoryStoreError("invalid_path", "This is the index of experiences, not one of them.")
        current = await self._store.read(path)
        await self._store.delete(path, expected=current.version, origin=origin or Origin())
        await self._show(path.removeprefix(_UNDER), None)

    async def recall(self, query: str | None = None, limit: int = 5) -> builtins.list[Experience]:
        """At most `limit` corrections that matter for a question, the newest first: those that are about it, and, while
        there is room, those that had to be made more than once, or were said to hold from then on. Without a question,
        the newest."""
        checked_argument("query", query, str, None)
        limit = max(checked_argument("limit", limit, int), 0)
        corrections = {each.file: each for each in await self.list() if each.kind == "correction"}
        if not corrections or query is None or not query.strip():
            return [*corrections.values()][:limit]
        order = {file: -at for at, file in enumerate(corrections)}
        about = await self._recall.rank(query, limit, frozenset(), order)
        always = (file for file, each in corrections.items() if each.times > 1 or is_lasting(each.lesson))
        chosen = [*dict.fromkeys([*about, *always])][:limit]
        return [each for file, each in corrections.items() if file in chosen]

    async def learned_experiences(self, query: str | None = None, limit: int = 5, *, where: str = "") -> str:
        """What `recall` finds, as text for the system prompt of a session that begins; `""` if nothing.

        `where` is where the index is, for a model to read.
        """
        found = await self.recall(query, limit)
        if not found:
            return ""
        note = (
            "What this user corrected in earlier sessions, the newest first, each with what they had asked for: do not "
            "make them say it again, unless they now want it otherwise. Where two disagree, the newer one holds. "
            "Selected when this session began; the index of all, as it is now, is "
            f"{where or EXPERIENCE_INDEX}."
        )
        return "\n".join(["## Learned Experiences", "", note, "", *map(_shown, found)])

    async def _refresh(self) -> None:
        self._process.forked(self._begin)
        listed = {
            each.path.removeprefix(_UNDER): each.version
            for each in await self._store.list()
            if each.path.startswith(_UNDER) and each.path.endswith(".md") and each.path != EXPERIENCE_INDEX
        }
        for file in self._known.keys() - listed.keys():
            self._drop(file)
        for file, version in listed.items():
            if file in self._known and self._known[file][0] == version:
                continue
            found = await find_text(self._store, _UNDER + file)
            self._drop(file)
            if found is not None:
                entry = read_entry_file(file, found.text)
                times = _TIME.findall(entry.content)
                experience = _experience(entry, times)
                self._known[file] = (found.version, max(times, default=""), experience)
                if experience.kind == "correction":  # the others would stand before what may be shown
                    self._recall.put(entry)

    def _drop(self, file: str) -> None:
        if self._known.pop(file, None) is not None:
            self._recall.remove(file)


def _together(said: Iterable[Said]) -> builtins.list[Said]:
    """What one of them said in several parts, as one."""
    turns = groupby(said, key=lambda each: each[0])
    return [(speaker, "\n\n".join(text for _, text in parts)) for speaker, parts in turns]


def _shown(experience: Experience) -> str:
    return f"- {experience.lesson}" + (f" — {experience.asked}" if experience.asked else "")


def _experience(entry: MemoryEntry, times: Sequence[str]) -> Experience:
    """The experience in a file, whoever wrote it: what is of no other kind is a correction."""
    named = entry.file.rpartition("/")[2].partition("-")[0]
    kinds: tuple[ExperienceKind, ...] = get_args(ExperienceKind)
    kind = next((each for each in kinds if each == named), kinds[0])
    lesson = folded(_TIME.sub("", entry.content))[:_LESSON_CHARS] or entry.title
    asked = folded(entry.description)[:_ASKED_CHARS]
    return Experience(
        file=entry.file, kind=kind, lesson=lesson, asked=asked, times=max(len(times), 1), last=_last(times)
    )


def _last(times: Iterable[str]) -> date | None:
    try:
        return max((date.fromisoformat(each[:10]) for each in times), default=None)
    except ValueError:  # edited by hand
        return None


def _once_more(text: str, time: str) -> str:
    """The file with one more time; the oldest of many leave."""
    times = list(_TIME.finditer(text))
    if len(times) >= _MOST_TIMES:
        text = text[: times[0].start()] + text[times[0].end() + 1 :]
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{time}\n"


def _written(text: str) -> str:
    """On one line, and nothing that cannot be written."""
    return folded(
        "".join(
            "\ufffd" if unicodedata.category(each) in ("Cc", "Cs") and not each.isspace() else each for each in text
        )
    )


def _file_name(kind: ExperienceKind, lesson: str) -> str:
    """One for each lesson, whatever case and width it has, whatever ends its words, and however it is put."""
    same = folded(_ENDS.sub("", unicodedata.normalize("NFKC", lesson).casefold()))
    same = folded(rule_in(same)) or same or lesson
    slug = unicodedata.normalize("NFC", _NOT_A_WORD.sub("_", same)[:_SLUG_CHARS].strip("_"))
    return "-".join(filter(None, [kind, slug, hashlib.sha256(same.encode()).hexdigest()[:12]])) + ".md"
