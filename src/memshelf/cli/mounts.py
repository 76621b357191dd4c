"""Memories under names: `NAME=PATH[:read|:write]`, as commands that serve a model take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import click

from memshelf.cli import render
from memshelf.cli.memory import Mounted, Place, exists, locate, require, require_room, store_of
from memshelf.files.mount import FileMount
from memshelf.mounted import Access

__all__ = ["Named", "mounted", "named", "place_of", "say_what_is_new"]

_ACCESSES: tuple[Access, ...] = ("read", "write")


class Named(NamedTuple):
    """What stands before and behind the `=`, and the access at the end, if one is given."""

    name: str
    text: str
    access: Access | None


def named(given: str, option: str, example: str) -> Named:
    """A usage error for what is not `NAME=` and something, as in the example."""
    name, equals, text = given.partition("=")
    for access in _ACCESSES:
        if text.endswith(f":{access}"):
            text = text.removesuffix(f":{access}")
            break
    else:
        access = None
    if not equals or not text:
        raise click.BadParameter(f"{given!r} is not {example}", param_hint=option)
    return Named(name, text, access)


def place_of(given: Named, whole: str, option: str, there: Callable[[Place], bool]) -> Place:
    """The place that is named. A usage error for an access that is none."""
    place = locate(given.text)
    _, colon, suffix = given.text.rpartition(":")
    if given.access is None and colon and "/" not in suffix and not there(place):
        raise click.BadParameter(
            f"{suffix!r} at the end of {whole!r} is no access: use :read or :write. A new path that has a colon ends "
            "in one of them too.",
            param_hint=option,
        )
    return place


def mounted(given: str, always_load: tuple[str, ...]) -> Mounted:
    """A file memory on the disk, writable unless it ends in `:read`. One that does not exist can be made by writing."""
    each = named(given, "--memory", "NAME=PATH, such as user=.memory/user")
    place = place_of(each, given, "--memory", exists)
    if each.access == "read":
        require(place)
    else:
        require_room(place)
    try:
        return Mounted(place, FileMount(each.name, store_of(place), each.access or "write", always_load=always_load))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None


def say_what_is_new(memories: Iterable[Mounted]) -> None:
    """A memory that does not exist yet is begun with the first change, but its path may be a slip."""
    for each in memories:
        if not exists(each.place):
            where = render.visible_line(each.place.text)
            render.note(f"New memory {each.mount.name}: there is none at {where} yet.")
