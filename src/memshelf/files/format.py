"""The rules for paths and content that every file memory applies, whatever stores it."""

from __future__ import annotations

import re
import unicodedata

import yaml

from memshelf.errors import MemoryStoreError
from memshelf.limits import FileFormat

__all__ = ["FileFormat", "describe", "validate_directory", "validate_path"]

_BOM = "\ufeff"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = re.compile(r"(?:[A-Za-z_]+: [^\W\d_][\w ,.()/+-]*\n)+")
"""Frontmatter in which no character means anything else to YAML than to a reader."""
_PLAIN_DESCRIPTION = re.compile(r"^description: (.*)$", re.MULTILINE)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def validate_path(path: str, format: FileFormat = FileFormat()) -> str:  # noqa: B008  # frozen
    """The canonical form of a file's path, in NFC, else `invalid_path`.

    A path is relative: no leading or trailing `/`, no empty, `.` or `..` segment, no control character or backslash,
    at most `path_bytes` UTF-8 bytes.
    """
    path = _normalized(path)
    if not path or path.startswith("/") or path.endswith("/"):
        raise MemoryStoreError("invalid_path", "A file's path is relative and names a file, such as notes/tea.md.")
    _check_segments(path, format)
    return path


def validate_directory(path: str, format: FileFormat = FileFormat()) -> str:  # noqa: B008  # frozen
    """The canonical form of a directory, in NFC, else `invalid_path`: `""` for the root, or a path ending in `/`."""
    path = _normalized(path)
    if path == "":
        return path
    if path.startswith("/") or not path.endswith("/"):
        raise MemoryStoreError("invalid_path", 'A directory is "" for the root, or a relative path ending in "/".')
    _check_segments(path[:-1], format)
    return path


def _normalized(path: str) -> str:
    if not isinstance(path, str):
        raise TypeError(f"A path in a memory is a str, not {type(path).__name__}.")
    return unicodedata.normalize("NFC", path)


def _check_segments(path: str, format: FileFormat) -> None:
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise MemoryStoreError("invalid_path", "A path is valid Unicode, without lone surrogates.") from None
    if size > format.path_bytes:
        raise MemoryStoreError("invalid_path", f"A path has at most {format.path_bytes} bytes; this one has {size}.")
    if "\\" in path or not (path.isprintable() or all(unicodedata.category(char) != "Cc" for char in path)):
        raise MemoryStoreError("invalid_path", "A path has no control characters and no backslashes.")
    if any(segment in ("", ".", "..") for segment in path.split("/")):
        raise MemoryStoreError("invalid_path", 'A path has no empty, "." or ".." segments.')


def describe(text: str, format: FileFormat = FileFormat()) -> str | None:  # noqa: B008  # frozen
    """Check a file's content and say in one line what it holds.

    The answer is the frontmatter's `description`, else the first non-empty line of the body cut to
    `description_chars`, else `None`. A line ends at `\\n`, and a `\\r` before it is not shown; nothing else separates
    lines. `too_large`; `invalid_file` for a lone surrogate or a malformed frontmatter.
    """
    if not isinstance(text, str):
        raise TypeError(f"The content of a memory file is a str, not {type(text).__name__}.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise MemoryStoreError("invalid_file", "A memory file is UTF-8 text, without lone surrogates.") from None
    if size > format.max_file_bytes:
        raise MemoryStoreError(
            "too_large", f"A memory file has at most {format.max_file_bytes} bytes; this one has {size}."
        )
    frontmatter, body = _split(text, format)
    if frontmatter is not None and (description := _description(frontmatter, format)) is not None:
        return description
    return body.lstrip().partition("\n")[0].rstrip()[: format.description_chars] or None


def _split(text: str, format: FileFormat) -> tuple[str | None, str]:
    """The frontmatter between its fences, if there is one, and the body behind it. The BOM belongs to neither."""
    bom = len(_BOM) if text.startswith(_BOM) else 0
    first = text.find("\n", bom)
    if first < 0 or text[bom:first].removesuffix("\r") != "---":
        return None, text[bom:]
    # No line that ends beyond this many characters can close within as many bytes.
    head, start = text[: format.frontmatter_bytes + 1], first + 1
    while True:
        end = head.find("\n", start)
        line = head[start:] if end < 0 else head[start:end]
        if line.removesuffix("\r") == "---" and (end >= 0 or len(head) == len(text)):
            close = len(text) if end < 0 else end + 1
            if len(text[:close].encode()) <= format.frontmatter_bytes:
                return text[first + 1 : start], text[close:]
            break
        if end < 0:
            break
        start = end + 1
    raise MemoryStoreError(
        "invalid_file",
        f"A file that opens with a '---' line closes its frontmatter with another within "
        f"{format.frontmatter_bytes} bytes.",
    )


def _description(frontmatter: str, format: FileFormat) -> str | None:
    if _PLAIN.fullmatch(frontmatter) is not None:  # as most are; a tenth of what YAML takes for it
        plain = _PLAIN_DESCRIPTION.findall(frontmatter)
        if not plain or plain[-1].rstrip() in _NULLS:
            return None
        return _short(plain[-1].rstrip(), format)
    # Only events are read, no values are built: aliases cannot multiply, tags cannot act, and `no` stays a word.
    description: yaml.Event | None = None
    key: yaml.Event | None = None
    depth = documents = 0
    anchors: set[str] = set()
    try:
        for event in yaml.parse(frontmatter, Loader=_LOADER):
            documents += isinstance(event, yaml.DocumentStartEvent)
            if isinstance(event, yaml.AliasEvent) and event.anchor not in anchors:
                raise MemoryStoreError("invalid_file", f"Frontmatter names *{event.anchor}, which is nowhere defined.")
            if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
                anchors.add(event.anchor)
            if documents > 1 or (depth == 0 and isinstance(event, yaml.NodeEvent) and not _mapping_or_nothing(event)):
                raise MemoryStoreError("invalid_file", "Frontmatter is one YAML mapping, such as 'description: Tea'.")
            if depth == 1 and not isinstance(event, yaml.MappingEndEvent):
                if key is None:
                    key = event
                else:
                    if isinstance(key, yaml.ScalarEvent) and key.value == "description":
                        description = event
                    key = None
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except (yaml.YAMLError, RecursionError) as error:
        raise MemoryStoreError("invalid_file", f"Frontmatter is not valid YAML: {_reason(error)}.") from None
    if description is None:
        return None
    if not isinstance(description, yaml.ScalarEvent):
        raise MemoryStoreError("invalid_file", "The frontmatter description is one line of text.")
    if _null(description):
        return None
    value = str(description.value).strip()
    if not value or "\n" in value:
        raise MemoryStoreError("invalid_file", "The frontmatter description is one non-empty line.")
    return _short(value, format)


def _reason(error: yaml.YAMLError | RecursionError) -> str:
    match error:
        case yaml.MarkedYAMLError() if error.problem_mark is not None:
            return f"{error.problem}, in line {error.problem_mark.line + 2} of the file"  # a fence is above it
        case yaml.reader.ReaderError():
            return str(error.reason)
        case _:
            return "it nests too deeply"


def _short(value: str, format: FileFormat) -> str:
    if len(value) > format.description_chars:
        raise MemoryStoreError(
            "invalid_file",
            f"A frontmatter description has at most {format.description_chars} characters; this one has {len(value)}.",
        )
    return value


def _mapping_or_nothing(event: yaml.NodeEvent) -> bool:
    return isinstance(event, yaml.MappingStartEvent) or (isinstance(event, yaml.ScalarEvent) and _null(event))


def _null(scalar: yaml.ScalarEvent) -> bool:
    return bool(scalar.implicit[0]) and scalar.value in _NULLS
