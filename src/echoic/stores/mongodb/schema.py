"""The database schema: collections, indexes, search indexes, documents, and the metadata of the database.

A searchable record has the shape of MongoDB's published voice-memory demo, so that its collections open
unchanged and its tools can read ours. Echoic's own fields are added to these.

`memories` holds every record; `echoic_scopes` one document for each scope, with its version and counters;
`echoic_segments` the words of 32 rows each; `echoic_meta` one document about the database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
from bson.binary import Binary
from numpy.typing import NDArray
from pymongo import ASCENDING, IndexModel
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.asynchronous.mongo_client import AsyncMongoClient
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import ReadPreference
from pymongo.write_concern import WriteConcern

from echoic.errors import StoreCorrupt, StoreTooNew, StoreUnavailable
from echoic.partition import Entry, Flag
from echoic.stores.base import FIRST_UNSEARCHABLE, Record, check_model
from echoic.text import ANALYSIS
from echoic.types import EmbeddingSpec, Scope

Document = dict[str, Any]

EVERYONE = "global"
"""The `userCookie` of the global scope; `isGlobal` distinguishes a user of that name."""
OPTIONAL_FIELDS = ("key", "value", "data", "dataJson", "entryText", "isPast")
"""Optional fields of a record; those missing in a new version are removed."""
VECTOR_FIELDS = ("embedding", "tokens")
_VECTOR_SUBTYPE = 9
_FLOAT32 = b"\x27\x00"
"""The prefix of a binary vector: 32-bit floats, no padding. https://bsonspec.org, subtype 9."""
_MAX_DEPTH = 40
"""The deepest nested data stored as documents; BSON ends at 100, and a document of ours adds a few levels."""
_INT64 = 1 << 63


def scope_fields(scope: Scope) -> Document:
    """The fields of a document's scope and, in this order, the `_id` of the scope's document."""
    user = EVERYONE if scope.user is None else scope.user
    return {"deploymentId": scope.deployment, "userCookie": user, "isGlobal": scope.user is None}


def scope_of(fields: Mapping[str, Any]) -> Scope:
    """The inverse of `scope_fields`."""
    return Scope(fields["deploymentId"], None if fields["isGlobal"] else fields["userCookie"])


def fields_of(record: Record, entry: Entry | None) -> Document:
    """The fields of a record that a write sets, with `OPTIONAL_FIELDS` only if they have a value."""
    fields: Document = {"kind": record.kind, "id": record.id, "seq": record.seq, "version": record.version}
    if record.key is not None:
        fields["key"] = record.key
    data: Mapping[str, Any] = record.data
    if entry is not None:
        text = data.get("text")
        if isinstance(text, str) and _is_unicode(text):
            fields["value"] = text
            data = {name: value for name, value in data.items() if name != "text"}
        if entry.text != text and entry.text and _is_unicode(entry.text):
            fields["entryText"] = entry.text
        fields["isPast"] = bool(entry.flags & Flag.PAST)
    if not data:
        return fields
    if _fits(data, 0):
        fields["data"] = data
    else:
        fields["dataJson"] = json.dumps(data)
    return fields


def _fits(value: Any, depth: int) -> bool:
    """Whether BSON stores `value` exactly, and a server gives its names no special meaning."""
    match value:
        case None | bool() | float():
            return True
        case str():
            return _is_unicode(value)
        case int():
            return -_INT64 <= value < _INT64
        case list() | tuple():
            return depth < _MAX_DEPTH and all(_fits(item, depth + 1) for item in value)
        case Mapping():
            return depth < _MAX_DEPTH and all(
                isinstance(name, str) and _is_name(name) and _fits(item, depth + 1)
                for name, item in value.items()
            )
    return False


def _is_name(name: str) -> bool:
    return (
        bool(name) and not name.startswith("$") and "." not in name and "\0" not in name and _is_unicode(name)
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON stores and BSON does not
        return False
    return True


def record_of(document: Mapping[str, Any]) -> Record:
    """The inverse of `fields_of`, or StoreCorrupt."""
    try:
        data: dict[str, Any] = {}
        if "value" in document and document["seq"] < FIRST_UNSEARCHABLE:
            data["text"] = document["value"]
        data.update(
            json.loads(document["dataJson"]) if "dataJson" in document else _plain(document.get("data", {}))
        )
        return Record(
            kind=document["kind"],
            id=document["id"],
            key=document.get("key"),
            version=int(document["version"]),
            seq=int(document["seq"]),
            data=data,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreCorrupt(
            f"the document {document.get('_id')} is not a record ({type(error).__name__}); it is left alone"
        ) from error


def listed_of(document: Mapping[str, Any]) -> Record:
    """The same in a list over many users: a damaged one has no data there, and keeps no other back."""
    try:
        return record_of(document)
    except StoreCorrupt:
        kind, name = document.get("kind"), document.get("id")
        return Record(kind=str(kind), id=str(name), key=document.get("key"), data={})


def _plain(value: Any) -> Any:
    """`value` without the driver's own number types."""
    match value:
        case bool():
            return value
        case int():
            return int(value)
        case list():
            return [_plain(item) for item in value]
        case dict():
            return {name: _plain(item) for name, item in value.items()}
    return value


def packed(vector: NDArray[np.float32]) -> Binary:
    """[dimensions] A vector in the binary form that search indexes read: 4 bytes a number."""
    return Binary(_FLOAT32 + np.ascontiguousarray(vector, "<f4").tobytes(), _VECTOR_SUBTYPE)


def unpacked(value: Any) -> NDArray[np.float32] | None:
    """[dimensions] The inverse of `packed`, also for an array of numbers; None if it is neither."""
    if isinstance(value, bytes) and getattr(value, "subtype", None) == _VECTOR_SUBTYPE:
        data = bytes(value)
        if data[:2] != _FLOAT32 or len(data) % 4 != 2:
            return None
        return np.frombuffer(data, "<f4", offset=2).astype(np.float32, copy=False)
    if isinstance(value, list) and value and all(isinstance(n, (int, float)) for n in value):
        return np.array(value, np.float32)
    return None


def moment(clock_ns: int) -> datetime:
    """A clock's nanoseconds as a date, which a document keeps to the millisecond."""
    return datetime.fromtimestamp(clock_ns // 1_000_000 / 1000, UTC)


VERSION = 1
OLDEST_SERVER = (6, 0)
"""Older versions are out of support."""
FUSING_SERVER = (8, 0)
"""The first version with `$rankFusion`; before it, the two searches are separate."""

DURABLE = WriteConcern(w="majority", j=True)
"""Acknowledged means written to the disks of a majority, so it survives the loss of any one."""
SETTLED = ReadConcern("majority")

_SCOPE = [("deploymentId", ASCENDING), ("userCookie", ASCENDING), ("isGlobal", ASCENDING)]
# Partial: what a program before us left in the collection has none of these fields, and must not collide.
RECORD_INDEXES = (
    IndexModel(
        [*_SCOPE, ("kind", ASCENDING), ("id", ASCENDING)],
        name="echoic_name",
        unique=True,
        partialFilterExpression={"kind": {"$exists": True}},
    ),
    IndexModel(
        [*_SCOPE, ("seq", ASCENDING)],
        name="echoic_seq",
        unique=True,
        partialFilterExpression={"seq": {"$exists": True}},
    ),
    # not partial: an erasure removes all documents of a user, even those that are not records
    IndexModel([*_SCOPE, ("kind", ASCENDING), ("key", ASCENDING), ("seq", ASCENDING)], name="echoic_key"),
    # finds foreign documents on opening without a full scan
    IndexModel([("kind", ASCENDING), ("_id", ASCENDING)], name="echoic_kind"),
    # queries of operators across users: any of the three alone finds its rows
    *(
        IndexModel(
            [("deploymentId", ASCENDING), *((f"data.{field}", ASCENDING) for field in fields)],
            name=f"echoic_conversations_by_{name}",
            partialFilterExpression={"kind": "conversation"},
        )
        for name, fields in {
            "status": ("status", "agent", "started_at"),
            "agent": ("agent", "started_at"),
            "time": ("started_at",),
        }.items()
    ),
    IndexModel(
        [("waitsSince", ASCENDING), ("seq", ASCENDING)],
        name="echoic_waits",
        partialFilterExpression={"waitsSince": {"$exists": True}},
    ),
)
SEGMENT_INDEXES = (
    IndexModel([*_SCOPE, ("number", ASCENDING)], name="echoic_number", unique=True),
    IndexModel([*_SCOPE, ("version", ASCENDING)], name="echoic_version"),
)
SCOPE_INDEXES = (IndexModel([("begun", ASCENDING)], name="echoic_begun"),)

VECTOR_INDEX = "echoic_vector"
TEXT_INDEX = "echoic_text"
# Whose it is must be a filter of the search itself: behind it, others' hits have taken the places already.
FILTERS = ("deploymentId", "userCookie", "isGlobal", "isPast")


def vector_index(dimensions: int) -> SearchIndexModel:
    """The index that `$vectorSearch` reads."""
    vector = {"type": "vector", "path": "embedding", "numDimensions": dimensions, "similarity": "cosine"}
    filters = [{"type": "filter", "path": path} for path in FILTERS]
    return SearchIndexModel({"fields": [vector, *filters]}, name=VECTOR_INDEX, type="vectorSearch")


def text_index() -> SearchIndexModel:
    """The index for `$search`: English stems, and unstemmed words for misheard names."""
    stems = {
        "type": "string",
        "analyzer": "lucene.english",
        "multi": {"words": {"type": "string", "analyzer": "lucene.standard"}},
    }
    token, boolean = {"type": "token"}, {"type": "boolean"}
    fields = {
        "value": stems,
        "entryText": stems,
        "deploymentId": token,
        "userCookie": token,
        "isGlobal": boolean,
        "isPast": boolean,
    }
    return SearchIndexModel(
        {"mappings": {"dynamic": False, "fields": fields}}, name=TEXT_INDEX, type="search"
    )


# Error codes of servers without a search process.
_WITHOUT_SEARCH = {59, 115, 31082, 40324, 6047401}


class Collections:
    """One database's collections, with the read and write concerns that durability and freshness need."""

    def __init__(self, database: AsyncDatabase[Document]) -> None:
        concerns: dict[str, Any] = {
            "write_concern": DURABLE,
            "read_concern": SETTLED,
            "read_preference": ReadPreference.PRIMARY,
        }
        self.database = database
        self.records: AsyncCollection[Document] = database.get_collection("memories", **concerns)
        # the search process has no read concern: its stages accept only "local"
        self.search: AsyncCollection[Document] = self.records.with_options(read_concern=ReadConcern("local"))
        self.scopes: AsyncCollection[Document] = database.get_collection("echoic_scopes", **concerns)
        self.segments: AsyncCollection[Document] = database.get_collection("echoic_segments", **concerns)
        self.meta: AsyncCollection[Document] = database.get_collection("echoic_meta", **concerns)


async def look_at_server(client: AsyncMongoClient[Document], where: str) -> Document:
    """The kind of server; StoreUnavailable if it is too old or has no transactions."""
    hello = await client.admin.command("hello")
    version = (await client.admin.command("buildInfo"))["version"]
    numbers = tuple(int(part) for part in version.split("-")[0].split(".")[:2])
    if numbers < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        raise StoreUnavailable(f"MongoDB {version} on {where} is too old: {oldest} or later is needed")
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        raise StoreUnavailable(
            f"MongoDB on {where} is a standalone server and cannot change several documents as one, "
            "so a memory could be half written. Make it a replica set of one: start mongod with --replSet "
            "rs0, run rs.initiate() once in mongosh, and open it again"
        )
    return {"version": version, "numbers": numbers, "sharded": hello.get("msg") == "isdbgrid"}


async def settle(collections: Collections, embedding: EmbeddingSpec, where: str) -> Document:
    """Check that the database holds vectors of this model, or claim an empty one; returns its metadata.

    Raises:
        EmbeddingMismatch: it holds vectors of another model.
        StoreTooNew: a newer version wrote it.
        StoreCorrupt: its metadata cannot be read.
    """
    meta = await collections.meta.find_one({"_id": "store"})
    if meta is None:
        fresh = {"schema": VERSION, "analysis": ANALYSIS, "unfinished": False, **model_fields(embedding)}
        await collections.meta.update_one({"_id": "store"}, {"$setOnInsert": fresh}, upsert=True)
        meta = await collections.meta.find_one({"_id": "store"})
    return checked_meta(meta, embedding, where)


def checked_meta(meta: Document | None, embedding: EmbeddingSpec, where: str) -> Document:
    """The database's metadata, if it matches `embedding`; raises as `settle`."""
    if meta is None or not isinstance(meta.get("schema"), int) or not isinstance(meta.get("model"), str):
        raise StoreCorrupt(f"the metadata of MongoDB on {where} (echoic_meta) cannot be read; left unchanged")
    if meta["schema"] > VERSION:
        raise StoreTooNew(
            f"MongoDB on {where} has schema {meta['schema']}, this Echoic knows {VERSION}: "
            "upgrade Echoic to open it"
        )
    check_model(EmbeddingSpec(meta["model"], int(meta["dimensions"])), embedding, f"MongoDB on {where}")
    return meta


def model_fields(embedding: EmbeddingSpec) -> Document:
    return {"model": embedding.model, "dimensions": embedding.dimensions}


async def make_indexes(collections: Collections) -> None:
    await collections.records.create_indexes(list(RECORD_INDEXES))
    await collections.segments.create_indexes(list(SEGMENT_INDEXES))
    await collections.scopes.create_indexes(list(SCOPE_INDEXES))


async def search_states(collections: Collections) -> Mapping[str, Document] | None:
    """The search indexes of the records by name; None if the server has no search."""
    try:
        listed = await collections.search.list_search_indexes()
        return {index["name"]: dict(index) async for index in listed}
    except OperationFailure as error:
        if error.code in _WITHOUT_SEARCH:
            return None
        raise


async def make_search_indexes(collections: Collections, dimensions: int) -> bool:
    """Create or update the search indexes; False if the server has no search.

    They are built in the background; `searchable` tells when they are ready.
    """
    states = await search_states(collections)
    if states is None:
        return False
    for wanted in (vector_index(dimensions), text_index()):
        document = wanted.document
        there = states.get(document["name"])
        if there is None:
            await collections.search.create_search_index(wanted)
        elif not _same(there.get("latestDefinition"), document["definition"]):
            await collections.search.update_search_index(document["name"], document["definition"])
    return True


def _same(there: Any, wanted: Any) -> bool:
    """Whether a definition contains at least `wanted`: servers add their defaults."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            _same(there.get(name), value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(there, list) and all(any(_same(one, value) for one in there) for value in wanted)
    return bool(there == wanted)


def searchable(states: Mapping[str, Document] | None) -> bool:
    """Whether both search indexes answer."""
    return states is not None and all(
        states.get(name, {}).get("queryable", False) for name in (VECTOR_INDEX, TEXT_INDEX)
    )


Session = AsyncClientSession
