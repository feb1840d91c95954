"""Export formats of other memory products, read and written.

mem0: memories, as `get_all` and its exports return them, said when they were last updated. Metadata, hashes
and graph relations are left out. zep: edges of a graph, whose facts are memories, and messages of threads, as
its clients return them: lists, or pages of "items", "edges", "facts" or "messages". Invalid facts become
history. langgraph: items of a store, as `Item.dict()` returns them, or rows of its table. Each becomes an
item of `EchoicStore`, and a sentence in it also a memory; the first label of the namespace is the user.
chatgpt: conversations.json of a data export; of a conversation with branches, the one shown last, without
instructions, tools, thoughts and hidden messages. letta: an agent file (.af, both versions), or lists of
passages, blocks or messages. Passages and lines of blocks are memories; the block "persona" is about the
agent and left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from itertools import islice
from typing import Any

from echoic.checks import AGENT, MAX_TEXT_BYTES, USER
from echoic.cli.importers.base import (
    FLAWS,
    Exported,
    ImportedMemory,
    ImportedTurn,
    ImportSource,
    Item,
    Reader,
    Skipped,
    category_of,
    derived_id,
    export_of,
    reason_of,
    time_of,
)
from echoic.errors import InvalidInput, brief
from echoic.types import Turn, checked_name, checked_text

Fields = Mapping[str, Any]
_MOST = MAX_TEXT_BYTES // 4
"""Characters of one turn at most."""
_SPEAKERS: Mapping[object, str] = {"user": USER, "assistant": AGENT, "human": USER, "ai": AGENT}
"""Speakers by role; others, such as tools, are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The position of a record: its export, and the object in it."""

    source: ImportSource
    page: Fields
    """The object whose list it is in; empty for a bare list."""

    def named(self, *names: str) -> Any:
        return _first(self.page, *names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Product:
    """How to recognise and read the records of one product."""

    lists: tuple[str, ...]
    """Names of lists of records in a document, which may also be a list of records or documents itself."""
    kinds: Mapping[str, Callable[[Fields, _Place], Iterator[Item]]]
    """How to read a record, by the first of these fields that it has."""
    signs: tuple[frozenset[str], ...]
    """Fields of a document or its first record by which the product is recognised."""

    def records(self, document: Any, where: str = "") -> Iterator[tuple[str, Any, Fields]]:
        """The place of each record, the record, and the object around it."""
        if isinstance(document, list):
            yield from self._listed(document, where, {})
        elif isinstance(document, Mapping):
            lists = [name for name in self.lists if isinstance(document.get(name), list)]
            if not lists and self.tells(document):
                yield where, document, {}
            for name in lists:
                yield from self._listed(document[name], f"{where}.{name}" if where else name, document)

    def _listed(self, records: list[Any], where: str, page: Fields) -> Iterator[tuple[str, Any, Fields]]:
        for place, record in enumerate(records):
            here = f"{where}[{place}]"
            pages = isinstance(record, Mapping) and any(isinstance(record.get(n), list) for n in self.lists)
            if pages and not self.tells(record):
                yield from self.records(record, here)
            else:
                yield here, record, page

    def tells(self, record: Fields) -> bool:
        """Whether it has a field of one of the kinds."""
        return any(name in record for name in self.kinds)

    def read(self, record: Any, around: _Place) -> Iterator[Item]:
        """The items of a record; raises one of `FLAWS` if it is not a record of this product."""
        kinds = list(self.kinds)
        kind = next((name for name in kinds if name in record), kinds[0])
        yield from self.kinds[kind](record, around)


def _first(fields: Fields, *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _time(value: object) -> datetime | None:
    """An ISO 8601 text, or seconds since 1970, as a time; None for None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    return time_of(value, naive_is_utc=True)


def _user(value: object) -> str | None:
    return None if value is None else checked_name(value, "user")


def _turns(
    around: _Place, *, speaker: str, text: str, said_at: datetime | None, talk: object, name: object
) -> Iterator[ImportedTurn]:
    """The text as one turn, or as several if it is too long."""
    conversation = checked_name(str(talk or around.source.stem), "conversation")
    at = said_at or around.source.read_at
    known = checked_name(str(name or derived_id(conversation, speaker, str(said_at), text)), "id")
    for number, part in enumerate(_parts(text), 1):
        turn_id = known if number == 1 else f"{known}#{number}"
        turn = Turn(speaker=speaker, text=part, said_at=at, id=turn_id, conversation=conversation)
        yield ImportedTurn(turn=turn, user=_user(around.named("user_id")))


def _parts(text: str) -> Iterator[str]:
    """`text` cut between words if it is too long."""
    while len(text) > _MOST:
        end = text.rfind(" ", _MOST // 2, _MOST)
        end = _MOST if end < 0 else end
        yield text[:end].strip()
        text = text[end:]
    yield text.strip()


def _each(messages: Iterable[Fields], read: Callable[[Fields], Iterator[Item]], where: str) -> Iterator[Item]:
    """`read` applied to each record; an unreadable one does not affect the others."""
    for place, message in enumerate(messages):
        try:
            yield from read(message)
        except FLAWS as error:
            yield Skipped(where=f"{where} message[{place}]", reason=reason_of(error))


def _memory(text: object, said_at: datetime | None, user: str | None = None, **more: Any) -> ImportedMemory:
    return ImportedMemory(text=checked_text(text, "text"), said_at=said_at, user=user, **more)


def _history(text: object, said_at: datetime, until: datetime, user: str | None) -> Exported:
    """A memory that is no longer current."""
    name = derived_id("imported", checked_text(text, "text"), said_at.isoformat(), until.isoformat())
    moments = {"valid_from": said_at.isoformat(), "valid_until": until.isoformat()}
    memory = {"id": name, "key": None, "text": text, "category": "fact", **moments}
    return Exported(document=export_of(memories=[memory]), user=user)


# -- mem0


def _mem0_memory(record: Fields, around: _Place) -> Iterator[Item]:
    text, user = record["memory"], _user(_first(record, "user_id"))
    said_at = _time(_first(record, "updated_at", "created_at"))
    expires = record.get("expiration_date")
    if expires is not None and (day := date.fromisoformat(str(expires)[:10])) < around.source.read_at.date():
        until = datetime.combine(day, time(), UTC)
        yield _history(text, min(said_at or until, until), until, user)
        return
    metadata = record.get("metadata")
    named = [metadata.get("category")] if isinstance(metadata, Mapping) else []
    named += record["categories"] if isinstance(record.get("categories"), list) else []
    # the platform's own categories have no meaning here
    category = next((name for name in named if category_of(name) == name), "fact")
    yield _memory(text, said_at, user, category=category)


# -- Zep


def _zep_fact(record: Fields, around: _Place) -> Iterator[Item]:
    user = _user(_first(record, "user_id") or around.named("user_id"))
    said_at = _time(_first(record, "valid_at", "created_at"))
    until = _time(_first(record, "invalid_at", "expired_at"))
    if until is not None and until <= around.source.read_at:
        yield _history(record["fact"], min(said_at or until, until), until, user)
    else:
        yield _memory(record["fact"], said_at, user)


def _zep_message(record: Fields, around: _Place) -> Iterator[Item]:
    speaker = _SPEAKERS.get(_first(record, "role_type", "role"))  # in older versions `role` is a name
    if speaker is None:
        return
    thread = ("thread_id", "session_id", "thread_uuid")
    yield from _turns(
        around,
        speaker=speaker,
        text=record["content"],
        said_at=_time(_first(record, "reference_time", "created_at")),
        talk=_first(record, *thread) or around.named(*thread),
        name=_first(record, "uuid", "uuid_"),
    )


# -- LangGraph

LANGGRAPH = "langgraph"
"""The kind of `EchoicStore`'s items."""


def _store_item(record: Fields, around: _Place) -> Iterator[Item]:
    from echoic.memory.items import texts_in
    from echoic.memory.records import name_of

    place = record["namespace"] if "namespace" in record else str(record["prefix"]).split(".")
    namespace = [checked_name(label, "a label of the namespace") for label in place]
    if not namespace:
        raise InvalidInput("its namespace is empty: the first label names the user")
    value = record["value"]
    if not isinstance(value, Mapping):
        raise InvalidInput("its value is not an object")
    read_at = around.source.read_at
    at = {name: (_time(record.get(name)) or read_at).isoformat() for name in ("created_at", "updated_at")}
    item = {
        "kind": LANGGRAPH,
        "name": name_of(namespace, checked_name(record["key"], "key")),
        "value": {"namespace": namespace, "key": record["key"], "value": value},
        "text": texts_in(value) or None,
        "searchable": True,
        **at,
    }
    yield Exported(document=export_of(items=[item]), user=namespace[0])
    if (sentence := _sentence_in(value)) is not None:
        yield _memory(sentence, _time(_first(record, "updated_at", "created_at")), namespace[0])


def _sentence_in(value: Any) -> str | None:
    """The sentence in a value, as LangMem and LangGraph's examples write it; None for other data."""
    if isinstance(value, Mapping):
        return _sentence_in(_first(value, "content", "text", "memory", "data"))
    return value if isinstance(value, str) and value.strip() else None


# -- ChatGPT


def _chatgpt_conversation(record: Fields, around: _Place) -> Iterator[Item]:
    name, begun = _first(record, "conversation_id", "id"), _time(record.get("create_time"))

    def read(message: Fields) -> Iterator[Item]:
        if text := _shown_text(message):
            yield from _turns(
                around,
                speaker=_SPEAKERS[message["author"]["role"]],
                text=text,
                said_at=_time(message.get("create_time")) or begun,
                talk=name,
                name=message.get("id"),
            )

    yield from _each(_seen(record), read, f"conversation {brief(name)}")


def _seen(conversation: Fields) -> list[Fields]:
    """The messages of the branch that was shown last."""
    nodes: Fields = conversation["mapping"]
    path, passed = list[Fields](), set[Any]()
    place: Any = conversation.get("current_node")
    if place not in nodes:  # the last of the leaves
        leaves = [name for name, node in nodes.items() if not node.get("children")]
        place = leaves[-1] if leaves else None
    while place in nodes and place not in passed:
        passed.add(place)
        if isinstance(nodes[place].get("message"), Mapping):
            path.append(nodes[place]["message"])
        place = nodes[place].get("parent")
    return path[::-1]


def _shown_text(message: Fields) -> str:
    """The visible or spoken text of a message; empty for thoughts, tools and hidden messages."""
    content, hidden = message.get("content") or {}, message.get("metadata") or {}
    if (
        (message.get("author") or {}).get("role") not in {"user", "assistant"}
        or content.get("content_type") not in {"text", "multimodal_text"}
        or message.get("recipient", "all") != "all"
        or message.get("channel") not in {None, "final"}
        or message.get("weight", 1) == 0
        or hidden.get("is_visually_hidden_from_conversation")
    ):
        return ""
    parts = content.get("parts") or []
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str) and text.strip()).strip()


# -- Letta


def _letta_agent(record: Fields, around: _Place) -> Iterator[Item]:
    page = {**around.page, "conversation": _first(record, "name", "id")}
    inside = _Place(source=around.source, page=page)
    agent = f"agent {brief(page['conversation'])}"
    yield from _each(record["messages"], lambda message: _letta_message(message, inside), agent)


def _letta_message(record: Fields, around: _Place) -> Iterator[Item]:
    speaker, text = _SPEAKERS.get(record["role"]), _letta_text(record)
    if speaker is not None and text:
        talk = around.named("conversation", "name") or _first(record, "agent_id")
        said_at, name = _time(record.get("created_at")), record.get("id")
        yield from _turns(around, speaker=speaker, text=text, said_at=said_at, talk=talk, name=name)


def _letta_text(message: Fields) -> str:
    """What was said; empty for thoughts, and for what the runtime tells an agent in the user's name."""
    content = _first(message, "content", "text")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    text = " ".join(part["text"] for part in parts if part.get("type") == "text").strip()
    if calls := message.get("tool_calls"):
        sent = [call["function"] for call in calls if call["function"]["name"] == "send_message"]
        return " ".join(json.loads(call["arguments"]).get("message", "") for call in sent).strip()
    if message["role"] == "user" and text.startswith("{"):
        try:
            packed = json.loads(text)
        except ValueError:
            return text
        is_said = packed.get("type") == "user_message"
        return str(packed.get("message", "")).strip() if is_said or "type" not in packed else ""
    return text


def _letta_block(record: Fields, _around: _Place) -> Iterator[Item]:
    if record["label"] != "persona":
        lines = [line.strip().removeprefix("- ") for line in (record["value"] or "").splitlines()]
        yield from (_memory(line, _time(record.get("updated_at"))) for line in lines if line)


def _letta_passage(record: Fields, _around: _Place) -> Iterator[Item]:
    if not record.get("is_deleted"):
        yield _memory(record["text"], _time(record.get("created_at")))


_PRODUCTS: Mapping[str, _Product] = {
    "mem0": _Product(
        lists=("results", "memories"),
        kinds={"memory": _mem0_memory},
        signs=(frozenset({"results"}), frozenset({"memory"})),
    ),
    "langgraph": _Product(
        lists=("items",),
        kinds={"value": _store_item},
        signs=(frozenset({"namespace", "key", "value"}), frozenset({"prefix", "key", "value"})),
    ),
    "chatgpt": _Product(
        lists=("conversations",),
        kinds={"mapping": _chatgpt_conversation},
        signs=(frozenset({"mapping"}),),
    ),
    "letta": _Product(
        lists=("agents", "blocks", "core_memory", "passages", "messages"),
        kinds={
            "label": _letta_block,
            "messages": _letta_agent,
            "role": _letta_message,
            "text": _letta_passage,
        },
        signs=(
            frozenset({"agents", "blocks"}),
            frozenset({"core_memory"}),
            frozenset({"text", "archive_id"}),
        ),
    ),
    "zep": _Product(
        lists=("items", "edges", "facts", "messages"),
        kinds={"fact": _zep_fact, "content": _zep_message},
        signs=(frozenset({"fact"}), frozenset({"uuid", "role", "content"})),
    ),
}


def _reader_of(name: str, product: _Product) -> Reader:
    def read(source: ImportSource) -> Iterator[Item]:
        document = source.document
        if not _may_hold(product, document):
            lists = ", ".join(product.lists)
            raise InvalidInput(
                f"{source.name} is not an export of {name}: neither a list nor one of {lists} in it"
            )
        for where, record, page in product.records(document):
            try:
                for item in product.read(record, _Place(source=source, page=page)):
                    yield item if isinstance(item, ImportedTurn | Skipped) else replace(item, where=where)
            except FLAWS as error:
                yield Skipped(where=where, reason=reason_of(error))

    return read


def _may_hold(product: _Product, document: Any) -> bool:
    if not isinstance(document, Mapping):
        return isinstance(document, list)
    return any(isinstance(document.get(n), list) for n in product.lists) or product.tells(document)


PRODUCT_READERS: Mapping[str, Reader] = {name: _reader_of(name, each) for name, each in _PRODUCTS.items()}


def product_of(document: Any) -> str | None:
    """The product whose format a document has; None if none is recognised."""
    for name, product in _PRODUCTS.items():
        records = [record for _, record, _ in islice(product.records(document), 1)]
        shown = [each.keys() for each in (document, *records) if isinstance(each, Mapping)]
        if any(sign <= fields for sign in product.signs for fields in shown):
            return name
    return None


# -- writing the formats, from an export of Echoic


def _sentences(export: Fields) -> Iterator[tuple[Fields, str]]:
    """Current memories, each with a sentence that does not need its key."""
    for memory in export["memories"]:
        if memory.get("valid_until") is None:
            key, text = memory.get("key"), memory["text"]
            yield memory, memory.get("statement") or (text if key is None else f"{key}: {text}")


def _said(export: Fields) -> Iterator[tuple[str, Fields]]:
    for conversation in export["conversations"]:
        yield from ((conversation["id"], turn) for turn in conversation["turns"])


def _as_turns(export: Fields) -> list[Fields]:
    named = ("id", "speaker", "text", "heard", "said_at", "confidence")
    return [
        {"conversation": talk, **{name: turn[name] for name in named if turn.get(name) is not None}}
        for talk, turn in _said(export)
    ]


def _as_mem0(export: Fields) -> Fields:
    return {
        "results": [
            {
                "id": memory["id"],
                "memory": sentence,
                "user_id": export["user"],
                "created_at": memory["valid_from"],
                "updated_at": memory["valid_from"],
                "metadata": {"category": memory["category"]},
            }
            for memory, sentence in _sentences(export)
        ]
    }


def _as_zep(export: Fields) -> Fields:
    ended = [memory for memory in export["memories"] if memory.get("valid_until") is not None]
    facts = [*_sentences(export), *((memory, memory.get("statement") or memory["text"]) for memory in ended)]
    roles = {USER: "user", AGENT: "assistant"}
    return {
        "edges": [
            {
                "uuid": memory["id"],
                "fact": sentence,
                "created_at": memory["valid_from"],
                "valid_at": memory["valid_from"],
                "invalid_at": memory.get("valid_until"),
            }
            for memory, sentence in facts
        ],
        "messages": [
            {
                "uuid": turn["id"],
                "thread_id": talk,
                "role": roles[turn["speaker"]],
                "content": text,
                "created_at": turn["said_at"],
            }
            for talk, turn in _said(export)
            if turn["speaker"] in roles and (text := _heard(turn))
        ],
    }


def _heard(turn: Fields) -> str:
    heard = turn.get("heard")
    return str(turn["text"] if heard is None else heard)


def _as_langgraph(export: Fields) -> list[Fields]:
    items = [item for item in export["items"] if item["kind"] == LANGGRAPH]
    kept = [{**item["value"], **{at: item[at] for at in ("created_at", "updated_at")}} for item in items]
    told = {sentence for item in items if (sentence := _sentence_in(item["value"]["value"]))}
    return kept + [
        {
            "namespace": [export["user"], "memories"],
            "key": memory["id"],
            "value": {"text": sentence},
            "created_at": memory["valid_from"],
            "updated_at": memory["valid_from"],
        }
        for memory, sentence in _sentences(export)
        if sentence not in told
    ]


def _as_letta(export: Fields) -> list[Fields]:
    return [
        {
            "id": f"passage-{memory['id']}",
            "text": sentence,
            "created_at": memory["valid_from"],
            "tags": [memory["category"]],
            "archive_id": None,
        }
        for memory, sentence in _sentences(export)
    ]


WRITERS: Mapping[str, Callable[[Fields], Any]] = {
    "turns": _as_turns,
    "mem0": _as_mem0,
    "zep": _as_zep,
    "langgraph": _as_langgraph,
    "letta": _as_letta,
}


def written_for(name: str, export: Fields) -> tuple[Any, str]:
    """A user's export in one of the layouts of `WRITERS`, as JSON and as text."""
    made = WRITERS[name](export)
    if name == "turns":
        return made, "\n".join(json.dumps(line, ensure_ascii=False) for line in made)
    return made, json.dumps(made, ensure_ascii=False, indent=1)
