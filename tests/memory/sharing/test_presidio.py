"""With the extra "pii" Presidio's patterns are heard as well: offline, with no model and no new mistakes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.errors import InvalidInput
from echoic.memory.sharing import PresidioRedactor, redact, share

from .conftest import lines

try:
    REDACTOR = PresidioRedactor()
except ImportError as error:
    REDACTOR, MISSING = None, str(error)
else:
    MISSING = ""
needs_presidio = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.mark.skipif(not MISSING, reason="presidio-analyzer is installed")
def test_without_the_extra_the_error_says_how_to_get_it():
    with pytest.raises(ImportError, match=r"echoic\[pii\]"):
        PresidioRedactor()


def test_a_score_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match=r"1\.5"):
        PresidioRedactor(least_score=1.5)


@needs_presidio
def test_what_only_presidio_knows_is_taken_out():
    text = "he drives KA53ME3456 to work"
    assert redact(text).found == ()
    assert REDACTOR.redact(text).text == "he drives [ID] to work"
    assert REDACTOR.redact(text).found[0].rule == "presidio-in_vehicle_registration"


@needs_presidio
def test_everything_our_rules_find_is_found():
    for line in lines("redaction"):
        ours = {p for f in redact(line["text"]).found for p in range(f.start, f.end)}
        both = {p for f in REDACTOR.redact(line["text"]).found for p in range(f.start, f.end)}
        assert ours <= both, line["text"]


@needs_presidio
def test_harmless_lines_stay_as_they_are():
    negatives = [line["text"] for line in lines("redaction") if not line["personal"]]
    touched = [text for text in negatives if REDACTOR.redact(text).found]
    assert len(touched) <= len(negatives) / 100, touched


@needs_presidio
@settings(max_examples=50, deadline=None)
@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from("4111 KA53ME3456 passport 912803456 at 10 [ID] ".split(" "))).map(" ".join)
)
def test_redacting_again_changes_nothing_and_never_raises(text):
    once = REDACTOR.redact(text)
    assert REDACTOR.redact(once.text).text == once.text


@needs_presidio
def test_it_can_stand_in_for_the_rules_when_sharing():
    assert share("The store opens at 9 am", None, redactor=REDACTOR) == share("The store opens at 9 am", None)
