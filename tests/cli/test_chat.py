from __future__ import annotations

import pytest

LOCAL = {"ECHOIC_EMBEDDER": "local"}


def say(echoic, *lines, **variables):
    return echoic("chat", stdin="".join(f"{line}\n" for line in lines), **variables)


def test_another_process_answers_from_what_this_one_was_told(echoic):
    first = say(echoic, "My name is Ana.", "I live in Haifa.")
    assert first.code == 0, first.err
    assert "user_name = Ana" in first.err
    second = say(echoic, "Where do I live?")
    greeting, answer = second.out.splitlines()
    assert "Ana" in greeting
    assert "Haifa" in answer
    assert "found 1: " in second.err


def test_a_correction_says_what_it_superseded(echoic):
    ran = say(echoic, "I live in Haifa.", "Actually, I live in Jaffa.", "Where do I live?")
    assert "superseded: " in ran.err
    assert "Jaffa" in ran.out.splitlines()[-1]
    assert "Haifa" not in ran.out.splitlines()[-1]


def test_users_do_not_hear_of_one_another(echoic):
    say(echoic, "I live in Haifa.", ECHOIC_USER="ana")
    assert "Haifa" not in say(echoic, "Where do I live?", ECHOIC_USER="bea").out


def test_the_conversation_is_completed_and_kept_word_for_word(echoic):
    said = "My brother-in-law repairs accordions on Thursdays."
    say(echoic, said, "/quit", "this is after the end")
    (talk,) = echoic("export", "--json").json["data"]["conversations"]
    assert (talk["agent"], talk["status"]) == ("keyless", "completed")
    assert [turn["text"] for turn in talk["turns"] if turn["speaker"] == "user"] == [said]
    assert talk["turns"][0]["speaker"] == "agent"


def test_a_chat_in_which_nothing_was_said_leaves_nothing(echoic):
    assert say(echoic).code == 0
    assert echoic("users").code == 1


def test_what_is_known_can_be_looked_at(echoic):
    ran = say(echoic, "I live in Haifa.", "/memories", "/history user_home", "/help", "/nonsense")
    assert "Haifa" in ran.out.splitlines()[2]
    assert ran.out.count("/history KEY") == 2


def test_forget_asks_before_it_destroys(echoic):
    kept = say(echoic, "I live in Haifa.", "/forget", "no", "/memories")
    assert "Nothing was destroyed." in kept.out
    assert "Haifa" in kept.out.splitlines()[-1]
    gone = say(echoic, "/forget", "yes", "/memories", "I keep bees.")
    assert "verified to be gone" in gone.out
    assert "Nothing is known." in gone.out
    assert "Haifa" not in echoic("export").out


@pytest.mark.parametrize("before", [[], ["I live in Haifa."]])
def test_what_is_said_after_an_erasure_does_not_store_the_greeting_again(echoic, before):
    echoic("set", "user_name", "Annabel")
    ran = say(echoic, *before, "/forget", "yes", "I keep bees.")
    assert "Welcome back, Annabel." in ran.out
    assert "bees" in (kept := echoic("export").out)
    assert "Annabel" not in kept


def test_a_conversation_goes_on_after_one_thing_was_erased_from_it(echoic):
    asked = ["I parked on level three.", "Forget where I parked.", "yes", "I keep bees."]
    ran = say(echoic, *asked)
    assert "none of it is left" in ran.out
    (talk,) = echoic("export", "--json").json["data"]["conversations"]
    assert talk["status"] == "completed"
    assert talk["turns"][-2]["text"] == "I keep bees."


def test_json_holds_the_whole_conversation(echoic):
    ran = echoic("chat", "--json", stdin="I live in Haifa.\n/memories\n")
    said, looked = ran.json["data"]
    assert said["you"] == "I live in Haifa."
    assert said["reply"]["stored"][0]["text"] == "Haifa"
    assert (looked["you"], looked["reply"]) == ("/memories", None)


def test_a_text_that_is_too_long_does_not_end_the_conversation(echoic):
    ran = say(echoic, "x" * 40_000, "I live in Haifa.", "Where do I live?")
    assert ran.code == 0
    assert "32768 at most" in ran.err
    assert "Haifa" in ran.out.splitlines()[-1]


def test_a_question_in_other_words_is_answered_by_meaning(echoic):
    say(echoic, "My brother mends violins and cellos.", "The harbour was foggy.", **LOCAL)
    ran = say(echoic, "Who fixes musical instruments?", **LOCAL)
    assert "violins" in ran.out.splitlines()[-1]


def test_where_nothing_is_known_it_says_so_and_lists_no_hits(echoic):
    ran = say(echoic, "I live in Haifa.", "I take the bus to work.", "When is my flight?")
    assert ran.out.splitlines()[-1].startswith("I don't know that.")
    assert "nothing is known about that; the search was complete" in ran.err
    assert "found 1: " not in ran.err
