"""The command that destroys, and its receipt."""

from __future__ import annotations

import sys

import click

from echoic.cli.command import command
from echoic.cli.exits import COULD_NOT_LOOK, DONE
from echoic.cli.output import Result
from echoic.cli.running import Desk, run
from echoic.cli.settings import settings_of
from echoic.errors import InvalidInput
from echoic.types import Receipt


@command("forget")
@click.option("--key", metavar="KEY", help="Destroy KEY with its whole history.")
@click.option(
    "--conversation",
    metavar="ID",
    help="Destroy one conversation with all that was said in it; what was learned from it stays.",
)
@click.option("--id", "name", metavar="ID", help="Destroy one memory or one turn, by its id.")
@click.option(
    "--asked",
    metavar="ID",
    help="Destroy what the user asked to have forgotten in one turn, by the id of that turn.",
)
@click.option("--all", "everything", is_flag=True, help="Destroy all that is kept of the user.")
@click.option("--yes", is_flag=True, help="Do not ask first; needed where there is no terminal to ask at.")
@click.pass_context
def forget_command(
    ctx: click.Context,
    *,
    key: str | None,
    conversation: str | None,
    name: str | None,
    asked: str | None,
    everything: bool,
    yes: bool,
) -> int:
    """Destroy what is kept, and print the receipt.

    It says what was removed, and whether its bytes are gone. Takes exactly one of --key, --conversation,
    --id, --asked and --all. Of a key or an id the words that said it go from every turn; the rest of the
    turn stays and is counted as rewritten. It asks first, and without a terminal it needs --yes. Nothing
    brings back what is forgotten; to take back what only no longer holds, use `echoic delete`.
    """
    named = {
        f"key {key!r}": key,
        f"conversation {conversation!r}": conversation,
        f"memory or turn {name!r}": name,
        f"what turn {asked!r} asks to forget": asked,
        "everything": everything or None,
    }
    given = [what for what, value in named.items() if value is not None]
    if len(given) != 1:
        raise click.UsageError(
            "say what to forget: --key KEY, --conversation ID, --id ID, --asked ID or --all", ctx
        )
    what = given[0]
    if not yes:
        _ask_first(f"{what} of user {settings_of(ctx).user!r}")

    async def work(desk: Desk) -> Result:
        receipt = await desk.user.forget(key=key, conversation=conversation, id=name, asked=asked)
        desk.output.say(f"forgot {what} of user {desk.settings.user!r}")
        if not receipt.verified:
            desk.output.note("it could not be verified that every byte is gone: run it again")
        code = DONE if receipt.verified else COULD_NOT_LOOK
        return Result(data=receipt, text=_lines(receipt), count=receipt.records, code=code)

    return run(ctx, work)


def _ask_first(what: str) -> None:
    """Let a person say no; where there is nobody to ask, nothing is destroyed.

    Raises:
        InvalidInput: stdin is no terminal.
    """
    if not sys.stdin.isatty():
        raise InvalidInput(
            f"this would destroy {what} for good, and there is no terminal to ask at: add --yes to mean it"
        )
    click.confirm(f"Destroy {what}?", abort=True, err=True)


def _lines(receipt: Receipt) -> str:
    verified = f"yes, {receipt.bytes_searched} bytes searched" if receipt.verified else "no"
    return "\n".join(
        (
            f"memories\t{receipt.memories}",
            f"turns\t{receipt.turns}",
            f"conversations\t{receipt.conversations}",
            f"vectors\t{receipt.vectors}",
            f"other\t{receipt.other}",
            f"rewritten\t{receipt.rewritten}",
            *(f"kept, {why}\t{count}" for why, count in receipt.kept_because.items()),
            f"verified\t{verified}",
        )
    )


__all__ = ["forget_command"]
