"""The documents for users, parsed: headings, code blocks, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^(`{3,})(\S*)$")
_HEADING = re.compile(r"^(#{1,6}) (.+)$")
_CODE = re.compile(r"(`+)(.+?)\1")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Heading:
    level: int
    title: str


@dataclass(frozen=True)
class Block:
    """A fenced code block. `line` is that of its opening fence, from 1; `section` the heading above it."""

    kind: str
    text: str
    line: int
    section: str


@dataclass(frozen=True)
class Page:
    """One Markdown file. `name` is the same in both languages."""

    path: Path
    name: str
    language: str

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def _parsed(self) -> tuple[list[Heading], list[Block], str]:
        headings: list[Heading] = []
        blocks: list[Block] = []
        prose: list[str] = []
        fence, kind, start, inside = "", "", 0, list[str]()
        for number, line in enumerate(self.text.split("\n"), start=1):
            if fence:
                if line == fence:
                    section = headings[-1].title if headings else ""
                    blocks.append(Block(kind, "".join(f"{each}\n" for each in inside), start, section))
                    fence, inside = "", []
                else:
                    inside.append(line)
            elif match := _FENCE.match(line):
                fence, kind, start = match[1], match[2], number
            else:
                if match := _HEADING.match(line):
                    headings.append(Heading(len(match[1]), match[2]))
                prose.append(line)
        assert not fence, f"{self}: the code block that opens in line {start} does not close"
        return headings, blocks, "\n".join(prose)

    @property
    def headings(self) -> list[Heading]:
        return self._parsed[0]

    @property
    def blocks(self) -> list[Block]:
        return self._parsed[1]

    @property
    def prose(self) -> str:
        """Everything outside of code blocks."""
        return self._parsed[2]

    @property
    def code(self) -> str:
        """Everything that is set as code: the code blocks, and what stands between backticks."""
        return "\n".join([*(block.text for block in self.blocks), *(found[2] for found in _CODE.finditer(self.prose))])

    @property
    def links(self) -> list[str]:
        return _LINK.findall(_CODE.sub("", self.prose))

    @property
    def anchors(self) -> set[str]:
        """The fragments that lead to a heading of this page, as GitHub makes them."""
        found: set[str] = set()
        for heading in self.headings:
            slug = re.sub(r"[^\w\- ]", "", heading.title.lower()).replace(" ", "-")
            copies = [slug, *(f"{slug}-{number}" for number in range(1, 50))]
            found.add(next(each for each in copies if each not in found))
        return found


FOR_DEVELOPERS = {"docs/architecture.md"}
"""Documents about the code, in English only."""


def _pages(readme: str, folder: str, language: str) -> list[Page]:
    found = [Page(path, f"docs/{path.name}", language) for path in sorted((ROOT / folder).glob("*.md"))]
    first = [Page(ROOT / readme, "README.md", language)] if (ROOT / readme).exists() else []
    return first + [page for page in found if page.name not in FOR_DEVELOPERS]


PAGES = {"en": _pages("README.md", "docs", "en"), "zh": _pages("README.zh-CN.md", "docs/zh-CN", "zh")}
ALL = [page for pages in PAGES.values() for page in pages]


def page(name: str, language: str = "en") -> Page:
    return next(each for each in PAGES[language] if each.name == name)
