"""What stands in the documents of a `DocumentStore`: records and vectors as JSON, and back. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from echoic.errors import StoreCorrupt, StoreTooNew
from echoic.partition import SEGMENT_ROWS
from echoic.stores.base import FIRST_UNSEARCHABLE, Attach, Record
from echoic.stores.scope_state import HeldScope, Staged

Json = dict[str, Any]
FORMAT: Final = 1
_OF_VECTOR: Final = ("vector", "text", "pieces")


def changed_parts(texts: Mapping[str, str], held: HeldScope, staged: Staged) -> dict[str, str]:
    """The new text of each part that `staged` changes; empty where the part is gone."""
    opened: dict[str, Json] = {}

    def part(seq: int) -> Json:
        which = f"r{seq // SEGMENT_ROWS}"
        if which not in opened:
            opened[which] = parsed(texts[which]) if which in texts else {}
        return opened[which]

    for step in staged.steps:
        if isinstance(step.change, Attach):
            if step.left is not None:
                text = staged.texts.get(step.left.seq) or held.texts[step.left.seq]
                one = part(step.left.seq)[str(step.left.seq)]
                one |= {"vector": _packed(step.change.vector), "text": text.digest.hex()}
                one["pieces"] = None if step.change.tokens is None else _base64(step.change.tokens)
        elif step.left is None:
            if step.old is not None:
                del part(step.old.seq)[str(step.old.seq)]
        else:
            before = part(step.left.seq).get(str(step.left.seq), {})
            part(step.left.seq)[str(step.left.seq)] = _kept(step.left, staged, held) | {
                name: before[name] for name in _OF_VECTOR if step.keep and name in before
            }
    return {which: json.dumps(ones) if ones else "" for which, ones in opened.items()}


def _kept(record: Record, staged: Staged, held: HeldScope) -> Json:
    one = {"kind": record.kind, "id": record.id, "key": record.key, "version": record.version}
    text = staged.texts.get(record.seq) or held.texts.get(record.seq)
    return {**one, "data": record.data} | ({"since": text.since} if text else {})


def record_of(seq: int, one: Json) -> Record:
    """The record of a part's entry."""
    return Record(
        kind=one["kind"], id=one["id"], key=one["key"], data=one["data"], version=one["version"], seq=seq
    )


def vector_of(one: Json) -> tuple[bytes, Any, bytes | None]:
    """The digest of the text a vector was made of, the vector and its word pieces."""
    vector = np.frombuffer(base64.b64decode(one["vector"]), "<f4").astype(np.float32)
    pieces = one.get("pieces")
    return bytes.fromhex(one["text"]), vector, None if pieces is None else base64.b64decode(pieces)


def without_vectors(text: str) -> str:
    ones = parsed(text)
    left = {
        s: {n: v for n, v in one.items() if n not in {"vector", "text", "pieces"}} for s, one in ones.items()
    }
    return json.dumps(left)


def _packed(vector: Any) -> str:
    return _base64(np.asarray(vector, "<f4").tobytes())


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def head_of(text: str | None) -> Json:
    """A scope's list; of one that is not there, an empty one."""
    if text is None:
        return {"parts": {}, "next": [0, FIRST_UNSEARCHABLE], "model": None, "records": 0}
    head = parsed(text)
    if head.get("format") != FORMAT:
        raise StoreTooNew(
            f"a user's documents have format {head.get('format')!r}, this Echoic knows {FORMAT}"
        )
    return head


def parsed(text: str) -> Json:
    """A document.

    Raises:
        StoreCorrupt: it is none.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise StoreCorrupt("a document is not what was put there; it is left untouched") from error
    if not isinstance(found, dict):
        raise StoreCorrupt("a document is no JSON object; it is left untouched")
    return found
