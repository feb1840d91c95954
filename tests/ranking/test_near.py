from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import DamerauLevenshtein

from echoic.partition import Partition, Segment
from echoic.ranking import entry_of_memory, entry_of_turn, fuzzy, query_of, rank
from echoic.ranking.fuzzy import Lexicon, edits_allowed
from echoic.text import content_words, word_of


def near(word, partition, *, name=False):
    with partition.lock:
        return Lexicon.of(partition).near(word_of(word), name=name)


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ("Kaitlyn", "Caitlin"),
        ("Pavel", "Pawel"),
        ("Pavel", "Pavle"),
        ("Pavel", "Paul"),
        ("Stephen", "Steven"),
        ("Geoff", "Jeff"),
        ("Xavier", "Zavier"),
        ("Joaquin", "Wakeen"),
        ("Catherine", "Katharine"),
        ("Sean", "Shawn"),
        ("Mikhail", "Michael"),
        ("Isaac", "Izik"),
        ("Krzysztof", "Kristof"),
        ("Smith", "Smyth"),
        ("Meyer", "Maier"),
        ("Kowalski", "Covalsky"),
    ],
)
def test_a_name_heard_otherwise_finds_what_was_said(partition, memory, heard, said):
    held = partition([memory(f"{said} lives next door"), memory("the bakery closes at six")])
    for asked in (f"Who is {heard}?", f"{heard}'s house"):
        found = rank(query_of(asked), [held])
        assert [hit.row for hit in found] == [0]
        assert found[0].ranks["fuzzy"].rank == 1
        assert set(found[0].ranks) == {"fuzzy", "window"}


def test_a_mistyped_word_finds_the_right_one(partition, memory):
    held = partition([memory("The user is allergic to nuts."), memory("The user likes music.")])
    assert [hit.row for hit in rank(query_of("allergc"), [held])] == [0]
    assert [hit.row for hit in rank(query_of("what am I alergic to"), [held])] == [0]


def test_short_words_may_not_differ_and_long_ones_by_two_letters():
    assert [edits_allowed(word) for word in ("tea", "teas", "teapots", "teapotss")] == [0, 1, 1, 2]


def test_closeness_is_less_the_farther_a_word_is(partition, turn):
    held = partition([turn("necklace necklaces neckline kaitlyn's july writing")])
    assert near("necklases", held) == {"necklace": 0.5, "necklaces": 0.8}
    assert near("necklunes", held) == {"necklaces": 0.5, "neckline": 0.5, "necklace": 0.4}
    assert near("necklace", held) == {"neckline": 0.5}  # "necklaces" has the same stem: an exact word
    assert near("caitlin", held) == {"kaitlyn's": 0.7}
    assert near("kaetlyn's", held) == {"kaitlyn's": 0.8}


@pytest.mark.parametrize("said", ["We ate noodles at 鳥貴族's", "At 鳥貴族's we ate noodles"])
def test_a_possessive_of_a_script_without_spaces_is_no_word(partition, turn, said):
    held = partition([turn(said)])
    assert near("noodels", held) == {"noodles": 0.8}
    assert [hit.row for hit in rank(query_of("Where did Kaitlin eat noodels?"), [held])] == [0]


def test_a_lexicon_whose_update_failed_is_whole_after_the_next(partition, turn, monkeypatch):
    held = partition([turn("We ate noodles")])
    with monkeypatch.context() as patched:
        patched.setattr(fuzzy, "_letters_of", lambda texts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            near("noodels", held)
    assert near("noodels", held) == {"noodles": 0.8}


def test_sound_alone_is_not_enough_for_ordinary_words(partition, memory):
    held = partition([memory("wall ready july")])
    assert near("july", held) == {}
    assert near("writing", held) == {}
    assert near("jewel", held) == {}
    assert near("jewel", held, name=True) == {"july": 0.4, "wall": 0.4}


def test_a_number_is_never_a_slip_for_another(partition, memory):
    held = partition([memory("in 2023 I paid 4471 at gate B12")])
    assert near("2022", held) == {}
    assert rank(query_of("2022 4472 B13"), [held]) == []


def test_a_name_that_was_said_comes_before_one_that_only_sounds_so(partition, memory):
    held = partition([memory("Steven called"), memory("Stephen called"), memory("Maria called")])
    assert [hit.row for hit in rank(query_of("Stephen"), [held])] == [1, 0]


def test_a_name_written_small_that_somebody_said_is_taken_at_its_word(partition, memory):
    held = partition([memory("Steven called"), memory("Stephen called")])
    assert [hit.row for hit in rank(query_of("stephen"), [held])] == [1]


def test_a_misheard_name_finds_the_answer_that_follows_it(partition, turn):
    held = partition(
        [
            turn("Where does Kaitlyn live?", "agent", minute=0),
            turn("Down in Porto.", "user", minute=1),
            turn("Lovely weather.", "agent", conversation="other"),
        ]
    )
    found = rank(query_of("caitlin"), [held])
    assert {hit.row for hit in found} == {0, 1}
    assert set(found[1].ranks) == {"window"}


def test_a_near_word_counts_more_for_the_turn_behind_it_than_for_the_one_before(partition, turn):
    said = ["Good morning.", "Kaitlyn it is.", "Very well.", "And so on.", "Until then.", "Goodbye."]
    held = partition([turn(text, minute=i) for i, text in enumerate(said)])
    windows = {hit.row: hit.ranks["window"].score for hit in rank(query_of("caitlin"), [held])}
    assert windows[1] > windows[2] > windows[0] > windows[4] > windows[5]
    exact = {hit.row: hit.ranks["window"].score for hit in rank(query_of("kaitlyn"), [held])}
    assert windows == pytest.approx({row: 0.7 * score for row, score in exact.items()})


def test_words_of_another_user_never_stand_in(partition, memory):
    rank(query_of("Kaitlin"), [partition([memory("Caitlyn")])])
    assert rank(query_of("Kaitlin"), [partition([memory("Robert")])]) == []


def test_speakers_and_keys_are_no_words_to_be_found(partition, turn, memory):
    held = partition([turn("hello", "Mary Ann"), memory("Rex", "dog_name")])
    facets = [word for word in held.vocabulary.terms if word[0] in "@="]
    assert len(facets) == 2
    assert list(Lexicon.speakers_of(held).values()) == [("mary", "ann")]
    assert near("dogname", held) == {}


def test_who_said_nothing_that_is_left_is_no_name_any_more(partition, turn):
    held = partition([turn("hello", "Mary Ann"), turn("good day", "Robert", minute=1)])
    assert {("mary", "ann"), ("robert",)} == set(Lexicon.speakers_of(held).values())
    left = Segment()
    left.put(1, entry_of_turn(turn("good day", "Robert", minute=1)))
    with held.lock:
        held.patch([(0, left)])
    assert list(Lexicon.speakers_of(held).values()) == [("robert",)]


@given(
    st.lists(st.text("abcdefgäß日本", min_size=1, max_size=12), min_size=1, max_size=30), st.integers(0, 29)
)
def test_no_word_within_the_allowed_edits_is_passed_over(said, which):
    held = Partition()
    word = content_words(said[which % len(said)])
    entry = entry_of_memory_of(" ".join(said))
    held.patch([(0, one_row(entry))])
    for asked in word:
        allowed = edits_allowed(asked.text)
        within = {
            other
            for other, term in held.vocabulary.terms.items()
            if 0 < DamerauLevenshtein.distance(asked.text, other) <= allowed and term != asked.term
        }
        assert within <= set(near(asked.text, held))


def entry_of_memory_of(text):
    from datetime import UTC, datetime

    from echoic.types import Memory

    return entry_of_memory(Memory(id="m", text=text, valid_from=datetime(2026, 1, 1, tzinfo=UTC)))


def one_row(entry):
    from echoic.partition import Segment

    segment = Segment()
    segment.put(0, entry)
    return segment
