from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echoic.embedding import Embedder, embedder_from
from echoic.embedding import local as local_module
from echoic.embedding.encoder import Aborted, Encoded, TokenIds
from echoic.embedding.local import LocalEmbedder
from echoic.embedding.weights import Variant
from echoic.errors import InvalidInput, NotOpen
from echoic.testing.embedder_conformance import EmbedderConformance, opened

TEXTS = [
    "ok",
    "I am allergic to peanuts.",
    "The rent is due on the first of the month and I always forget, so please remind me two days before.",
    "José's dog is called Bruno",
    "日本語のテキスト",
    "word " * 300,
]

PARAPHRASES = [
    ("My sister lives in Porto.", "Where my sibling's home is: the city of Porto."),
    ("I can't eat peanuts, they make me ill.", "The caller is allergic to peanuts."),
    ("Please call me back tomorrow morning.", "She would like a phone call early the next day."),
    ("The car broke down on the motorway.", "His vehicle stopped working on the highway."),
    ("I was born in 1984.", "My year of birth is nineteen eighty-four."),
    ("He got a new job at the hospital.", "He has started to work at a clinic."),
    ("We are expecting a baby in June.", "My wife is pregnant and due at the start of summer."),
    ("The flight was cancelled because of snow.", "Bad weather meant the plane did not leave."),
    ("I prefer to be written to by email.", "Electronic mail is the best way to contact me."),
    ("My landlord raised the rent.", "The owner of my flat wants more money each month."),
    ("She plays the violin in an orchestra.", "She is a professional musician."),
    ("I have trouble sleeping at night.", "The patient suffers from insomnia."),
    ("The parcel never arrived.", "The customer did not receive the delivery."),
    ("I forgot my password.", "He cannot log in to his account any more."),
    ("Our dog is afraid of thunder.", "The pet gets scared during storms."),
    ("Cancel my subscription, please.", "I want to end my membership."),
    ("My grandfather fought in the war.", "Grandpa was a soldier."),
    ("The kitchen tap is leaking.", "Water is dripping from the faucet."),
    ("I would like a table for two at eight.", "Reserve dinner for a couple this evening."),
    ("He moved abroad to study medicine.", "He left the country to become a doctor."),
]


@pytest.fixture(params=["fp32", "int8"])
def variant(request: pytest.FixtureRequest) -> Variant:
    return request.param


@pytest.fixture
async def local(variant: Variant, model_cache: Path) -> AsyncIterator[LocalEmbedder]:
    async with opened(LocalEmbedder(variant=variant, cache_dir=model_cache)) as embedder:
        yield embedder  # type: ignore[misc]


class TestLocalConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, model_cache: Path) -> Embedder:
        return LocalEmbedder(cache_dir=model_cache)


class TestLocalInt8Conformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self, model_cache: Path) -> Embedder:
        return LocalEmbedder(variant="int8", cache_dir=model_cache)


async def test_paraphrases_are_nearer_than_anything_unrelated(local: LocalEmbedder) -> None:
    left = await local.embed([pair[0] for pair in PARAPHRASES], "query")
    right = await local.embed([pair[1] for pair in PARAPHRASES], "document")
    likeness = left @ right.T
    assert (likeness.argmax(axis=1) == np.arange(len(PARAPHRASES))).all()
    assert (likeness.argmax(axis=0) == np.arange(len(PARAPHRASES))).all()
    unrelated = likeness[~np.eye(len(PARAPHRASES), dtype=bool)]
    assert np.diag(likeness).mean() > unrelated.mean() + 0.35


async def test_the_variants_nearly_agree_and_are_never_taken_for_one_another(model_cache: Path) -> None:
    fp32 = LocalEmbedder(cache_dir=model_cache)
    int8 = LocalEmbedder(variant="int8", cache_dir=model_cache)
    assert fp32.spec.model == "local:all-MiniLM-L6-v2:fp32"
    assert int8.spec.model == "local:all-MiniLM-L6-v2:int8"
    assert fp32.spec != int8.spec
    async with opened(fp32), opened(int8):
        cosines = (await fp32.embed(TEXTS, "document") * await int8.embed(TEXTS, "document")).sum(axis=1)
    # one word is rounded most: 0.97 without 8-bit dot products in the CPU, 0.98 with them
    assert 0.96 < cosines.min() < cosines.max() < 1 - 1e-6


async def test_questions_in_int8_leave_documents_and_what_a_store_records_as_they_are(
    model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_module, "MOST_SHARE", np.inf)  # whatever processor this is
    monkeypatch.setattr(local_module, "LEAST_CLOSENESS", 0.9)
    exact = LocalEmbedder(cache_dir=model_cache)
    quick = embedder_from("local?questions=int8", cache_dir=model_cache)
    assert quick.spec == exact.spec
    async with opened(exact), opened(quick):
        assert (await quick.embed(TEXTS, "document") == await exact.embed(TEXTS, "document")).all()
        asked = await quick.embed_pieces(TEXTS, "query")
        cosines = (asked.vectors * await exact.embed(TEXTS, "query")).sum(axis=1)
        alone = np.concatenate([await quick.embed([text], "query") for text in TEXTS])
    assert 0.96 < cosines.min() < cosines.max() < 1 - 1e-6
    assert (alone == asked.vectors).all()
    assert asked.pieces is not None


@pytest.mark.parametrize(("bound", "value"), [("MOST_SHARE", 0.0), ("LEAST_CLOSENESS", 1.1)])
async def test_questions_go_back_to_fp32_where_int8_is_slow_or_off(
    model_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    bound: str,
    value: float,
) -> None:
    monkeypatch.setattr(local_module, bound, value)
    exact = LocalEmbedder(cache_dir=model_cache)
    async with opened(exact), opened(LocalEmbedder(cache_dir=model_cache, questions="int8")) as quick:
        assert (await quick.embed(TEXTS, "query") == await exact.embed(TEXTS, "query")).all()
    assert [record.message for record in caplog.records if "embedded in fp32" in record.message]


def test_what_embeds_questions_is_a_variant() -> None:
    with pytest.raises(InvalidInput, match="for questions: use one of fp32, int8"):
        LocalEmbedder(questions="int4")


async def test_more_threads_change_no_vector(model_cache: Path) -> None:
    one, two = (LocalEmbedder(cache_dir=model_cache, threads=threads) for threads in (1, 2))
    async with opened(one), opened(two):
        apart = np.abs(await one.embed(TEXTS, "document") - await two.embed(TEXTS, "document"))
    assert apart.max() < 1e-5


async def test_int8_vectors_are_bit_for_bit_the_same_in_any_company(model_cache: Path) -> None:
    async with opened(LocalEmbedder(variant="int8", cache_dir=model_cache)) as embedder:
        together = await embedder.embed(TEXTS, "document")
        apart = np.concatenate(await asyncio.gather(*(embedder.embed([text], "query") for text in TEXTS)))
    assert (together == apart).all()


async def test_what_follows_the_256th_token_is_not_read(local: LocalEmbedder) -> None:
    long = "word " * 254
    vectors = await local.embed([long, long + "peanuts " * 1000, "word " * 253 + "peanuts"], "document")
    assert (vectors[0] == vectors[1]).all()
    assert (vectors[0] != vectors[2]).any()


async def test_it_refuses_to_work_before_it_is_open_and_after_it_was_closed(model_cache: Path) -> None:
    embedder = LocalEmbedder(cache_dir=model_cache)
    with pytest.raises(NotOpen):
        await embedder.embed(["text"], "query")
    async with opened(embedder):
        await embedder.embed(["text"], "query")
    with pytest.raises(NotOpen):
        await embedder.embed(["text"], "query")


async def test_closing_ends_waiting_texts_with_an_error_instead_of_silence(local: LocalEmbedder) -> None:
    waiting = asyncio.create_task(local.embed(["word " * 250] * 200, "document"))
    await asyncio.sleep(0)
    await local.aclose()
    with pytest.raises(NotOpen, match="closed while"):
        await waiting


async def test_documents_that_questions_interrupt_become_what_they_would_have_become(
    local: LocalEmbedder, variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real model, aborted in the middle of its runs; questions are asked until that has happened."""
    texts = [f"{n} {text} " * 8 for n in range(2) for text in TEXTS[:4]]
    undisturbed = await local.embed_pieces(texts, "document")
    aborted: list[int] = []
    encode = local._encoder_in_use.run

    def run(batch: Sequence[TokenIds], **options: Any) -> Encoded:
        try:
            return encode(batch, **options)
        except Aborted:
            aborted.append(len(batch))
            raise

    monkeypatch.setattr(local._encoder_in_use, "run", run)
    for _ in range(20):
        documents = asyncio.ensure_future(local.embed_pieces(texts, "document"))
        while not documents.done() and not aborted:
            release = local.hold_documents()
            await local.embed(["a question that cannot wait"], "query")
            release()
            await asyncio.sleep(0.002)
        disturbed = await documents
        assert np.abs(disturbed.vectors - undisturbed.vectors).max() < 1e-5
        assert disturbed.pieces is not None
        assert undisturbed.pieces is not None
        for one, other in zip(disturbed.pieces, undisturbed.pieces, strict=True):
            assert one.spans == other.spans
            assert np.abs(one.hidden - other.hidden).max() < 1e-3
        if aborted:
            break
    assert aborted


async def test_a_cancelled_batch_stops_and_leaves_the_embedder_working(local: LocalEmbedder) -> None:
    batch = asyncio.create_task(local.embed(["word " * 250] * 5000, "document"))
    await local.embed(["a query that overtakes"], "query")
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    # 5,000 long texts take minutes: these arrive only because the batch was dropped.
    assert (await local.embed(["a document"], "document")).shape == (1, 384)


def test_several_event_loops_may_share_one_embedder(model_cache: Path) -> None:
    embedder = LocalEmbedder(cache_dir=model_cache)
    asyncio.run(embedder.open())
    found: list[np.ndarray] = []

    def work() -> None:
        found.append(asyncio.run(embedder.embed(TEXTS, "query")))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(embedder.aclose())
    assert len(found) == 3
    assert max(np.abs(vectors - found[0]).max() for vectors in found) < 1e-5


def embedding_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "echoic-embedding"]


async def test_closing_lets_go_of_the_thread_and_an_embedder_nobody_closed_does_too(
    model_cache: Path,
) -> None:
    before = len(embedding_threads())
    embedder = LocalEmbedder(cache_dir=model_cache)
    await embedder.open()
    assert len(embedding_threads()) == before + 1
    await embedder.aclose()
    assert len(embedding_threads()) == before
    await embedder.open()
    thread = embedding_threads()[-1]
    del embedder
    gc.collect()
    await asyncio.to_thread(thread.join, 20)
    assert len(embedding_threads()) == before


def test_a_process_ends_cleanly_in_the_middle_of_a_batch_nobody_waits_for(model_cache: Path) -> None:
    program = (
        "import asyncio, pathlib, sys\n"
        "from echoic.embedding.local import LocalEmbedder\n"
        "embedder = LocalEmbedder(cache_dir=pathlib.Path(sys.argv[1]))\n"
        "async def main():\n"
        "    await embedder.open()\n"
        "    batch = asyncio.create_task(embedder.embed(['word ' * 250] * 500, 'document'))\n"
        "    await embedder.embed(['a query'], 'query')\n"
        "    assert not batch.done()\n"
        "    print('leaving')\n"
        "asyncio.run(main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(model_cache)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "leaving\n", "")


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="fp32, int8"):
        LocalEmbedder(variant="fp16")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least 1"):
        LocalEmbedder(threads=0)
