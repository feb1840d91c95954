"""The operator's command over one telephone line: whose it is, and undoing a link nobody should have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from echoic.cli.command import command
from echoic.cli.exits import DONE
from echoic.cli.output import Result
from echoic.cli.running import Desk, run
from echoic.cli.secret import given_secret, kept_secret, secret_file
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.adapters.twilio.callers import Callers
    from echoic.adapters.twilio.lines import Line


@command("line")
@click.argument("number", metavar="E164")
@click.option("--unlink", is_flag=True, help="The line is again whose it was before.")
@click.option(
    "--give-back",
    is_flag=True,
    help="Unlink it, and move what was said on it while it was linked back to whose it was before.",
)
@click.option("--link", "user", metavar="USER", help="Link it to a user whose proof you have seen.")
@click.pass_context
def line_command(ctx: click.Context, number: str, unlink: bool, give_back: bool, user: str | None) -> int:
    """Print what is known of a telephone line, or mend it.

    Takes the number as the callers' server is given it, and the same ECHOIC_SECRET. Nothing is lost by any of
    it: whoever calls from there next is told, and both memories stay as they are unless you give calls back.
    """
    if sum((unlink, give_back, user is not None)) > 1:
        raise click.UsageError("say one of --unlink, --give-back and --link", ctx)

    async def work(desk: Desk) -> Result:
        callers = _callers(desk)
        line = callers.line_of(number)
        if line is None:
            raise InvalidInput("a number is + and 6 to 15 digits, as in +15550100001")
        moved = 0
        if user is not None:
            before = await callers.lines.read(line)
            owners = {line, before.linked or line, *before.people.values()}
            await callers.lines.link(line, user, proved=owners)
        elif unlink or give_back:
            await callers.lines.unlink(line)
            moved = await callers.give_back(line) if give_back else 0
        known = await callers.lines.read(line)
        found = {"line": line, "linked": known.linked, "people": len(known.people), "given_back": moved}
        return Result(data=found, text=_told(known, moved), count=1, code=DONE)

    return run(ctx, work)


def _callers(desk: Desk) -> Callers:
    from echoic.adapters.twilio.callers import Callers
    from echoic.adapters.twilio.settings import PhoneSettings

    path = secret_file(desk.settings)
    secret = given_secret() or (kept_secret(path) if path is not None else None)
    if secret is None:
        raise InvalidInput(
            "set ECHOIC_SECRET to that of the callers' server: with another no number is known"
        )
    # it answers no call, so it has no account
    settings = PhoneSettings(auth_token="none", salt=secret, deployment=desk.settings.deployment)  # noqa: S106
    return Callers(desk.memory, settings)


def _told(line: Line, moved: int) -> str:
    linked = f"linked to {line.linked}" if line.linked is not None else "linked to nobody"
    people = f", {len(line.people)} more people call from it" if line.people else ""
    return f"{linked}{people}" + (f"; {moved} calls given back" if moved else "")


__all__ = ["line_command"]
