"""Paths, frontmatter and descriptions."""

from __future__ import annotations

import re
import time
import unicodedata

import pytest
from hypothesis import given, strategies as st

from memshelf import FileFormat, MemoryStoreError, describe, validate_directory, validate_path


def _code(call, *args) -> str:
    with pytest.raises(MemoryStoreError) as caught:
        call(*args)
    return caught.value.code


def test_a_path_comes_back_in_nfc():
    assert validate_path("cafe\u0301/x") == "caf\xe9/x"


@given(st.text(max_size=40))
def test_every_text_is_a_canonical_path_or_refused(path):
    try:
        canonical = validate_path(path)
    except MemoryStoreError as error:
        assert error.code == "invalid_path"
    else:
        assert validate_path(canonical) == canonical == unicodedata.normalize("NFC", path)
        assert not {"", ".", ".."} & set(canonical.split("/"))
        assert validate_directory(f"{canonical}/") == f"{canonical}/"


def test_the_path_limit_counts_bytes_and_allows_the_last_one():
    assert validate_path("é" * 5, FileFormat(path_bytes=10)) == "é" * 5
    assert _code(validate_path, "é" * 5 + "x", FileFormat(path_bytes=10)) == "invalid_path"


@pytest.mark.parametrize("path", ["", "a/", "a/b/"])
def test_a_directory_is_the_root_or_ends_in_a_slash(path):
    assert validate_directory(path) == path


@pytest.mark.parametrize("path", ["/", "a", "/a/", "a//", "./", "a/../", "a\\/", "\n/"])
def test_anything_else_is_no_directory(path):
    assert _code(validate_directory, path) == "invalid_path"


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("", None),
        ("\n \n\t\n", None),
        ("\n\n  # Tea  \nmore", "# Tea"),
        ("---\ndescription: Tea\n---\nbody", "Tea"),
        ("---\r\ndescription: Tea\r\n---\r\nbody", "Tea"),
        ("\ufeff---\ndescription: Tea\n---", "Tea"),
        ("\ufefffirst", "first"),
        ("---\ndescription: Tea\n---", "Tea"),
        ("---\nname: x\n---\n\nbody", "body"),
        ("---\n---\nbody", "body"),
        ("---\n# only a comment\n---\nbody", "body"),
        ("---\ndescription:\n---\nbody", "body"),
        ("---\ndescription: ~\n---\nbody", "body"),
        ("---\ndescription: no\n---\n", "no"),
        ("---\ndescription: 2026-11-29\n---\n", "2026-11-29"),
        ("---\ndescription: '绿茶: 偏好'\n---\n", "绿茶: 偏好"),
        ("---\ndescription: >\n  folded\n  text\n---\n", "folded text"),
        ("---\nother:\n  description: not this\ndescription: this\n---\n", "this"),
        ("---\nother: [a, {description: not this}]\n? {a: b}\n: c\n---\nbody", "body"),
        ("---\na: &x [1]\nb: *x\ndescription: Tea\n---\n", "Tea"),
        ("---\ntag: !!python/object:os.system x\ndescription: Tea\n---\n", "Tea"),
        ("--- \ndescription: Tea\n---\n", "---"),
        ("----\nrule", "----"),
        ("---", "---"),
        ("a\u2028b\x85c\nd", "a\u2028b\x85c"),
        ("x" * 300, "x" * 200),
    ],
)
def test_the_description_is_the_frontmatters_or_the_first_line(text, description):
    assert describe(text) == description


@pytest.mark.parametrize(
    "text",
    [
        "---\ndescription: Tea\n",
        "---\ndescription: Tea\n ---\n",
        "---\n- a\n---\n",
        "---\nword\n---\n",
        "---\na: 1\n...\n--- {b: 2}\n---\n",
        "---\na: [\n---\n",
        "---\na: *nowhere\n---\n",
        "---\n*nowhere : a\n---\n",
        "---\na: \x07\n---\n",
        "---\n\tdescription: x\n---\n",
        "---\ndescription: [a]\n---\n",
        "---\ndescription: {a: b}\n---\n",
        '---\ndescription: ""\n---\n',
        '---\ndescription: "a\\nb"\n---\n',
        "---\ndescription: |\n  a\n  b\n---\n",
        f"---\ndescription: {'x' * 201}\n---\n",
        f"---\nx: {'y' * 2040}\n---\n",
        "lone \ud800",
    ],
)
def test_malformed_content_is_an_invalid_file(text):
    assert _code(describe, text) == "invalid_file"


def test_the_frontmatter_limit_counts_bytes_up_to_the_closing_line():
    format = FileFormat(frontmatter_bytes=30)
    assert describe("---\ndescription: " + "x" * 8 + "\n---\n", format) == "x" * 8
    assert _code(describe, "---\ndescription: " + "x" * 9 + "\n---\n", format) == "invalid_file"
    assert _code(describe, "---\ndescription: " + "é" * 8 + "\n---\n", format) == "invalid_file"
    assert describe("---\ndescription: " + "x" * 9 + "\n---", format) == "x" * 9


@pytest.mark.parametrize(
    "frontmatter",
    [
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{n}: &{n} [{','.join(['*' + p] * 9)}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)),
        "a: " + "[" * 1000,
        "a: " + "{a: " * 400,
        "a: " + "[" * 900 + "]" * 900,
        "- " * 1000,
        "? " * 900,
    ],
    ids=["aliases", "open lists", "open mappings", "nested lists", "nested items", "nested keys"],
)
def test_a_frontmatter_bomb_goes_off_nowhere(frontmatter):
    started = time.process_time()
    try:
        describe(f"---\n{frontmatter}\n---\nbody")
    except MemoryStoreError as error:
        assert error.code == "invalid_file"
    assert time.process_time() - started < 1


def test_millions_of_empty_lines_are_skipped_at_once():
    started = time.process_time()
    text = "\r\n \n" * 2_000_000
    assert describe(f"{text} tea \n", FileFormat(max_file_bytes=10_000_000)) == "tea"
    assert describe(text, FileFormat(max_file_bytes=10_000_000)) is None
    assert time.process_time() - started < 1


def test_a_file_over_the_size_limit_is_too_large():
    assert _code(describe, "é" * 6, FileFormat(max_file_bytes=11)) == "too_large"


@given(st.text(max_size=200), st.sampled_from(["", "---\n", "---\ndescription: ", "\ufeff---\r\n"]))
def test_every_text_is_described_or_refused(text, start):
    try:
        description = describe(start + text)
    except MemoryStoreError as error:
        assert error.code == "invalid_file"
    else:
        assert description is None or (description.strip() and "\n" not in description and len(description) <= 200)


@pytest.mark.parametrize(
    ("frontmatter", "reason"),
    [
        ("a: 1\nb: 2\n c: 3", r"not valid YAML: .+, in line 4 of the file\."),
        ("a: 1\n\t- b", r"not valid YAML: .+, in line 3 of the file\."),
        ("a: \x01", r"not valid YAML: .+ characters are not allowed\."),
        # PyYAML has a limit since 6.0.3, and its parser without C another one.
        ("[" * 2_000, r"not valid YAML: (it nests too deeply|.+, in line \d+ of the file)\.|one YAML mapping, .+"),
    ],
)
def test_what_is_wrong_with_a_frontmatter_is_said_and_where(frontmatter, reason):
    with pytest.raises(MemoryStoreError) as refused:
        describe(f"---\n{frontmatter}\n---\nbody")
    assert re.fullmatch(f"Frontmatter is ({reason})", refused.value.message)


@pytest.mark.parametrize("name", ["max_file_bytes", "description_chars", "frontmatter_bytes", "path_bytes"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "9"])
def test_a_limit_that_is_no_positive_number_is_refused(name, value):
    with pytest.raises(ValueError, match=name):
        FileFormat(**{name: value})


@pytest.mark.parametrize(
    "text",
    [
        "---\nname: Tea\ndescription: green tea, hot\n---\nbody",
        "---\ndescription: one\ndescription: two \n---\nbody",
        "---\ndescription: null\n---\nbody",
        "---\ndescription: no\n---\nbody",
        "---\ndescription: 中文 描述\ntype: user\n---\nbody",
        "---\ndescription: a - b\n---\nbody",
        "---\nname: only\n---\nbody",
    ],
)
def test_plain_frontmatter_says_what_yaml_says(text):
    from memshelf.files import format as rules

    plain = describe(text)
    never = re.compile(r"(?!)")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rules, "_PLAIN", never)
        assert describe(text) == plain
