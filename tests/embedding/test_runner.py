"""Order, company and endings on the embedding thread. The encoder here is a gate that keeps a record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.embedding import local as runner_module
from echoic.embedding.base import Embedded, Kind
from echoic.embedding.encoder import Aborted, CutText, Encoded, TokenIds
from echoic.embedding.local import PATIENCE, TEXTS_PER_RUN, TOKENS_PER_RUN, Runner
from echoic.errors import EmbedderUnavailable, NotOpen
from echoic.partition import Pieces
from scale import many

WAIT_S = 20


class Gate:
    """An encoder whose vector of a text is its first token id and its length; it can be held in a run."""

    def __init__(self) -> None:
        self.runs: list[list[TokenIds]] = []
        self.tokenised: list[str] = []
        self.entered = threading.Semaphore(0)
        self.let_go = threading.Event()
        self.let_go.set()
        self.aborted: list[list[int]] = []
        self.at_run: Callable[[list[int], bool], None] = lambda firsts, abortable: None

    @staticmethod
    def abortable() -> threading.Event:
        return threading.Event()

    def tokenise(self, text: str, kind: Kind) -> CutText:
        self.tokenised.append(text)
        if "untokenisable" in text:
            raise ValueError(text)
        first, _, length = text.partition("*")
        return CutText([int(first)] * int(length or 1), ())

    def run(
        self, batch: Sequence[TokenIds], *, hidden: bool = False, abort: threading.Event | None = None
    ) -> Encoded:
        firsts = [ids[0] for ids in batch]
        self.runs.append(list(batch))
        self.entered.release()
        self.at_run(firsts, abort is not None)
        while not self.let_go.wait(0.001 if abort else WAIT_S):
            assert abort
            if abort.is_set():
                break
        if abort and abort.is_set():
            self.aborted.append(firsts)
            raise Aborted
        if any(ids[0] == 13 for ids in batch):
            raise RuntimeError("thirteen")
        pooled = np.array([[ids[0], len(ids)] for ids in batch], np.float32)
        return Encoded(pooled, pooled[:, None] if hidden else None)

    def pieces(self, hidden: np.ndarray, tokens: CutText) -> Pieces:
        return Pieces(axes=hidden, hidden=hidden, spans=((0, len(tokens.ids)),))

    def hold(self) -> None:
        self.let_go.clear()

    def wait_until_running(self) -> None:
        assert self.entered.acquire(timeout=WAIT_S)

    @property
    def firsts(self) -> list[list[int]]:
        return [[ids[0] for ids in run] for run in self.runs]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def runner(gate: Gate) -> Iterator[Runner]:
    made = Runner(gate, dimensions=2)
    yield made
    gate.let_go.set()
    made.close()


@pytest.fixture
def busy(gate: Gate, runner: Runner) -> Callable[[], Future[Embedded]]:
    """Start a run that lasts until the gate lets go."""

    def start() -> Future[Embedded]:
        gate.hold()
        future = runner.submit(["1000"], "query")
        gate.wait_until_running()
        return future

    return start


def test_queries_overtake_documents_that_came_before(
    gate: Gate, runner: Runner, busy: Callable[[], object]
) -> None:
    busy()
    documents = runner.submit([f"{number}*100" for number in range(1, 9)], "document")
    query = runner.submit(["500"], "query")
    gate.let_go.set()
    documents.result(WAIT_S)
    assert query.done()
    assert gate.firsts[:3] == [[1000], [500], [1]]


def test_a_query_waits_for_one_piece_of_documents_at_most(gate: Gate, runner: Runner) -> None:
    gate.hold()
    documents = runner.submit([f"{number}*200" for number in range(101, 140)], "document")
    gate.wait_until_running()
    query = runner.submit(["500"], "query")
    gate.let_go.set()
    query.result(WAIT_S)
    assert gate.firsts.index([500]) == 1
    assert documents.result(WAIT_S).vectors[:, 0].tolist() == list(range(101, 140))


def test_a_query_aborts_the_documents_that_run_and_they_are_run_again(gate: Gate, runner: Runner) -> None:
    gate.hold()
    documents = runner.submit(["1*100", "2*100"], "document", pieces=True)
    gate.wait_until_running()
    query = runner.submit(["500"], "query")
    gate.wait_until_running()  # the query: nobody let the documents go
    gate.let_go.set()
    assert query.result(WAIT_S).vectors.tolist() == [[500, 1]]
    made = documents.result(WAIT_S)
    assert made.vectors.tolist() == [[1, 100], [2, 100]]
    assert made.pieces is not None
    assert [float(one.hidden[0, 0]) for one in made.pieces] == [1, 2]
    assert gate.aborted == [[1]]
    assert gate.firsts == [[1], [500], [1], [2]]


def test_documents_that_a_query_aborts_are_run_again_in_halves(gate: Gate, runner: Runner) -> None:
    gate.hold()
    documents = runner.submit(["1", "2", "3", "4"], "document")
    gate.wait_until_running()
    query = runner.submit(["100"], "query")
    gate.wait_until_running()
    gate.let_go.set()
    query.result(WAIT_S)
    assert documents.result(WAIT_S).vectors[:, 0].tolist() == [1, 2, 3, 4]
    assert gate.firsts == [[1, 2, 3, 4], [100], [1, 2], [3, 4]]


def test_documents_that_nothing_stops_any_more_run_whole(gate: Gate, runner: Runner) -> None:
    def ask(firsts: list[int], abortable: bool) -> None:
        if firsts[0] < 100 and abortable:  # in the middle of each run of documents somebody asks something
            runner.submit(["100"], "query")

    gate.at_run = ask
    documents = runner.submit(["1", "2", "3", "4"], "document")
    assert documents.result(WAIT_S).vectors[:, 0].tolist() == [1, 2, 3, 4]
    assert [1] in gate.aborted
    assert [run for run in gate.firsts if run[0] < 100][-1] == [1, 2, 3, 4]


def test_where_nobody_asks_documents_run_side_by_side_and_a_query_aborts_them_all(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "QUIET_S", 0.0)
    gate.hold()
    runner = Runner(gate, dimensions=2, side_by_side=2)
    texts = [f"{number}*100" for number in range(1, 6)]
    documents = runner.submit(texts, "document")
    gate.wait_until_running()
    gate.wait_until_running()  # a second one, while the first is held
    assert sorted(gate.firsts) == [[1], [2]]
    query = runner.submit(["500"], "query")
    gate.wait_until_running()
    assert sorted(gate.aborted) == [[1], [2]]
    assert gate.firsts[2] == [500]
    gate.let_go.set()
    assert query.result(WAIT_S).vectors[0].tolist() == [500, 1]
    made = documents.result(WAIT_S).vectors
    assert made.tolist() == [[number, 100] for number in range(1, 6)]
    runner.close()


def test_soon_after_a_question_documents_run_one_after_the_other(gate: Gate) -> None:
    runner = Runner(gate, dimensions=2, side_by_side=2)
    runner.submit(["500"], "query").result(WAIT_S)
    together, most = 0, 0
    counting = threading.Lock()

    def count(firsts: list[int], abortable: bool) -> None:
        nonlocal together, most
        with counting:
            together += 1
            most = max(most, together)
        threading.Event().wait(0.01)
        with counting:
            together -= 1

    gate.at_run = count
    runner.submit([f"{number}*100" for number in range(1, 9)], "document").result(WAIT_S)
    assert most == 1
    runner.close()


def test_a_query_aborts_no_other_query(
    gate: Gate, runner: Runner, busy: Callable[[], Future[Embedded]]
) -> None:
    first = busy()
    second = runner.submit(["500"], "query")
    gate.let_go.set()
    assert first.result(WAIT_S).vectors.tolist() == [[1000, 1]]
    assert second.result(WAIT_S).vectors.tolist() == [[500, 1]]
    assert gate.aborted == []


def test_documents_that_every_query_aborts_get_done_all_the_same(gate: Gate, runner: Runner) -> None:
    asked: list[Future[Embedded]] = []

    def ask(firsts: list[int], abortable: bool) -> None:
        if firsts[0] < 100 and abortable:  # in the middle of each run of documents somebody asks something
            asked.append(runner.submit([str(500 + len(asked))], "query"))

    gate.at_run = ask
    documents = runner.submit([f"{n}*100" for n in range(1, 9)], "document")
    assert documents.result(WAIT_S).vectors[:, 0].tolist() == list(range(1, 9))
    assert [future.result(WAIT_S).vectors[0, 0] for future in asked] == [500 + n for n in range(len(asked))]
    assert len(gate.aborted) > 8
    assert len(asked) <= 8 * (PATIENCE + 1)


def test_documents_get_done_where_a_query_waits_at_any_time(gate: Gate, runner: Runner) -> None:
    documents: list[Future[Embedded]] = []
    asked: list[Future[Embedded]] = []

    def ask(firsts: list[int], abortable: bool) -> None:
        if not (documents and documents[0].done()):
            asked.append(runner.submit(["500"], "query"))

    gate.at_run = ask
    asked.append(runner.submit(["500"], "query"))
    documents.append(runner.submit([f"{n}*100" for n in range(1, 9)], "document"))
    assert documents[0].result(WAIT_S).vectors[:, 0].tolist() == list(range(1, 9))
    assert all(future.result(WAIT_S).vectors.tolist() == [[500, 1]] for future in list(asked))


def test_no_document_is_begun_while_a_recall_holds_them_back(
    gate: Gate, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "HOLD_S", 1000.0)
    releases = [runner.hold(), runner.hold()]
    documents = runner.submit(["1*100"], "document")
    for number in range(500, 505):
        runner.submit([str(number)], "query").result(WAIT_S)
        if number == 502:
            releases[0]()
            releases[0]()
    assert not documents.done()
    assert gate.firsts == [[number] for number in range(500, 505)]
    releases[1]()
    assert documents.result(WAIT_S).vectors.tolist() == [[1, 100]]


def test_documents_are_held_back_for_a_while_only(
    gate: Gate, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "HOLD_S", 0.001)
    runner.hold()  # by somebody who never comes back
    assert runner.submit(["1*100"], "document").result(WAIT_S).vectors.tolist() == [[1, 100]]
    assert gate.aborted == []


def test_documents_that_are_always_held_back_get_done_all_the_same(
    gate: Gate, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "HOLD_S", 1000.0)
    runner.hold()
    documents = runner.submit(["1*100", "2*100"], "document")
    asked = 0
    while not documents.done():
        runner.submit(["500"], "query").result(WAIT_S)
        asked += 1
        assert asked < 10 * PATIENCE
    assert documents.result().vectors.tolist() == [[1, 100], [2, 100]]


def test_closing_does_not_wait_for_what_is_held_back(
    gate: Gate, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "HOLD_S", 1000.0)
    runner.hold()
    documents = runner.submit(["1*100"], "document")
    runner.submit(["500"], "query").result(WAIT_S)
    runner.close()
    assert isinstance(documents.exception(WAIT_S), NotOpen)
    assert gate.firsts == [[500]]


def test_queries_that_come_together_share_a_run(
    gate: Gate, runner: Runner, busy: Callable[[], object]
) -> None:
    busy()
    futures = [runner.submit([str(number)], "query") for number in range(100, 110)]
    gate.let_go.set()
    assert [future.result(WAIT_S).vectors[0, 0] for future in futures] == list(range(100, 110))
    assert [sorted(run) for run in gate.firsts[1:]] == [list(range(100, 110))]


def test_texts_of_similar_length_share_runs_and_come_back_in_order(gate: Gate, runner: Runner) -> None:
    lengths = [40, 1, 39, 2, 38, 3, 37, 4, 36, 5]
    found = (
        runner.submit([f"{n}*{length}" for n, length in enumerate(lengths, 1)], "document")
        .result(WAIT_S)
        .vectors
    )
    assert found.tolist() == [[n, length] for n, length in enumerate(lengths, 1)]
    padded = sum(len(run) * max(map(len, run)) for run in gate.runs)
    assert padded < 1.1 * sum(lengths)
    assert len(gate.runs) < len(lengths) / 2


@settings(max_examples=many(60, least=10), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["query", "document"]), st.lists(st.integers(1, 256), min_size=1, max_size=40)
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([1, TEXTS_PER_RUN]),
)
def test_every_text_gets_its_own_vector_in_runs_that_are_never_too_large(
    calls: list[tuple[str, list[int]]], most: int
) -> None:
    gate = Gate()
    runner = Runner(gate, dimensions=2, texts_per_run=most)
    try:
        futures = [
            runner.submit([f"{100 + n}*{length}" for n, length in enumerate(lengths)], kind)
            for kind, lengths in calls
        ]
        for future, (_, lengths) in zip(futures, calls, strict=True):
            expected = [[100 + n, length] for n, length in enumerate(lengths)]
            assert future.result(WAIT_S).vectors.tolist() == expected
    finally:
        runner.close()
    assert max(map(len, gate.runs)) <= most
    assert all(len(run) == 1 or len(run) * max(map(len, run)) <= TOKENS_PER_RUN for run in gate.runs)
    assert sum(map(len, gate.runs)) == sum(len(lengths) for _, lengths in calls)


def test_what_was_cancelled_is_not_run(gate: Gate, runner: Runner, busy: Callable[[], object]) -> None:
    busy()
    unwanted = runner.submit([f"{number}*200" for number in range(1, 40)], "document")
    wanted = runner.submit(["500", "501"], "document")
    assert unwanted.cancel()
    gate.let_go.set()
    wanted.result(WAIT_S)
    assert gate.firsts == [[1000], [500, 501]]
    assert gate.tokenised == ["1000", "500", "501"]


def test_a_call_cancelled_in_the_middle_runs_no_further(gate: Gate, runner: Runner) -> None:
    gate.hold()
    unwanted = runner.submit([f"{number}*200" for number in range(1, 40)], "document")
    gate.wait_until_running()
    assert unwanted.cancel()
    gate.let_go.set()
    runner.submit(["500"], "document").result(WAIT_S)
    assert gate.firsts == [[1], [500]]


def test_a_failing_run_fails_only_those_who_are_in_it(gate: Gate, runner: Runner) -> None:
    with pytest.raises(EmbedderUnavailable, match="RuntimeError"):
        runner.submit(["13"], "query").result(WAIT_S)
    assert runner.submit(["14"], "query").result(WAIT_S).vectors.tolist() == [[14, 1]]


def test_a_text_that_cannot_be_tokenised_spares_its_neighbours_and_is_not_quoted(
    gate: Gate, runner: Runner, busy: Callable[[], object]
) -> None:
    busy()
    bad = runner.submit(["untokenisable secret"], "query")
    good = runner.submit(["7"], "query")
    gate.let_go.set()
    assert good.result(WAIT_S).vectors.tolist() == [[7, 1]]
    error = bad.exception(WAIT_S)
    assert isinstance(error, EmbedderUnavailable)
    assert "secret" not in str(error)
    assert error.__cause__ is None


def test_closing_fails_what_waits_and_finishes_what_runs(
    gate: Gate, runner: Runner, busy: Callable[[], Future[Embedded]]
) -> None:
    running = busy()
    waiting = [runner.submit(["1"], "query"), runner.submit(["2*200", "3*200"], "document")]
    closing = threading.Thread(target=runner.close)
    closing.start()
    gate.let_go.set()
    closing.join(WAIT_S)
    assert running.result(WAIT_S).vectors.tolist() == [[1000, 1]]
    for future in waiting:
        with pytest.raises(NotOpen):
            future.result(WAIT_S)


def test_after_closing_a_text_is_refused_and_closing_again_does_no_harm(runner: Runner) -> None:
    runner.close()
    with pytest.raises(NotOpen):
        runner.submit(["1"], "query").result(WAIT_S)
    runner.close()


def test_texts_that_race_with_closing_are_answered_or_refused_never_forgotten() -> None:
    for _ in range(30):
        runner = Runner(Gate(), dimensions=2)
        futures: list[Future[Embedded]] = []

        def submit(runner: Runner = runner, futures: list[Future[Embedded]] = futures) -> None:
            futures.extend(runner.submit([str(number)], "query") for number in range(100, 160))

        thread = threading.Thread(target=submit)
        thread.start()
        runner.close()
        thread.join(WAIT_S)
        for future in futures:
            assert isinstance(future.exception(WAIT_S), NotOpen | None)


def test_word_pieces_are_made_for_those_who_ask_and_in_the_order_of_their_texts(
    gate: Gate, runner: Runner, busy: Callable[[], Future[Embedded]]
) -> None:
    busy()
    with_pieces = runner.submit(["7*3", "8*2", "9*3"], "query", pieces=True)
    without = runner.submit(["5*3"], "query")
    gate.let_go.set()
    made = with_pieces.result(WAIT_S)
    assert made.pieces is not None
    assert [float(one.hidden[0, 0]) for one in made.pieces] == [7, 8, 9]
    assert [one.spans for one in made.pieces] == [((0, 3),), ((0, 2),), ((0, 3),)]
    assert without.result(WAIT_S).pieces is None
