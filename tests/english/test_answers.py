"""A bare answer is read as the statement that its question makes of it."""

from __future__ import annotations

import pytest

from echoic.english.sentences import completed


@pytest.mark.parametrize(
    ("question", "answer", "read"),
    [
        ("And how old are you?", "seventy four", "i'm seventy four."),
        ("Thanks. What's your name, please?", "It's Ada Byron.", "my name is Ada Byron."),
        ("Where do you live?", "in Bristol", "i live in Bristol."),
        ("Do you have any allergies?", "Yes, penicillin.", "i'm allergic to penicillin."),
        ("Are you on any medication?", "just metformin", "i take metformin."),
        ("What's your order number?", "seven seven four", "my order number is seven seven four."),
        ("Which plan are you on?", "The gold one. Is that dear?", "i'm on The gold one. Is that dear?"),
        ("How would you like us to contact you?", "text please", "i prefer text please."),
        ("Can I take your name?", "Gil Ode, I rang an hour ago about a bill and nobody came back to me",
         "my name is Gil Ode. I rang an hour ago about a bill and nobody came back to me."),
    ],
)  # fmt: skip
def test_a_bare_answer_becomes_a_statement(question, answer, read):
    assert completed(question, answer) == read


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do you have any allergies?", "No, none."),
        ("How old are you?", "Why do you ask?"),
        ("How old are you?", "I'm not telling you."),
        ("What's your password?", "bluebird seven"),
        ("What is your mother's maiden name?", "Abara"),
        ("How can I help?", "seventy four"),
        ("You are all set.", "seventy four"),
        ("", "seventy four"),
        ("How old are you?", ""),
        ("How old are you?", "\0"),
    ],
)
def test_what_answers_nothing_about_the_speaker_stays_as_it_was_said(question, answer):
    assert completed(question, answer) == answer
