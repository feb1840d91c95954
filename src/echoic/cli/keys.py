"""`echoic keys`: keys of the deployment, with roles."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import click

from echoic.cli.asyncio_runner import Desk, run
from echoic.cli.command import CommandGroup, command
from echoic.cli.output import CommandResult, listing, moment


@click.group("keys", cls=CommandGroup)
def keys_group() -> None:
    """Create, list and revoke keys for the HTTP API.

    A key opens what its role allows, in one deployment: agent gets tokens for users, operator opens every
    operator's route, auditor the audit log, read-only what only reads. Servers of the store accept a new
    key, and refuse a revoked one, at once and without a restart.
    """


@command("create")
@click.option("--role", required=True, type=click.Choice(["agent", "operator", "auditor", "read-only"]))
@click.option("--name", default="", metavar="NAME", help="What you call it, such as who holds it.")
@click.option("--days", type=click.IntRange(1), metavar="N", help="Expire after N days; default: never.")
@click.pass_context
def create_command(ctx: click.Context, role: Any, name: str, days: int | None) -> int:
    """Create a key and print it. It is shown now and never again; the store keeps only a hash."""

    async def work(desk: Desk) -> CommandResult:
        lifetime = None if days is None else timedelta(days=days)
        keys = desk.memory.keys(desk.settings.deployment)
        key, made = await keys.create(role, name=name, lifetime=lifetime)
        desk.output.say(f"created {role} key {made.id} for deployment {desk.settings.deployment!r}")
        return CommandResult(data={"key": key, "listed": made}, text=key, count=1)

    return run(ctx, work)


@command("list")
@click.pass_context
def list_command(ctx: click.Context) -> int:
    """List the keys of the deployment.

    Columns: id, role, name, created, expires, revoked.
    """

    async def work(desk: Desk) -> CommandResult:
        found = await desk.memory.keys(desk.settings.deployment).list()
        rows = [
            (k.id, k.role, k.name, moment(k.created_at), moment(k.expires_at), moment(k.revoked_at))
            for k in found
        ]
        return listing(found, "ID ROLE NAME CREATED EXPIRES REVOKED", rows)

    return run(ctx, work)


@command("revoke")
@click.argument("key_id", metavar="ID")
@click.pass_context
def revoke_command(ctx: click.Context, key_id: str) -> int:
    """Revoke a key: from now on it opens nothing. Tokens that it got are good until they end."""

    async def work(desk: Desk) -> CommandResult:
        revoked = await desk.memory.keys(desk.settings.deployment).revoke(key_id)
        desk.output.say(f"revoked {revoked.role} key {revoked.id}")
        return CommandResult(data=revoked, count=1)

    return run(ctx, work)


keys_group.add_section("Keys", [create_command, list_command, revoke_command])
