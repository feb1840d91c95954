"""Where each channel puts a hit: worked out when somebody asks, for most who search never do.

Holds scores alone: no rows, no words, and no lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echoic.ranking.layout import Floats
from echoic.types import Rank


class Explained:
    """The hits of one search in each channel."""

    def __init__(self, channels: Mapping[str, Callable[[], Floats]], hits: NDArray[np.intp]) -> None:
        """Nothing is worked out yet.

        Args:
            channels: by name, makes the scores: [rows], NaN where it does not find a row.
            hits: rows, in the order of the hits.
        """
        self._channels, self._hits = channels, hits
        self._by_hit: list[dict[str, Rank]] | None = None

    def __getitem__(self, hit: int) -> dict[str, Rank]:
        if self._by_hit is None:
            by_hit: list[dict[str, Rank]] = [{} for _ in self._hits]
            for name, made in self._channels.items():
                for ranks, rank in zip(by_hit, ranks_of(made(), self._hits), strict=True):
                    if rank is not None:
                        ranks[name] = rank
            self._by_hit, self._channels = by_hit, {}
        return self._by_hit[hit]


class Ranks(Mapping[str, Rank]):
    """One hit's rank and score in each channel that found it. Copied or pickled, it is a dict."""

    __slots__ = ("_explained", "_hit")

    def __init__(self, explained: Explained, hit: int) -> None:
        """The hit of that place."""
        self._explained, self._hit = explained, hit

    def __getitem__(self, channel: str) -> Rank:
        return self._explained[self._hit][channel]

    def __iter__(self) -> Iterator[str]:
        return iter(self._explained[self._hit])

    def __len__(self) -> int:
        return len(self._explained[self._hit])

    def __repr__(self) -> str:
        return repr(self._explained[self._hit])

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._explained[self._hit],)


def ranks_of(scores: Floats, hits: NDArray[np.intp]) -> list[Rank | None]:
    """Where a channel puts each hit; of equals the earlier first."""
    values = scores[hits]
    # NaN is not at least anything: neither counted nor, where nothing was found, looked at
    near = scores[scores >= np.fmin.reduce(values, initial=np.inf)]
    near.sort()
    last = np.searchsorted(near, values, "right")
    ahead = len(near) - last
    for i in np.flatnonzero(last - np.searchsorted(near, values) > 1).tolist():
        ahead[i] += np.count_nonzero(scores[: hits[i]] == values[i])
    return [
        None if np.isnan(score) else Rank(rank=before + 1, score=score)
        for score, before in zip(values.tolist(), ahead.tolist(), strict=True)
    ]


__all__ = ["Explained", "Ranks", "ranks_of"]
