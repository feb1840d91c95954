"""Operators' commands: distil, reindex, users, copy, backup, restore, keys, audit."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.asyncio_runner import (
    Desk,
    apart,
    embedder_at,
    log_warnings,
    memory_at,
    opened_as_embedded,
    reading,
    store_path,
    with_memory,
    words_only,
)
from echoic.cli.command import CommandGroup, command
from echoic.cli.output import (
    COULD_NOT_LOOK,
    DONE,
    NOTHING_KNOWN,
    CommandResult,
    Output,
    Table,
    listing,
    moment,
    write_private,
)
from echoic.cli.settings import Settings, variable_option
from echoic.errors import InvalidInput, StoreUnavailable
from echoic.factory import compliance_folder
from echoic.types import Consent, EmbeddingSpec, Scope

if TYPE_CHECKING:
    from echoic.memory.compliance import ChainedLog, Compliance
    from echoic.memory.export import CopiedMemory
    from echoic.memory.extraction.reconciliation import Distilled
    from echoic.memory.service import MemoryService

_LOOK_S = 1.0
"""How often waiting records are counted; each check is a small write to the store."""


@command("hold")
@click.option("--release", is_flag=True, help="End the hold.")
@with_memory
async def hold_command(desk: Desk, /, *, release: bool) -> CommandResult:
    """Keep everything stored about the user from being destroyed (operators).

    Until it is released, `forget` is refused and nothing is destroyed for its age.
    """
    await desk.user.hold(on=not release)
    words = "released" if release else "on hold: nothing stored about this user is destroyed"
    held = {"user": desk.settings.user, "held": not release}
    return CommandResult(data=held, text=words, count=1)


@command("consent")
@click.argument("whose", metavar="USER")
@click.argument(
    "choice", metavar="[keep|ask|never]", required=False, type=click.Choice(["keep", "ask", "never"])
)
@with_memory
async def consent_command(desk: Desk, /, *, whose: str, choice: Consent | None) -> CommandResult:
    """Print or set whether anything USER says may be stored.

    With never, nothing that USER says is stored from now on. With ask, nothing is stored until USER agrees,
    in each call. Both apply to a running call too. What is stored already stays until `echoic forget`
    destroys it.
    """
    memory = desk.memory.user(whose, desk.settings.deployment)
    if choice is not None:
        await memory.set_consent(choice)
    consent = await memory.consent()
    return CommandResult(data={"user": whose, "consent": consent}, text=consent, count=1)


@command("distil")
@click.option("--watch", is_flag=True, help="Run as a worker until interrupted.")
@click.option(
    "--every",
    "seconds",
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="How often a worker looks for work.",
)
@click.option(
    "--parked", is_flag=True, help="Retry conversations that were given up after repeated model failures."
)
@variable_option(
    "model",
    metavar="PROVIDER:MODEL",
    help="A language model that extracts memories in addition to the rules.",
)
@apart
async def distil_command(
    settings: Settings, output: Output, *, watch: bool, seconds: float, parked: bool, model: str | None
) -> CommandResult:
    """Extract memories from conversations that were not read yet.

    Reads the conversations of every user of the deployment, and prints each memory that was stored or
    retracted, with its key. With --watch it runs as a worker over every deployment, unless you name one: it
    reads conversations that ended or were abandoned, and reports progress on stderr. Several workers may
    share a store.
    """
    if not seconds > 0:
        raise click.BadParameter(f"{seconds} is not a positive number", param_hint="--every")

    embedder = embedder_at(settings)
    async with memory_at(settings, embedder, model) as memory:
        if watch:
            log_warnings()
            return await _watch(memory, settings, output, seconds)
        result = await _distil(memory, settings, output, parked=parked)
    if embedder.failure is not None:
        output.note(words_only(embedder.failure))
    return result


async def _distil(
    memory: MemoryService, settings: Settings, output: Output, *, parked: bool
) -> CommandResult:
    distilled = await memory.distil(settings.deployment, parked=parked)
    output.say(_told(distilled))
    jobs = await memory.jobs(settings.deployment)
    if jobs.failing or jobs.parked:
        output.note(f"a model failed on {jobs.failing + len(jobs.parked)} conversations; see `echoic doctor`")
    rows = [("kept", m.key or "", m.text) for m in distilled.kept]
    rows += [("retracted", m.key or "", m.text) for m in distilled.retracted]
    table = Table(headings=("WHAT", "KEY", "TEXT"), rows=rows)
    return CommandResult(data=distilled, text=table, count=len(rows))


async def _watch(memory: MemoryService, settings: Settings, output: Output, every_s: float) -> CommandResult:
    """Work until interrupted. Its messages have no content, since they may be kept in logs."""
    deployment = settings.deployment if "deployment" in settings.named else None
    output.say(f"watching {deployment or 'all deployments'}, every {every_s:g} s")
    while True:
        try:
            distilled = await memory.distil_due(deployment)
        except StoreUnavailable as error:  # a worker survives a restart of its database
            output.say(f"the store is unavailable, trying again: {error}")
        else:
            if distilled.turns or distilled.kept or distilled.retracted or distilled.confirmed:
                output.say(_told(distilled))
        await asyncio.sleep(every_s)


def _told(distilled: Distilled) -> str:
    counts = f"kept {len(distilled.kept)}, retracted {len(distilled.retracted)}"
    again = f", confirmed {len(distilled.confirmed)}" if distilled.confirmed else ""
    return f"read {distilled.turns} turns: {counts}{again}"


@command("users")
@reading
async def users_command(desk: Desk) -> CommandResult:
    """Print the users of the deployment, one a line (operators)."""
    users = await desk.memory.users(desk.settings.deployment)
    if not users:
        desk.output.say(f"deployment {desk.settings.deployment!r} has no users")
    return listing(users, "USER", [(user,) for user in users])


@command("reindex")
@apart
async def reindex_command(settings: Settings, output: Output) -> CommandResult:
    """Embed every record again, for instance with another embedder.

    --embedder names the one to use; the store changes to it. Until reindexing is done, records without a
    vector are found by words and sounds. Exit code 2 means that some have none yet.
    """
    embedder = embedder_at(settings)
    await embedder.ready()  # fails before any old vector is dropped
    async with await opened_as_embedded(settings, embedder) as memory:
        records = await memory.reindex(embedder.own_spec)
        embedder.own_up()
        output.note(_size(embedder.own_spec))
        left = await embed_waiting(memory, output, "embedding")
    if embedder.failure is not None:
        output.note(words_only(embedder.failure))
    output.say(f"embedded {records - left} of {records} records with {settings.embedder}")
    code = COULD_NOT_LOOK if left else DONE
    return CommandResult(data={"records": records, "waiting": left}, count=records - left, code=code)


def _size(spec: EmbeddingSpec) -> str:
    """The size of a record's vectors, as text."""
    vector = f"a vector of {spec.dimensions} dimensions takes {4 * spec.dimensions:,} bytes a record"
    if not spec.model.startswith("local:"):
        return vector
    from echoic.partition import AXES, MAX_BYTES  # imports numpy, which `--help` does not need

    return f"{vector}, and each of its word pieces {AXES} more, {MAX_BYTES:,} at most"


async def embed_waiting(memory: MemoryService, output: Output, what: str) -> int:
    """Wait until every record is embedded or embedding fails; returns the number left."""
    facts, before = await memory.check(), 0
    with output.progress(what) as progress:

        def tell(done: int, total: int) -> None:
            progress(before + done, before + total)

        while waiting := 0 if facts["embedding_failure"] else facts["waiting"]:
            await memory.settle(_LOOK_S, progress=tell)
            facts = await memory.check()
            before += max(0, waiting - facts["waiting"])
    return int(facts["waiting"])


@command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@apart
async def copy_command(settings: Settings, output: Output, source: str, target: str) -> CommandResult:
    """Copy every user's records to another store.

    FROM and TO are store URLs, as for --store. All deployments, users and records are copied with their
    vectors, so nothing is embedded again. If TO uses another embedder (--embedder names one for a new store),
    the records are embedded when TO is next used. FROM is only read. At the end, the records of each user are
    counted and compared in both stores.

    Nothing else may write to either store meanwhile. If the copy is interrupted, run the same command again
    to continue. Records of other users in TO stay. Nothing is copied if TO holds different records of a user,
    or if something was forgotten in TO that FROM may still hold.
    """
    from echoic.memory.export import copy_memory
    from echoic.stores import store_from

    _check(settings, source, target)
    await _note_export(settings, source)
    with output.progress("copying") as progress:
        done = await copy_memory(
            partial(store_from, source),
            partial(store_from, target),
            embedder_at(settings).own_spec,
            named="embedder" in settings.named,
            progress=progress,
        )
    return _result(done, output)


async def _note_export(settings: Settings, url: str) -> None:
    """Log that everything in the store at `url` is exported, before it is; raises as the log does."""
    if not settings.audit:
        return
    from echoic.memory.audit import AuditLog
    from echoic.memory.compliance import MARKS, Compliance
    from echoic.memory.export import opened
    from echoic.stores import store_from

    folder = settings.compliance or compliance_folder(url)
    if folder is None:
        raise InvalidInput("an audit log needs a compliance folder: name one with --compliance")
    log = AuditLog(Compliance(folder))
    async with opened(partial(store_from, url), embedder_at(settings).own_spec) as (store, _):
        deployments = {scope.deployment for scope in await store.scopes()} - {MARKS.deployment}
        for deployment in sorted(deployments):
            log.note("export", Scope(deployment, None), "everything")
    await log.flush()


def _check(settings: Settings, source: str, target: str) -> None:
    """Raise `InvalidInput` if a store is missing, does not outlast this command, or both are the same."""
    from echoic.stores import store_from

    for url in (source, target):
        store_from(url)
        if url.lower().startswith("memory:"):
            raise InvalidInput("memory:// ends with this command: name a persistent store")
    taken, given = (store_path(replace(settings, store=url)) for url in (source, target))
    if source == target or (taken is not None and given is not None and taken.resolve() == given.resolve()):
        raise InvalidInput("FROM and TO are the same store: name another one to copy to")
    if taken is not None and not taken.exists():
        raise InvalidInput(f"there is no store at {taken}; nothing was copied")


def _result(done: CopiedMemory, output: Output) -> CommandResult:
    copied = done.copied
    data = {
        "records": copied.records,
        "new": copied.new,
        "vectors": copied.vectors,
        "waiting": copied.waiting,
        "model": done.target.model,
        "scopes": [
            asdict(one.scope) | {name: value for name, value in asdict(one).items() if name != "scope"}
            for one in copied.scopes
        ],
    }
    if not copied.scopes:
        output.say("FROM is empty")
        return CommandResult(data=data, count=0, code=NOTHING_KNOWN)
    output.say(
        f"copied {copied.new} of {copied.records} records of {len(copied.scopes)} scopes, "
        f"{copied.records - copied.new} were there already; both stores are equal"
    )
    if copied.waiting:
        output.note(
            f"{copied.waiting} records will be embedded when TO is used with the embedder "
            f"{done.target.model!r}; until then they are found by words and sounds"
        )
    return CommandResult(data=data, count=copied.records, code=DONE)


@click.group("keys", cls=CommandGroup)
def keys_group() -> None:
    """Create, list and revoke keys for the HTTP API.

    A key allows what its role allows, in one deployment: agent gets tokens for users, operator uses every
    operator's route, auditor reads the audit log, read-only uses the operator's routes that only read, except
    the audit log. Servers of the store accept a new key, and refuse a revoked one, at once and without a
    restart.
    """


@command("create")
@click.option("--role", required=True, type=click.Choice(["agent", "operator", "auditor", "read-only"]))
@click.option("--name", default="", metavar="NAME", help="A name for the key, such as its holder's.")
@click.option("--days", type=click.IntRange(1), metavar="N", help="Expire after N days; default: never.")
@with_memory
async def create_key_command(desk: Desk, role: Any, name: str, days: int | None) -> CommandResult:
    """Create a key and print it. It is shown now and never again; the store keeps only a hash."""
    lifetime = None if days is None else timedelta(days=days)
    keys = desk.memory.keys(desk.settings.deployment)
    key, made = await keys.create(role, name=name, lifetime=lifetime)
    desk.output.say(f"created {role} key {made.id} for deployment {desk.settings.deployment!r}")
    return CommandResult(data={"key": key, "listed": made}, text=key, count=1)


@command("list")
@with_memory
async def list_keys_command(desk: Desk) -> CommandResult:
    """List the keys of the deployment.

    Columns: id, role, name, created, expires, revoked.
    """
    found = await desk.memory.keys(desk.settings.deployment).list()
    rows = [
        (k.id, k.role, k.name, moment(k.created_at), moment(k.expires_at), moment(k.revoked_at))
        for k in found
    ]
    return listing(found, "ID ROLE NAME CREATED EXPIRES REVOKED", rows)


@command("revoke")
@click.argument("key_id", metavar="ID")
@with_memory
async def revoke_key_command(desk: Desk, key_id: str) -> CommandResult:
    """Revoke a key. Tokens that were issued with it stay valid until they expire."""
    revoked = await desk.memory.keys(desk.settings.deployment).revoke(key_id)
    desk.output.say(f"revoked {revoked.role} key {revoked.id}")
    return CommandResult(data=revoked, count=1)


keys_group.add_section("Keys", [create_key_command, list_keys_command, revoke_key_command])


@command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@apart
async def backup_command(settings: Settings, output: Output, file: Path) -> CommandResult:
    """Back up a whole store to one file, while it is in use.

    All deployments, users and records are written with their vectors, whatever kind of store it is, and the
    file is read back. FILE.sha256 beside it holds its checksum. FILE is itself a store: any command can read
    it with --store sqlite:///FILE.

    From SQLite, the backup is the store at one moment. From any other store, each user is as they were at one
    moment. Copy the compliance folder apart: it must be newer than the backup when you restore
    (docs/backup.md).
    """
    from echoic.memory.export import back_up
    from echoic.stores import store_from

    _check_place(settings)
    source = partial(store_from, settings.store)
    await _note_export(settings, settings.store)
    with output.progress("backing up") as progress:
        done = await back_up(source, file, embedder_at(settings).own_spec, progress=progress)
    output.say(f"backed up {done.records} records of {done.scopes} users and deployments to {file}")
    return CommandResult(data=done, text=f"{done.sha256}  {file.name}", count=done.records, code=DONE)


@command("restore")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--without-checksum", is_flag=True, help="Restore although FILE.sha256 is missing.")
@click.option(
    "--put-back", is_flag=True, help="You have put the store itself back, from a snapshot: without FILE."
)
@apart
async def restore_command(
    settings: Settings, output: Output, file: Path | None, *, without_checksum: bool, put_back: bool
) -> CommandResult:
    """Restore a backup into an empty store, and erase again what was erased since.

    --store is the store to fill; it must be empty. What was erased since the backup was made is listed in the
    compliance folder (--compliance, by default the one beside the store) and is erased again before the
    command ends. Without that folder everything in the backup comes back.

    With --put-back, the store is the one that you have put back yourself, as an old file, a snapshot or a
    dump of the database. Whatever the folder lists is erased in it again.
    """
    if put_back == (file is not None):
        raise click.UsageError("give the FILE of a backup, or --put-back for a store that is there again")

    from echoic.memory.export import restore_backup
    from echoic.stores import store_from

    if settings.store.lower().startswith("memory:"):
        raise InvalidInput("memory:// ends with this command: name a persistent store")
    target = partial(store_from, settings.store)
    if file is None:
        return await _put_back(settings, output)
    with output.progress("restoring") as progress:
        copied = await restore_backup(file, target, checked=not without_checksum, progress=progress)
    again, listed = await _forget_again(settings)
    output.say(
        f"restored {copied.records} records of {len(copied.scopes)} users and deployments, "
        f"then made {again} erasures again"
    )
    if not listed:
        output.note("no list of erasures was found: what was erased since the backup is restored")
    data: dict[str, Any] = {"records": copied.records, "erasures_again": again, "erasures_listed": listed}
    return CommandResult(data=data, count=copied.records, code=DONE)


async def _put_back(settings: Settings, output: Output) -> CommandResult:
    """Erase again in a store that was put back what was erased since, there or in a store in its place."""
    from echoic.memory.compliance import RESTORED, identify
    from echoic.memory.export import opened
    from echoic.stores import store_from

    _check_place(settings)
    async with opened(partial(store_from, settings.store), embedder_at(settings).own_spec) as (store, _):
        await identify(store, [RESTORED])
    again, listed = await _forget_again(settings)
    output.say(f"made {again} erasures again")
    if not listed:
        output.note("no list of erasures was found: what was erased since is there again")
    return CommandResult(data={"erasures_again": again, "erasures_listed": listed}, count=again, code=DONE)


async def _forget_again(settings: Settings) -> tuple[int, int]:
    """Open the restored store, which repeats erasures; returns how many, and how many are listed."""
    from echoic.memory.compliance import Compliance

    async with await opened_as_embedded(settings, embedder_at(settings)) as memory:
        again = memory.forgotten_again
    folder = settings.compliance or compliance_folder(settings.store)
    return again, 0 if folder is None else len(Compliance(folder).past())


def _check_place(settings: Settings) -> None:
    path = store_path(settings)
    if settings.store.lower().startswith("memory:"):
        raise InvalidInput("memory:// holds nothing that outlasts a command: name a persistent store")
    if path is not None and not path.exists():
        raise InvalidInput(f"there is no store at {path}; nothing was done")


# -- the audit log


@click.group("audit", cls=CommandGroup)
def audit_group() -> None:
    """Read and check the audit log, and receipts of erasures.

    The log is in the compliance folder. It records who read, wrote, exported or erased which kind of record
    of which user, when and why, without content. Services that you start with --audit write it.
    """


@command("list")
@click.option("--of", "user", metavar="USER", help="Only accesses to this user of the deployment.")
@click.option("--limit", metavar="N", type=click.IntRange(1), default=100, show_default=True)
@apart
async def list_audit_command(
    settings: Settings, _output: Output, user: str | None, limit: int
) -> CommandResult:
    """Print the newest entries, oldest first.

    Columns: number, time, role, who, action, kind of record, pseudonym of the user, reason.
    """
    compliance, log = _audit_log(settings)
    entries = log.entries()
    if user is not None:
        whom = compliance.pseudonym(Scope(settings.deployment, user))
        entries = [entry for entry in entries if entry.get("scope") == whom]
    entries = entries[-limit:]
    headings = ("N", "AT", "ROLE", "WHO", "DID", "KIND", "WHOM", "WHY")
    names = ("n", "at", "role", "who", "did", "kind", "scope", "why")
    rows = [tuple(str(entry.get(name, "")) for name in names) for entry in entries]
    return CommandResult(data=entries, text=Table(headings=headings, rows=rows), count=len(rows))


@command("verify")
@click.option("--receipt", type=click.Path(path_type=Path), help="Check a receipt instead, as JSON.")
@click.option(
    "--head", metavar="HASH", help="Also check that the log still contains the line with this hash."
)
@apart
async def verify_audit_command(
    settings: Settings, output: Output, receipt: Path | None, head: str | None
) -> CommandResult:
    """Check that no line of the audit log or of the list of erasures was changed, removed or inserted.

    Prints the hash of the last line. Keep it elsewhere, and pass it as --head later: only then are lines that
    were cut off the end noticed. With --receipt, checks the signature of a receipt of this deployment.
    """
    compliance, log = _audit_log(settings)
    if receipt is not None:
        statement = _verified_receipt(receipt, compliance)
        return CommandResult(data=statement, text=json.dumps(statement, indent=2), count=1)
    compliance.log.entries()
    entries, last = log.read()
    if head is not None and head not in {last, *(entry["prev"] for entry in entries)}:
        raise InvalidInput("the log has no line with that hash: its end was cut off, or it was pruned")
    output.say(f"{len(entries)} entries, none changed, removed or inserted")
    return CommandResult(data={"entries": len(entries), "head": last}, text=last, count=len(entries))


@command("export")
@click.argument("file", type=click.Path(path_type=Path))
@apart
async def export_audit_command(settings: Settings, output: Output, file: Path) -> CommandResult:
    """Write the audit log to FILE, and a signed statement of its last line to FILE.signed.

    docs/audit.md shows how a third party checks both.
    """
    told, lines = _exported_log(*_audit_log(settings), file)
    output.say(f"wrote {lines} entries to {file}")
    return CommandResult(data=told, text=told["statement"], count=lines)


@command("prune")
@click.option(
    "--before", required=True, metavar="DATE", help="Remove entries older than this, as 2026-03-14."
)
@apart
async def prune_audit_command(settings: Settings, output: Output, before: str) -> CommandResult:
    """Remove old entries of the audit log. The removal is logged, and other entries stay unchanged."""
    import getpass

    try:
        first = datetime.fromisoformat(before)
    except ValueError as error:
        raise InvalidInput("--before must be a date or time as 2026-03-14") from error
    first = first if first.tzinfo else first.replace(tzinfo=UTC)
    _, log = _audit_log(settings)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    note = {"at": now, "role": "command line", "who": getpass.getuser(), "why": "prune", "did": "prune"}
    cut = first.astimezone(UTC).isoformat(timespec="milliseconds")
    removed = log.remove_before(cut, note)
    output.say(f"removed {removed} entries")
    return CommandResult(data={"removed": removed}, count=removed)


@command("key")
@apart
async def audit_key_command(settings: Settings, _output: Output) -> CommandResult:
    """Print the public key of receipts and exports, in base64, for auditors."""
    compliance, _ = _audit_log(settings)
    told = compliance.signed({})
    if not told:
        raise InvalidInput("signatures need cryptography: pip install 'echoic[signing]'")
    return listing([told["key"]], "KEY", [(told["key"],)])


audit_group.add_section(
    "Audit",
    [list_audit_command, verify_audit_command, export_audit_command, prune_audit_command, audit_key_command],
)


def _audit_log(settings: Settings) -> tuple[Compliance, ChainedLog]:
    from echoic.memory.compliance import ChainedLog, Compliance

    folder = settings.compliance or compliance_folder(settings.store)
    if folder is None or not folder.is_dir():
        raise InvalidInput("there is no compliance folder: name it with --compliance")
    return Compliance(folder), ChainedLog(folder / "audit.jsonl")


def _exported_log(compliance: Compliance, log: ChainedLog, file: Path) -> tuple[Mapping[str, str], int]:
    """Copy the log to `file` and sign its last line; returns the signed statement and the number of entries.

    Raises:
        InvalidInput: a file exists already, or nothing can be signed.
    """
    from echoic.memory.compliance import ChainedLog

    signed = Path(f"{file}.signed")
    if file.exists() or signed.exists():
        raise InvalidInput(f"{str(file)!r} or its .signed file exists already: name another file")
    write_private(file, log.path.read_bytes() if log.path.exists() else b"")
    entries, head = ChainedLog(file).read()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    told = compliance.signed({"type": "echoic.audit-log", "at": now, "lines": len(entries), "head": head})
    if not told:
        raise InvalidInput("signatures need cryptography: pip install 'echoic[signing]'")
    write_private(signed, json.dumps(told).encode() + b"\n")
    return told, len(entries)


def _verified_receipt(path: Path, compliance: Compliance) -> Mapping[str, Any]:
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
    # over HTTP a field's name is "bytesSearched", where "bytes_searched" was signed
    beside = {re.sub(r"(?=[A-Z])", "_", name).lower(): value for name, value in told.items()}
    if any(beside[name] != value for name, value in statement.items() if name in beside):
        raise InvalidInput("this receipt was changed: what it counts is not what was signed")
    return statement
