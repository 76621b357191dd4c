"""What the page on threads says of methods, fields and keys is all there is."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import get_args

import pytest
from pages import PAGES, page

from memshelf import SessionInfo, SessionLog, WorkingMemory
from memshelf.threads.rows import RowType


def _rows(language):
    lines = page("docs/threads.md", language).prose.split("\n")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]


@pytest.mark.parametrize("language", list(PAGES))
def test_every_field_of_working_memory_is_in_the_table_with_its_default(language):
    rows = {row[0]: row[1] for row in _rows(language)}
    for field in dataclasses.fields(WorkingMemory):
        if field.name != "count_tokens":
            default = f"{field.default:,}" if type(field.default) is int else str(field.default)
            assert rows[f"`{field.name}`"] == default


@pytest.mark.parametrize("language", list(PAGES))
def test_every_method_row_type_and_field_of_a_session_is_documented(language):
    code = page("docs/threads.md", language).code
    methods = [name for name, _ in inspect.getmembers(SessionLog, inspect.isfunction) if not name.startswith("_")]
    names = [*methods, *get_args(RowType), *(field.name for field in dataclasses.fields(SessionInfo))]
    assert [name for name in names if not re.search(rf"\b{name}\b", code)] == []
