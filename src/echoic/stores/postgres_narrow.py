"""Search inside the database, for scopes too large to load: likely rows by meaning, words and sounds.

It only chooses; the order is made by the ranking that all stores share, over the segments the rows lie in.
The vector search is exact: a scope's rows are found by their key and all of them compared, so nothing is
missed, no index has to be built, and nothing outlives an erasure in one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echoic.partition import Flag, Partition, Segment
from echoic.stores.narrowing import origins
from echoic.stores.postgres_changes import packed, signed, sounds_of
from echoic.stores.postgres_database import Connection
from echoic.stores.postgres_load import read_parts
from echoic.stores.postgres_schema import Names
from echoic.words import content_words

_K1, _B = 1.2, 0.75
"""BM25's usual constants (Robertson and Zaragoza 2009)."""
_MAX_WORDS = 64

# One pass over the scope's rows serves words and sounds, one serves the vectors. BM25 with a word said or
# not, and with the mean length of the rows that say one, for that of all rows would be another pass. A sound
# counts for words that nobody said: `unsaid` holds the sounds of those alone.
_SEARCH = f"""with
  mine as materialized (select seq, length, terms, sounds from {{s}}.searchable
    where scope = $1 and flags & $2 = 0 and (terms && $3::int[] or sounds && $4::int[])),
  facts as (select (select next_row from {{s}}.scopes where id = $1)::float8 as n,
    greatest(avg(length), 1)::float8 as mean from mine),
  said as materialized (select seq, length, term from mine
    join unnest($3::int[]) as term on term = any(terms)),
  rare as (select term, ln(1 + greatest(n - count(*), 0) / (count(*) + 0.5)) as idf
    from said, facts group by term, n),
  worded as (select seq from said join rare using (term), facts group by seq, length, mean
    order by sum(idf) / (1 + {_K1}::float8 * ({1 - _B}::float8 + {_B}::float8 * length / mean)) desc, seq
    limit $5),
  unsaid as (select distinct sound from unnest($6::int[], $7::int[]) as u (term, sound)
    where term not in (select term from rare)),
  sounded as (select seq from mine where sounds && array(select sound from unsaid)
    order by (select count(*) from unnest(sounds) as s where s in (select sound from unsaid)) desc, seq
    limit $5),
  near as (select seq from {{s}}.searchable
    where scope = $1 and flags & $2 = 0 and e is not null and $8::{{v}}.vector is not null
    order by e operator({{v}}.<#>) $8::{{v}}.vector, seq limit $5)
  select seq from near union select seq from worded union select seq from sounded"""  # noqa: S608


def shown(vector: NDArray[np.float32] | None, limit: int) -> tuple[dict[str, object], ...]:
    """What is asked, as JSON for people. The statement is always the same; what was said is a parameter."""
    ways = {"words": "BM25", "sounds": "of words nobody said"}
    meaning = {} if vector is None else {"meaning": f"exact inner product of {len(vector)} dimensions"}
    return ({"union": {**meaning, **ways}, "limitEach": limit},)


async def likely_rows(
    connection: Connection,
    names: Names,
    number: int,
    text: str,
    vector: NDArray[np.float32] | None,
    *,
    limit: int,
    include_past: bool,
) -> list[int]:
    """At most `limit` rows of scope `number` by each of meaning, words, and sounds of words nobody said."""
    words = list(dict.fromkeys(content_words(text)))[:_MAX_WORDS]
    heard = [(term, sound) for word in words for term in signed([word.term]) for sound in sounds_of([word])]
    rows = await connection.fetch(
        names.sql(_SEARCH),
        number,
        int(Flag.UNHEARD if include_past else Flag.UNHEARD | Flag.PAST),
        sorted(set(signed(word.term for word in words))),
        sorted({sound for _, sound in heard}),
        limit,
        [term for term, _ in heard],
        [sound for _, sound in heard],
        None if vector is None else packed(vector / max(float(np.linalg.norm(vector)), 1e-12)),
    )
    return [row[0] for row in rows]


async def compact(
    connection: Connection, names: Names, number: int, segments: list[int], dimensions: int
) -> Partition:
    """A partition of these segments of scope `number` alone, one behind the other."""
    parts = await read_parts(connection, names, number, segments, records=False)
    partition = Partition(dimensions)
    placed: list[tuple[int, Segment]] = [(place, segment) for place, (_, segment, _) in enumerate(parts)]
    with partition.lock:
        partition.patch(placed)
    partition.origin = origins([number for number, _, _ in parts])
    return partition


__all__ = ["compact", "likely_rows", "shown"]
