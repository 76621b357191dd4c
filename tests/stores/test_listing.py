"""Pages of a listing against a model that sorts all paths, and rolls them up, in memory."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from workspace_of_tests import ORIGIN, WORKSPACE

from memshelf.stores.catalogue import Stores
from memshelf.stores.listing import after_directory, after_file, rolled_up
from memshelf.stores.memories import Memories
from memshelf.stores.model import PathConflictError

SEGMENT = st.sampled_from(["a", "b", "ab", "a.md", "a-", "a0", "A", "é", "~", "!", "\U0010ffff"])
PATHS = st.sets(st.lists(SEGMENT, min_size=1, max_size=4).map("/".join), max_size=25)


@pytest.mark.parametrize(
    ("path", "directory", "depth", "rolled"),
    [
        ("a", "", 0, None),
        ("a/b/c", "", 0, None),
        ("a", "", 1, None),
        ("a/b", "", 1, "a/"),
        ("a/b/c", "", 1, "a/"),
        ("a/b/c", "", 2, "a/b/"),
        ("a/b/c", "", 3, None),
        ("a/b/c", "a/", 1, "a/b/"),
        ("a/b/c", "a/b/", 1, None),
        ("a/b", "a/", 1, None),
    ],
)
def test_what_is_deeper_is_rolled_up(path, directory, depth, rolled):
    assert rolled_up(path, directory, depth) == rolled


@given(st.lists(SEGMENT, min_size=1, max_size=3).map("/".join), st.lists(SEGMENT, min_size=1, max_size=3).map("/".join))
def test_where_a_listing_goes_on(one, other):
    assert (other.encode() >= after_file(one).encode()) == (other.encode() > one.encode())
    below = other.startswith(f"{one}/")
    assert (f"{one}/" <= other < after_directory(f"{one}/")) == below


def model(paths: set[str], directory: str, depth: int) -> list[str]:
    items = set()
    for path in paths:
        if path.startswith(directory):
            items.add("/" + (rolled_up(path, directory, depth) or path))
    return sorted(items, key=str.encode)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    paths=PATHS,
    directory=st.sampled_from(["", "a/", "a/b/", "ab/", "é/"]),
    depth=st.integers(0, 3),
    limit=st.integers(1, 7),
    content=st.booleans(),
)
async def test_pages_are_what_the_model_says(shelf, paths, directory, depth, limit, content):
    store = (await Stores(shelf, WORKSPACE).create("model")).id
    memories = Memories(shelf, WORKSPACE, store)
    stored = set()
    for path in sorted(paths):
        try:
            await memories.create(f"/{path}", path, origin=ORIGIN)
            stored.add(path)
        except PathConflictError as conflict:
            assert conflict.path[1:] in stored
    seen, page = [], None
    while True:
        found = await memories.page(limit=limit, prefix=f"/{directory}", depth=depth, page=page, content=content)
        assert len(found.items) <= limit
        seen += [item.path for item in found.items]
        for item in found.items:
            if not item.path.endswith("/"):
                assert item.content == (item.path[1:] if content else None)
        if (page := found.next_page) is None:
            break
        assert found.items
    assert seen == model(stored, directory, depth)
