"""What the voice-memory corpus is played to: Echoic, the peers, and whatever speaks the sidecar protocol."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from echoic.embedding.base import Embedder, Kind
from echoic.errors import EmbedderUnavailable, InvalidInput
from echoic.memory.conversation import OpenConversation
from echoic.memory.service import MemoryService
from echoic.stores.sqlite import SQLiteStore
from echoic.types import Hit, Turn
from echoic_bench.corpus import DEPLOYMENT, HeldEmbedder, settled
from echoic_bench.peers.base import Kept, Peer, Vector
from echoic_corpus.grading import Found, Said

ROLES = {"caller": "user", "agent": "agent"}
_BATCH = 64
_TIMEOUT_S = 60


class EchoicSystem:
    """Echoic at its defaults, over SQLite: it learns without a model, and is asked with `recall`."""

    def __init__(self, embedder: HeldEmbedder, folder: Path, *, sentences: bool = True) -> None:
        """Nothing is open yet. What `embedder` remembers is not encoded while it is timed.

        Without `sentences` it learns by its rules alone.
        """
        self._now = datetime.now(UTC)
        self._memory = MemoryService(
            SQLiteStore(folder / "echoic.db"), embedder, clock=lambda: self._now, sentences=sentences
        )

    async def start(self) -> None:
        """Open the store."""
        await self._memory.open()

    async def aclose(self) -> None:
        """Close it."""
        await self._memory.aclose()

    async def open(self, caller: str, zone: str) -> None:
        """The caller is a user."""
        self._user, self._zone = self._memory.user(caller, DEPLOYMENT), zone
        self._call: OpenConversation | None = None

    async def add(self, said: Said) -> None:
        """Append it, durable."""
        self._now = said.at
        if self._call is None:
            self._call = await self._user.conversation(said.call)
        speaker = ROLES.get(said.role, said.speaker.title())
        await self._call.append(
            Turn(
                id=said.id,
                speaker=speaker,
                text=said.text,
                heard=said.heard,
                said_at=said.at,
                confidence=said.confidence,
            )
        )

    async def hang_up(self) -> None:
        """Complete the conversation, learn from it, and wait for every vector."""
        if self._call is not None:
            await self._call.complete()
            await self._call.distil()
        self._call = None
        await settled(self._memory, 0)

    async def query(self, text: str, at: datetime, limit: int) -> list[Found]:
        """What a recall finds.

        Raises:
            EmbedderUnavailable: it did not look everywhere.
        """
        self._now = at
        recall = await self._user.recall(text, limit=limit, timezone=self._zone)
        if recall.outcome != "complete":
            raise EmbedderUnavailable(f"a question was answered without {', '.join(recall.cut)}")
        return [_found(hit) for hit in recall.hits]

    async def facts(self) -> list[Found]:
        """What holds."""
        return [Found(text=fact.text, turns=fact.source) for fact in await self._user.facts()]

    async def forget(self, turns: Sequence[str]) -> None:
        """Destroy each of them."""
        for turn in turns:
            await self._user.forget(id=turn)
        await settled(self._memory, 0)


def _found(hit: Hit) -> Found:
    shown = [hit.turn.heard_text] if hit.turn else []
    turns = [hit.turn.id] if hit.turn else []
    for memory in hit.memories:
        shown.append(memory.statement or memory.text)
        turns += memory.source
    return Found(text="\n".join(shown), turns=tuple(dict.fromkeys(turns)), score=float(hit.score))


class Vectors(dict[str, Vector]):
    """Vectors of texts, made before they are needed, so that no peer encodes while it is timed."""

    def __init__(self, embedder: Embedder) -> None:
        """`embedder` is open."""
        super().__init__()
        self._embedder = embedder

    async def need(self, texts: Sequence[str], kind: Kind) -> None:
        """Embed what is not known yet."""
        new = list(dict.fromkeys(text for text in texts if text not in self))
        for first in range(0, len(new), _BATCH):
            some = new[first : first + _BATCH]
            self.update(zip(some, await self._embedder.embed(some, kind), strict=True))


class PeerSystem:
    """A peer that keeps turns as they come and learns nothing. It is told to forget by the ids of turns."""

    def __init__(self, peer: Peer, vectors: Vectors, folder: Path, dimensions: int, *, best: bool) -> None:
        """Nothing is open yet. With `best` it keeps "speaker: what was heard", else the text as generated."""
        self._peer, self._vectors, self._folder, self._dimensions = peer, vectors, folder, dimensions
        self._best = best
        self._texts: dict[str, str] = {}

    async def start(self) -> None:
        """Open the peer."""
        await self._peer.open(self._folder, self._vectors, self._dimensions)

    async def aclose(self) -> None:
        """Close it."""
        await self._peer.aclose()

    async def open(self, caller: str, zone: str) -> None:
        """The caller is a user; a peer knows no zones."""
        del zone
        self._user = caller

    async def add(self, said: Said) -> None:
        """Keep the text with its vector."""
        text = text_of(said, best=self._best)
        await self._vectors.need([text], "document")
        turn = Turn(id=said.id, speaker="user", text=text, said_at=said.at)
        self._texts[said.id] = text
        await self._peer.add(self._user, Kept(turn, text, self._vectors[text]))

    async def hang_up(self) -> None:
        """Wait until it is found."""
        await self._peer.ready()

    async def query(self, text: str, at: datetime, limit: int) -> list[Found]:
        """The nearest."""
        del at
        await self._vectors.need([text], "query")
        found = await self._peer.search(self._user, text, limit)
        return [Found(text=self._texts[name], turns=(name,), score=score) for name, score in found]

    async def facts(self) -> None:
        """It learns nothing."""

    async def forget(self, turns: Sequence[str]) -> None:
        """Delete each of them."""
        for turn in turns:
            if turn in self._texts:  # what nobody heard a word of was not kept
                await self._peer.forget(self._user, turn)


def text_of(said: Said, *, best: bool) -> str:
    """What a peer keeps of a turn."""
    heard = said.text if said.heard is None else said.heard
    return f"{ROLES.get(said.role, said.speaker)}: {heard}" if best else said.text


class SidecarSystem:
    """Anybody's memory behind voice-memory-bench's HTTP contract. The contract forgets a user, not a turn."""

    def __init__(self, url: str) -> None:
        """`url` is where it listens, such as "http://127.0.0.1:8301".

        Raises:
            InvalidInput: it is no HTTP URL.
        """
        if not url.startswith(("http://", "https://")):
            raise InvalidInput(f"a sidecar is reached at an http:// URL, not {url!r:.80}")
        self._url = url.rstrip("/")
        self._turns: dict[str, str] = {}

    async def start(self) -> None:
        """Nothing to open: it is running."""

    async def aclose(self) -> None:
        """Nothing to close."""

    async def open(self, caller: str, zone: str) -> None:
        """Reset the user."""
        del zone
        self._user = caller
        self._post("/reset", user_id=caller)

    async def add(self, said: Said) -> None:
        """Add a message, as it was heard: the contract has one text."""
        role = ROLES.get(said.role, said.speaker)
        metadata = {"turn": said.id, "said_at": said.at.isoformat()}
        text = said.text if said.heard is None else said.heard
        kept = self._post(
            "/add_message",
            user_id=self._user,
            session_id=said.call,
            role=role,
            content=text,
            metadata=metadata,
        )
        self._turns[str(kept["provider_id"])] = said.id

    async def hang_up(self) -> None:
        """The contract has no word for it."""

    async def query(self, text: str, at: datetime, limit: int) -> list[Found]:
        """Search; a hit is of the turn whose id it has, or that its metadata names."""
        del at
        answer = self._post("/search", user_id=self._user, session_id="", query=text, top_k=limit)
        return [
            Found(text=item["content"], turns=self._named(item), score=float(item.get("score") or 0.0))
            for item in answer["items"]
        ]

    async def facts(self) -> None:
        """The contract does not tell what was learned from what."""

    async def forget(self, turns: Sequence[str]) -> None:
        """The contract has no word for it."""

    def _named(self, item: dict[str, Any]) -> tuple[str, ...]:
        name = self._turns.get(str(item.get("item_id"))) or (item.get("metadata") or {}).get("turn")
        return (name,) if name else ()

    def _post(self, path: str, **body: Any) -> Any:
        request = urllib.request.Request(  # noqa: S310 - checked to be HTTP
            self._url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return json.load(answer)


__all__ = ["ROLES", "EchoicSystem", "PeerSystem", "SidecarSystem", "Vectors", "text_of"]
