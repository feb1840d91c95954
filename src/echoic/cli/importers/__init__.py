"""Readers of other data, one function per format, and how a format is recognised.

turns: JSON lines, read line by line, so that a file may be larger than memory: {"speaker", "text",
"said_at"?, "conversation"?, "id"?, "heard"?, "confidence"?}. locomo: LoCoMo (Maharana et al. 2024), a list of
samples, each two people talking over many sessions. The sample becomes the user, a session a conversation, a
`dia_id` a turn's id. Times have no zone and are read as UTC. Observations were written by a model and are
read only on request. bodhi: `<userId>.json` with {"directives", "facts"}, or a folder of them. Timestamps are
milliseconds since 1970; 0 means unknown. Exports of other memory products are read and written by `products`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from echoic.cli.importers.base import (
    FLAWS,
    Directed,
    Exported,
    ImportedMemory,
    ImportedTurn,
    ImportSource,
    Item,
    Reader,
    Skipped,
    category_of,
    derived_id,
    reason_of,
    time_of,
)
from echoic.cli.importers.products import PRODUCT_READERS, product_of
from echoic.errors import InvalidInput
from echoic.types import PRESETS, Directives, Turn, checked_name, checked_text

_BOM = b"\xef\xbb\xbf"


def read_turns(source: ImportSource) -> Iterator[Item]:
    """One turn per line, in order; the default conversation is named like the file.

    A turn without an id gets one derived from its text, and from how often the same was said before in the
    same conversation, so that appended lines change nothing before them. A turn with another turn's id is
    skipped.
    """
    said_before: Counter[str] = Counter()
    given: dict[str, str] = {}
    with source.open() as stream:
        for number, line in enumerate(stream, 1):
            raw = line.removeprefix(_BOM) if number == 1 else line
            if not raw.strip():
                continue
            try:
                fields = _line_fields(raw)
                yield ImportedTurn(turn=_unless_taken(_turn_of_line(source, fields, said_before), given))
            except FLAWS as error:
                yield Skipped(where=f"line {number}", reason=reason_of(error))


def _line_fields(raw: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON at column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise InvalidInput("it is nested too deeply to be read") from error
    if not isinstance(value, Mapping):
        raise InvalidInput(f"it is not a JSON object but a {type(value).__name__}")
    missing = [name for name in ("speaker", "text") if name not in value]
    if missing:
        raise InvalidInput(f"it has no {' and no '.join(missing)}")
    return value


def _turn_of_line(source: ImportSource, fields: Mapping[str, Any], said_before: Counter[str]) -> Turn:
    conversation = checked_name(_given(fields, "conversation", source.stem), "conversation")
    said_at = time_of(fields.get("said_at"))
    turn = Turn(
        speaker=fields["speaker"],
        text=fields["text"],
        heard=_heard(fields.get("heard")),
        said_at=said_at or source.read_at,
        confidence=_confidence(fields.get("confidence")),
        id=_given(fields, "id", ""),
        conversation=conversation,
    )
    if turn.id:
        return turn
    content = derived_id(conversation, turn.speaker, str(fields.get("said_at")), turn.text, str(turn.heard))
    said_before[content] += 1
    return replace(turn, id=derived_id(content, str(said_before[content])))


def _unless_taken(turn: Turn, given: dict[str, str]) -> Turn:
    said = derived_id(turn.conversation, turn.speaker, turn.text, str(turn.heard), str(turn.confidence))
    if given.setdefault(turn.id, said) != said:
        raise InvalidInput(f"another turn before it has the id {turn.id!r}, which is unique within a user")
    return turn


def _given(fields: Mapping[str, Any], name: str, default: str) -> Any:
    value = fields.get(name)
    return default if value is None else value


def _heard(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidInput(f"heard must be a string, not {type(value).__name__}")


def _confidence(value: object) -> float | None:
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise InvalidInput(f"confidence must be a number from 0 to 1, not {type(value).__name__}")


_SESSION = re.compile(r"session_(\d+)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"
"""LoCoMo's times, such as "1:56 pm on 8 May, 2023"."""


def read_locomo(source: ImportSource) -> Iterator[Item]:
    """The turns of every session of every sample."""
    for where, user, sample in _samples(source):
        if isinstance(sample, Skipped):
            yield sample
            continue
        talk = sample["conversation"]
        for name, turns in _sessions(talk):
            said_at = _locomo_time(talk.get(f"{name}_date_time"))
            if said_at is None:
                yield Skipped(
                    where=f"{where} {name}", reason=f"{name}_date_time is not a time such as {_LOCOMO_TIME}"
                )
                continue
            for place, fields in enumerate(turns):
                try:
                    yield ImportedTurn(turn=_locomo_turn(fields, name, said_at), user=user)
                except FLAWS as error:
                    yield Skipped(where=f"{where} {name}[{place}]", reason=reason_of(error))


def read_locomo_facts(source: ImportSource) -> Iterator[Item]:
    """As `read_locomo`, with the observations of every sample as facts."""
    yield from read_locomo(source)
    for where, user, sample in _samples(source):
        if isinstance(sample, Skipped) or not sample.get("observation"):
            continue
        for name, place, observed in _observations(sample["observation"]):
            here = f"{where} {name}[{place}]"
            try:
                said_at = _locomo_time(
                    sample["conversation"].get(f"{name.removesuffix('_observation')}_date_time")
                )
                text = checked_text(observed[0], "observation")
                yield ImportedMemory(text=text, said_at=said_at, user=user, where=here)
            except FLAWS as error:
                yield Skipped(where=here, reason=reason_of(error))


def _observations(observed: Mapping[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """Session, place and contents of each observation; entries of another shape are yielded as unreadable."""
    for name, people in observed.items():
        lists = people.values() if isinstance(people, Mapping) else [[None]]
        entries = [entry for each in lists for entry in (each if isinstance(each, list) else [None])]
        for place, entry in enumerate(entries):
            yield name, place, entry


def _samples(source: ImportSource) -> Iterator[tuple[str, str, Any]]:
    """The place, user and contents of each sample; a `Skipped` for an invalid one."""
    samples = source.document
    if not isinstance(samples, list):
        raise InvalidInput(f"{source.name} is not in LoCoMo's layout: it is not a list of samples")
    for place, sample in enumerate(samples):
        where = f"sample[{place}]"
        try:
            user = checked_name(sample["sample_id"], "sample_id")
            if not isinstance(sample["conversation"], Mapping):
                raise InvalidInput("its conversation is not an object")
        except FLAWS as error:
            yield where, "", Skipped(where=where, reason=reason_of(error))
        else:
            yield f"sample {user!r}", user, sample


def _sessions(talk: Mapping[str, Any]) -> list[tuple[str, Sequence[Any]]]:
    """The sessions in order; a date without a session is ignored."""
    found = [(int(match[1]), name) for name in talk if (match := _SESSION.fullmatch(name))]
    return [(name, talk[name]) for _, name in sorted(found) if isinstance(talk[name], list)]


def _locomo_time(value: object) -> datetime | None:
    try:
        return datetime.strptime(str(value), _LOCOMO_TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _locomo_turn(fields: Mapping[str, Any], session: str, said_at: datetime) -> Turn:
    caption = fields.get("blip_caption")
    text = fields["text"]
    if caption and isinstance(text, str):
        text = f"{text} [shares a photo: {caption}]".strip()
    return Turn(
        speaker=fields["speaker"],
        text=text,
        said_at=said_at,
        id=checked_name(fields["dia_id"], "dia_id"),
        conversation=session,
    )


def read_bodhi(source: ImportSource) -> Iterator[Item]:
    """The directives and facts of one user, or of every user in a folder."""
    if not source.folder or source.path is None:
        yield from _bodhi_file(source, "")
        return
    files = sorted(source.path.glob("*.json"))
    if not files:
        raise InvalidInput(f"there is no <userId>.json in {source.name}")
    for path in files:
        inside = ImportSource(name=str(path), path=path, read_at=source.read_at)
        try:
            yield from _bodhi_file(inside, f"{path.name} ")
        except InvalidInput as error:
            yield Skipped(where=path.name, reason=str(error))


def _bodhi_file(source: ImportSource, where: str) -> Iterator[Item]:
    document = source.document
    if not isinstance(document, Mapping) or not document.keys() & {"directives", "facts"}:
        raise InvalidInput(f"{source.name} is not in Bodhi's layout: it has neither directives nor facts")
    user = source.stem if source.path else None
    for name, value in _part(document, "directives", Mapping, {}).items():
        here = f"{where}directives[{name!r:.40}]"
        try:
            Directives(**{name: value}) if name in {*PRESETS, "language"} else Directives(free={name: value})
            yield Directed(name=name, text=value, user=user, where=here)
        except ValueError as error:
            yield Skipped(where=here, reason=reason_of(error))
    for place, fact in enumerate(_part(document, "facts", list, [])):
        here = f"{where}facts[{place}]"
        try:
            yield replace(_bodhi_fact(fact, user), where=here)
        except FLAWS as error:
            yield Skipped(where=here, reason=reason_of(error))


def _part(document: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    part = document.get(name) or default
    if not isinstance(part, kind):
        raise InvalidInput(f"its {name} must be {'an object' if kind is Mapping else 'a list'}")
    return part


def _bodhi_fact(fact: Mapping[str, Any], user: str | None) -> ImportedMemory:
    milliseconds = fact.get("timestamp")
    said_at = datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
    text = checked_text(fact["content"], "fact")
    return ImportedMemory(text=text, category=category_of(fact.get("category")), said_at=said_at, user=user)


def read_own(source: ImportSource) -> Iterator[Item]:
    """The export, as one item; the output of `export --json`, which has it as `data`, works too."""
    document = source.document
    if isinstance(document, Mapping) and document.get("command") == "export":
        document = document.get("data")
    if not isinstance(document, Mapping):
        raise InvalidInput(f"{source.name} is not an export of Echoic: it is not a JSON object")
    user = document.get("user")
    yield Exported(document=document, user=user if isinstance(user, str) else None)


READERS: Mapping[str, Reader] = {
    "turns": read_turns,
    "locomo": read_locomo,
    "bodhi": read_bodhi,
    **PRODUCT_READERS,
    "echoic": read_own,
}
_FIRST_LINES = 20
"""Number of lines used to recognise JSON lines; a few of them may be broken."""
_NEEDLESS_LINE = 1 << 20
"""Size of a line above which a file is read as a document instead of JSON lines."""


def reader_of(name: str, *, facts: bool) -> Reader:
    """The reader of a format; with `facts`, the one that also reads observations, or `InvalidInput`."""
    if facts and name != "locomo":
        raise InvalidInput(f"--facts reads LoCoMo's observations; format {name!r} has none")
    return read_locomo_facts if facts else READERS[name]


def format_of(source: ImportSource) -> str:
    """The format of `source`, by its contents, or `InvalidInput`."""
    if source.folder:
        return "bodhi"
    if any(_is_turn(line) for line in _first_lines(source)):
        return "turns"
    try:
        document = source.document
    except InvalidInput as error:
        raise InvalidInput(f"{error}. {_hint()}") from error
    recognised = _document_format(document)
    if recognised is None:
        raise InvalidInput(f"{source.name} is in no known format. {_hint()}")
    return recognised


def _first_lines(source: ImportSource) -> list[Any]:
    """The first lines that are JSON by themselves."""
    found = []
    with source.open() as stream:
        for line in islice(iter(lambda: stream.readline(_NEEDLESS_LINE), b""), _FIRST_LINES):
            try:
                found.append(json.loads(line.decode("utf-8-sig")))
            except (ValueError, RecursionError):
                continue
    return found


def _is_turn(line: object) -> bool:
    return isinstance(line, Mapping) and {"speaker", "text"} <= line.keys()


def _document_format(document: object) -> str | None:
    if isinstance(document, Mapping):
        if "format" in document or document.get("command") == "export":
            return "echoic"
        bodhi = "directives" in document or _is_bodhis(document.get("facts"))
        return "bodhi" if bodhi else product_of(document)
    first = document[0] if isinstance(document, list) and document else None
    is_locomo = isinstance(first, Mapping) and {"sample_id", "conversation"} <= first.keys()
    return "locomo" if is_locomo else product_of(document)


def _is_bodhis(facts: object) -> bool:
    return isinstance(facts, list) and not any(isinstance(fact, Mapping) and "fact" in fact for fact in facts)


def _hint() -> str:
    return f"Name its format with --from, one of {', '.join(READERS)}."
