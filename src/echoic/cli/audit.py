"""`echoic audit`: list, verify, export and prune the audit log; check receipts."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.asyncio_runner import run_apart
from echoic.cli.command import CommandGroup, command
from echoic.cli.output import CommandResult, Output, Table, listing
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    from echoic.memory.compliance import ChainedLog, Compliance


@click.group("audit", cls=CommandGroup)
def audit_group() -> None:
    """Read and check the audit log, and receipts of erasures.

    The log is in the compliance folder. It records who read, wrote, exported or erased which kind of record
    of which user, when and why, without content. Services that you start with --audit write it.
    """


@command("list")
@click.option("--of", "user", metavar="USER", help="Only accesses to this user of the deployment.")
@click.option("--limit", metavar="N", type=click.IntRange(1), default=100, show_default=True)
@click.pass_context
def list_command(ctx: click.Context, user: str | None, limit: int) -> int:
    """Print the newest entries, oldest first.

    Columns: number, time, role, who, action, kind of record, pseudonym of the user, reason.
    """

    async def work(settings: Settings, _output: Output) -> CommandResult:
        from echoic.types import Scope

        compliance, log = _log(settings)
        entries = log.entries()
        if user is not None:
            whom = compliance.pseudonym(Scope(settings.deployment, user))
            entries = [entry for entry in entries if entry.get("scope") == whom]
        entries = entries[-limit:]
        headings = ("N", "AT", "ROLE", "WHO", "DID", "KIND", "WHOM", "WHY")
        names = ("n", "at", "role", "who", "did", "kind", "scope", "why")
        rows = [tuple(str(entry.get(name, "")) for name in names) for entry in entries]
        return CommandResult(data=entries, text=Table(headings=headings, rows=rows), count=len(rows))

    return run_apart(ctx, work)


@command("verify")
@click.option("--receipt", type=click.Path(path_type=Path), help="Check a receipt instead, as JSON.")
@click.option(
    "--head", metavar="HASH", help="Also check that the log still contains the line with this hash."
)
@click.pass_context
def verify_command(ctx: click.Context, receipt: Path | None, head: str | None) -> int:
    """Check that no line of the audit log or of the list of erasures was changed, removed or inserted.

    Prints the hash of the last line. Keep it elsewhere, and pass it as --head later: only then are lines that
    were cut off the end noticed. With --receipt, checks the signature of a receipt of this deployment.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        compliance, log = _log(settings)
        if receipt is not None:
            statement = _verified(receipt, compliance)
            return CommandResult(data=statement, text=json.dumps(statement, indent=2), count=1)
        compliance.log.entries()
        entries, last = log.read()
        if head is not None and head not in {last, *(entry["prev"] for entry in entries)}:
            raise InvalidInput("the log has no line with that hash: its end was cut off, or it was pruned")
        output.say(f"{len(entries)} entries, none changed, removed or inserted")
        return CommandResult(data={"entries": len(entries), "head": last}, text=last, count=len(entries))

    return run_apart(ctx, work)


@command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_context
def export_command(ctx: click.Context, file: Path) -> int:
    """Write the audit log to FILE, and a signed statement of its last line to FILE.signed.

    docs/audit.md shows how a third party checks both.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        told, lines = _exported(*_log(settings), file)
        output.say(f"wrote {lines} entries to {file}")
        return CommandResult(data=told, text=told["statement"], count=lines)

    return run_apart(ctx, work)


@command("prune")
@click.option(
    "--before", required=True, metavar="DATE", help="Remove entries older than this, as 2026-03-14."
)
@click.pass_context
def prune_command(ctx: click.Context, before: str) -> int:
    """Remove old entries of the audit log. The removal is logged, and other entries stay unchanged."""

    async def work(settings: Settings, output: Output) -> CommandResult:
        import getpass

        try:
            moment = datetime.fromisoformat(before)
        except ValueError as error:
            raise InvalidInput("--before must be a date or time as 2026-03-14") from error
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        _, log = _log(settings)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        note = {"at": now, "role": "command line", "who": getpass.getuser(), "why": "prune", "did": "prune"}
        cut = moment.astimezone(UTC).isoformat(timespec="milliseconds")
        removed = log.remove_before(cut, note)
        output.say(f"removed {removed} entries")
        return CommandResult(data={"removed": removed}, count=removed)

    return run_apart(ctx, work)


@command("key")
@click.pass_context
def key_command(ctx: click.Context) -> int:
    """Print the public key of receipts and exports, in base64, for auditors."""

    async def work(settings: Settings, _output: Output) -> CommandResult:
        compliance, _ = _log(settings)
        told = compliance.signed({})
        if not told:
            raise InvalidInput("signatures need cryptography: pip install 'echoic[signing]'")
        return listing([told["key"]], "KEY", [(told["key"],)])

    return run_apart(ctx, work)


audit_group.add_section("Audit", [list_command, verify_command, export_command, prune_command, key_command])


def _log(settings: Settings) -> tuple[Compliance, ChainedLog]:
    from echoic.factory import compliance_folder
    from echoic.memory.compliance import ChainedLog, Compliance

    folder = settings.compliance or compliance_folder(settings.store)
    if folder is None or not folder.is_dir():
        raise InvalidInput("there is no compliance folder: name it with --compliance")
    return Compliance(folder), ChainedLog(folder / "audit.jsonl")


def _exported(compliance: Compliance, log: ChainedLog, file: Path) -> tuple[Mapping[str, str], int]:
    """Copy the log to `file` and sign its last line; returns the signed statement and the number of entries.

    Raises:
        InvalidInput: a file exists already, or nothing can be signed.
    """
    from echoic.memory.compliance import ChainedLog

    signed = Path(f"{file}.signed")
    if file.exists() or signed.exists():
        raise InvalidInput(f"{str(file)!r} or its .signed file exists already: name another file")
    file.write_bytes(log.path.read_bytes() if log.path.exists() else b"")
    entries, head = ChainedLog(file).read()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    told = compliance.signed({"type": "echoic.audit-log", "at": now, "lines": len(entries), "head": head})
    if not told:
        raise InvalidInput("signatures need cryptography: pip install 'echoic[signing]'")
    signed.write_text(json.dumps(told) + "\n", encoding="utf-8")
    return told, len(entries)


def _verified(path: Path, compliance: Compliance) -> Mapping[str, Any]:
    """The statement of a receipt that was signed with this folder's key, or `InvalidInput`."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        told = told.get("data", told)
        given = told.get("signed", told)
        text, signature = given["statement"], b64decode(given["signature"], validate=True)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(f"{str(path)!r} holds no signed receipt") from error
    key = Ed25519PrivateKey.from_private_bytes(compliance.derived("signature")).public_key()
    try:
        key.verify(signature, text.encode())
    except InvalidSignature as error:
        raise InvalidInput("this receipt was changed, or signed with another key") from error
    statement: Mapping[str, Any] = json.loads(text)
    if statement.get("type") != "echoic.erasure-receipt":
        raise InvalidInput("this statement is signed, and is no receipt of an erasure")
    beside = {_snake(name): value for name, value in told.items()}
    if any(beside[name] != value for name, value in statement.items() if name in beside):
        raise InvalidInput("this receipt was changed: what it counts is not what was signed")
    return statement


def _snake(name: str) -> str:
    """A field's name over HTTP, such as "bytesSearched", as it was signed."""
    return re.sub(r"(?=[A-Z])", "_", name).lower()
