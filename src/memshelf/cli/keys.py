"""`memshelf keys`: who may use a service."""

from __future__ import annotations

from dataclasses import asdict

import click

from memshelf.cli import render, times
from memshelf.cli.command import CommandGroup, asynchronous, json_option
from memshelf.cli.serve import WORKSPACE, data_option, database_option, opened_engine

__all__ = ["keys"]


@click.group(cls=CommandGroup)
def keys() -> None:
    """Create, list and revoke the API keys of a service.

    \b
    Examples:
      memshelf keys create --data ./data --workspace team
      memshelf keys list --data ./data
      memshelf keys revoke KEY_ID --data ./data
    """


@keys.command()
@data_option
@database_option
@click.option("--workspace", default=WORKSPACE, show_default=True, metavar="NAME", help="Created if not there yet.")
@asynchronous
async def create(data: str | None, database: str | None, workspace: str) -> None:
    """Create a key for a workspace and print it: the key and nothing else, and only now.

    \b
    Examples:
      memshelf keys create --data ./data --workspace team
    """
    from memshelf.service.accounts import Accounts

    async with opened_engine(data, database, create=True) as engine:
        render.line(await Accounts(engine).create_key(workspace))


@keys.command(name="list")
@data_option
@database_option
@json_option
@asynchronous
async def list_keys(data: str | None, database: str | None, *, as_json: bool) -> None:
    """List the keys of every workspace: the id, how the key ends, and whether it was revoked.

    \b
    Examples:
      memshelf keys list --data ./data
    """
    from memshelf.service.accounts import Accounts

    async with opened_engine(data, database) as engine:
        found = await Accounts(engine).keys()
    if as_json:
        shown = []
        for key in found:
            revoked = times.utc(key.revoked_at) if key.revoked_at is not None else None
            shown.append({**asdict(key), "created_at": times.utc(key.created_at), "revoked_at": revoked})
        render.document({"keys": shown})
        return
    rows = []
    for key in found:
        revoked = times.shown(key.revoked_at) if key.revoked_at is not None else ""
        rows.append([times.shown(key.created_at), key.id, f"…{key.hint}", revoked, key.workspace])
    render.table(rows, header=("CREATED", "ID", "KEY", "REVOKED", "WORKSPACE"), nothing="There are no keys.")


@keys.command()
@data_option
@database_option
@click.argument("key_id")
@asynchronous
async def revoke(data: str | None, database: str | None, key_id: str) -> None:
    """Revoke a key. Services that run refuse it within a second.

    \b
    Examples:
      memshelf keys revoke apikey_0199 --data ./data
    """
    from memshelf.service.accounts import Accounts

    async with opened_engine(data, database) as engine:
        await Accounts(engine).revoke(key_id)
    render.line(f"Revoked {render.visible_line(key_id)}")
