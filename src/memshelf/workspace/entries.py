"""What an entry is, and the file that it is kept in. Pure functions."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

import yaml

from memshelf.limits import FileFormat

__all__ = [
    "EntryDraft",
    "EntryInfo",
    "EntrySource",
    "MemoryEntry",
    "MemoryType",
    "checked_description",
    "checked_source",
    "checked_title",
    "checked_type",
    "file_names",
    "folded",
    "read_entry_file",
    "written",
]

MemoryType: TypeAlias = Literal["user", "feedback", "project", "reference"]
EntrySource: TypeAlias = Literal["confirmed", "auto"]

_TYPES = frozenset(get_args(MemoryType))
_AUTO = frozenset({"auto", "auto_extract"})
_LONGEST_TITLE, _LONGEST_SLUG, _HOOK_CHARS = 200, 50, 100
_DESCRIPTION_CHARS = FileFormat().description_chars
_OPENING = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_HEADING = re.compile(r"\s*#{1,6}[ \t]+(.+)")
_LINE = re.compile(r"([A-Za-z_]+):[ \t]*(.*?)[ \t\r]*$", re.MULTILINE)
_KEY = re.compile(r"^(?=[^\W\d][\w-]*:)", re.MULTILINE)
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TYPED_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = re.compile(r"[^\W\d_](?:[\w ,()/+-]*[\w)])?")
_MEANT_OTHERWISE = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_OWN = frozenset({"name", "description", "type", "source"})
_NOT_A_WORD = re.compile(r"[^\w-]+|_+")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInfo:
    """What an entry is called.

    `file` names it in the memory's directory; `hook` is its description or, without one, the first line of its content;
    `source` is `"auto"` for what was extracted from a conversation and nobody has confirmed.
    """

    file: str
    title: str
    description: str
    hook: str
    memory_type: MemoryType
    source: EntrySource = "confirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry(EntryInfo):
    """An entry with its content, without the frontmatter."""

    content: str

    @property
    def info(self) -> EntryInfo:
        return EntryInfo(**{field.name: getattr(self, field.name) for field in fields(EntryInfo)})


@dataclass(frozen=True, slots=True)
class EntryDraft:
    """An entry that is to be written, and has no file yet."""

    title: str
    description: str
    memory_type: MemoryType
    content: str
    source: EntrySource

    def belongs_in(self, entry: MemoryEntry) -> bool:
        """Whether it may take the entry's place: it is the same one, and a candidate replaces no confirmed entry."""
        same = (entry.title, entry.memory_type) == (self.title, self.memory_type)
        return same and (self.source == "confirmed" or entry.source == "auto")

    def text(self, before: str) -> str:
        """Its file, where `before` is what stands there."""
        return written(self.title, self.description, self.memory_type, self.content, self.source, before)


def folded(text: str) -> str:
    """A text on one line: NFC, and one space wherever there was white space. Titles that agree in this are the same."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def checked_title(title: str) -> str:
    """The title, folded. `ValueError` unless it has 1 to 200 characters and nothing that cannot be written."""
    title = folded(_text("title", title))
    if not 1 <= len(title) <= _LONGEST_TITLE:
        raise ValueError(f"A title has 1 to {_LONGEST_TITLE} characters; this one has {len(title)}.")
    return title


def checked_description(description: str) -> str:
    """The description, folded. `ValueError` over 200 characters."""
    description = folded(_text("description", description))
    if len(description) > _DESCRIPTION_CHARS:
        raise ValueError(f"A description has at most {_DESCRIPTION_CHARS} characters; this one has {len(description)}.")
    return description


def checked_type(memory_type: str) -> MemoryType:
    """`ValueError` unless it is one of the four types."""
    for known in get_args(MemoryType):
        if memory_type == known:
            return known  # type: ignore[no-any-return]  # `get_args` forgets the literals
    raise ValueError(f"A memory's type is one of {', '.join(get_args(MemoryType))}, not {memory_type!r}.")


def checked_source(source: str) -> EntrySource:
    """`ValueError` unless it is one of the two: a misspelt one must not pass for confirmed."""
    for known in get_args(EntrySource):
        if source == known:
            return known  # type: ignore[no-any-return]  # `get_args` forgets the literals
    raise ValueError(f"The source of an entry is one of {', '.join(get_args(EntrySource))}, not {source!r}.")


def _text(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"A {name} is a str, not {type(text).__name__}.")
    if any(unicodedata.category(character) in ("Cc", "Cs") and not character.isspace() for character in text):
        raise ValueError(f"A {name} has no control characters and no lone surrogates.")
    return text


def file_names(memory_type: MemoryType, title: str) -> Iterator[str]:
    """The file names that an entry may have, the first free one first. No other title has the second."""
    slug = _NOT_A_WORD.sub("_", title.lower()).strip("_-")[:_LONGEST_SLUG].strip("_-")
    mark = hashlib.sha256(f"{memory_type}\0{title}".encode()).hexdigest()[:12]
    if slug:
        yield f"{memory_type}_{unicodedata.normalize('NFC', slug)}.md"
    stem = f"{memory_type}_{slug}_{mark}" if slug else f"{memory_type}_{mark}"
    yield f"{stem}.md"
    for number in range(2, 100):  # somebody else's files have those names
        yield f"{stem}_{number}.md"


def read_entry_file(file: str, text: str) -> MemoryEntry:
    """The entry in a file, whoever wrote it.

    What is missing is made up for: the title from the first heading or the file's name, the type from the file's name,
    else `project`. Malformed frontmatter is read line by line.
    """
    head, content = _split(text)
    given = _fields(head) if head is not None else {}
    stem = file.rpartition("/")[2].removesuffix(".md")
    heading = _HEADING.match(content)
    named = stem.partition("_")[0]
    kind = given.get("type", named)
    description = folded(given.get("description", ""))
    return MemoryEntry(
        file=file,
        title=folded(given.get("name", "")) or (folded(heading[1]) if heading is not None else "") or stem,
        description=description,
        hook=description or folded(content.lstrip().partition("\n")[0][:_HOOK_CHARS]),
        memory_type=kind if kind in _TYPES else "project",  # type: ignore[arg-type]  # it is one of them
        source="auto" if given.get("source") in _AUTO else "confirmed",
        content=content,
    )


def written(title: str, description: str, memory_type: str, content: str, source: EntrySource, before: str = "") -> str:
    """The file of an entry. Other keys that the frontmatter had in the file `before` are kept."""
    head: dict[object, object] = {"name": title}
    if description:
        head["description"] = description
    head["type"] = memory_type
    if source == "auto":
        head["source"] = "auto"
    return f"---\n{_dumped(head)}{_kept(before)}---\n\n{content}"


def _dumped(head: dict[object, object]) -> str:
    if all(isinstance(value, str) and _is_plain(value) for value in head.values()):
        return "".join(f"{key}: {value}\n" for key, value in head.items())  # a tenth of what YAML takes for it
    return yaml.safe_dump(head, allow_unicode=True, sort_keys=False, width=1_000_000)


def _is_plain(value: str) -> bool:
    """Whether a text, as it is, means itself in YAML; of a few that do, it is not said."""
    return _PLAIN.fullmatch(value) is not None and value.lower() not in _MEANT_OTHERWISE


def _split(text: str) -> tuple[str | None, str]:
    """The frontmatter, if there is one, and the content behind it and behind one empty line."""
    if (opening := _OPENING.match(text)) is None:
        return None, text.removeprefix("\ufeff")
    if (closing := _CLOSING.search(text, opening.end())) is None:
        return None, text
    content = text[closing.end() :]
    return text[opening.end() : closing.start()], content.removeprefix("\r\n" if content[:1] == "\r" else "\n")


def _plain_fields(head: str) -> dict[str, str] | None:
    """What a frontmatter of nothing but plain texts says, as YAML would read it; `None` for any other."""
    fields: dict[str, str] = {}
    for line in head.removesuffix("\n").split("\n") if head else ():
        key, _, value = line.partition(": ")
        if not (_is_plain(key) and _is_plain(value)) or key in fields:
            return None
        fields[key] = value
    return fields


def _fields(head: str) -> dict[str, str]:
    if (plain := _plain_fields(head)) is not None:
        return plain
    try:
        # The base loader takes every scalar for text, so a title of `no` or `2026` stays what it is.
        loaded = yaml.load(head, Loader=_LOADER)  # noqa: S506  # it builds only texts, lists and mappings
    except (yaml.YAMLError, RecursionError):
        return {match[1]: match[2].strip("'\"") for match in reversed(list(_LINE.finditer(head)))}
    if not isinstance(loaded, dict):
        return {}
    inner = loaded.get("metadata")
    every = {**inner, **loaded} if isinstance(inner, dict) else loaded
    return {key: value for key, value in every.items() if isinstance(key, str) and isinstance(value, str)}


def _kept(text: str) -> str:
    """The keys of a file's frontmatter that are not an entry's, as YAML; nothing of what cannot be read or written.

    No value is made of what stands there: `1.10`, `yes` and `012` stay what somebody wrote.
    """
    head, _ = _split(text)
    if head is None or ((plain := _plain_fields(head)) is not None and plain.keys() <= _OWN):
        return ""
    return _kept_keys(head) or _kept_keys("".join(map(_mended, _KEY.split(head)[1:])))


def _kept_keys(head: str) -> str:
    try:
        root = yaml.compose(head, Loader=_TYPED_LOADER)
        if not isinstance(root, yaml.MappingNode):
            return ""
        _remove_own(root)
        for key, value in root.value:
            if isinstance(value, yaml.MappingNode) and key.value == "metadata":
                _remove_own(value)
        root.flow_style = False  # it follows the keys of the entry
        return yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True, width=1_000_000) if root.value else ""
    except (yaml.YAMLError, RecursionError):
        return ""


def _mended(lines: str) -> str:
    """A key with its value as YAML, where a colon or the like in the value kept the whole head from being so."""
    key, _, value = lines.partition(":")
    try:
        if isinstance(yaml.compose(lines, Loader=_TYPED_LOADER), yaml.MappingNode):
            return lines
    except (yaml.YAMLError, RecursionError):
        pass
    return yaml.safe_dump({key: value.strip()}, allow_unicode=True, width=1_000_000)


def _remove_own(mapping: yaml.MappingNode) -> None:
    mapping.value = [pair for pair in mapping.value if not (_is_text(pair[0]) and pair[0].value in _OWN)]


def _is_text(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode)
