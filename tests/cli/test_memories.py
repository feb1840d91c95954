from __future__ import annotations

import io

import click
import pytest

from echoic.cli.asyncio_runner import text_or_stdin
from echoic.cli.settings import _TYPES, global_options
from echoic.errors import InvalidInput


def test_what_one_process_is_told_the_next_one_knows(echoic):
    assert echoic("set", "user_name", "Ana", fresh=True).code == 0
    assert echoic("get", "user_name", fresh=True).out == "Ana\n"


def test_a_value_comes_back_exactly_as_it_went_in(echoic):
    value = '  "quoted" — שלום 👋🏽 ﷺ e\u0301\ttab\nsecond line\\n  '
    assert echoic("set", "note", value).code == 0
    assert echoic("get", "note").out == f"{value}\n"
    assert echoic("get", "note", "--json").json["data"]["text"] == value


def test_of_an_endless_stdin_no_more_is_read_than_a_text_may_have(monkeypatch):
    class Endless(io.RawIOBase):
        left = 1_000_000

        def readable(self):
            return True

        def readinto(self, buffer):
            self.left -= len(buffer)
            assert self.left > 0, "it is read whole"
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    with pytest.raises(InvalidInput, match="more than"):
        text_or_stdin("-")


def test_a_dash_reads_the_value_from_stdin_without_the_line_break_that_ends_it(echoic):
    assert echoic("set", "poem", "-", stdin="one\ntwo\n\n").code == 0
    assert echoic("get", "poem").out == "one\ntwo\n\n"
    assert echoic("set", "poem", "-", stdin="crlf\r\n").code == 0
    assert echoic("get", "poem", "--json").json["data"]["text"] == "crlf"


def test_a_locale_that_is_not_utf8_changes_nothing(echoic):
    bare = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONIOENCODING": "ascii",
        "fresh": True,
    }
    assert echoic("set", "city", "-", stdin="תל אביב", **bare).code == 0
    assert echoic("get", "city", **bare).out == "תל אביב\n"


def test_a_correction_is_the_new_value_and_the_old_one_is_history(echoic):
    echoic("set", "city", "Haifa")
    echoic("set", "city", "Tel Aviv", "--category", "fact")
    assert echoic("get", "city").out == "Tel Aviv\n"
    rows = [line.split("\t") for line in echoic("history", "city").out.splitlines()]
    assert [(row[0], row[3]) for row in rows] == [("Haifa", "corrected"), ("Tel Aviv", "current")]
    assert rows[0][2] == rows[1][1]


def test_what_is_deleted_is_no_longer_found_but_stays_in_its_history(echoic):
    echoic("set", "city", "Haifa")
    assert echoic("delete", "city").code == 0
    assert echoic("get", "city").code == 1
    assert echoic("history", "city").out.rstrip().endswith("deleted")
    assert echoic("delete", "city").code == 1


def test_a_sentence_is_remembered_once_however_often_it_is_said(echoic):
    for _ in range(2):
        assert echoic("remember", "Prefers e-mail to phone calls", "--category", "preference").code == 0
    rows = [line.split("\t") for line in echoic("list").out.splitlines()]
    assert [row[1:3] for row in rows] == [["Prefers e-mail to phone calls", "preference"]]


def test_users_and_deployments_are_apart(echoic):
    echoic("set", "pet", "a parrot", "--user", "ana")
    echoic("--user", "ana", "--deployment", "acme", "set", "pet", "a goat")
    assert echoic("get", "pet", "--user", "ana").out == "a parrot\n"
    assert echoic("get", "pet", ECHOIC_USER="ana", ECHOIC_DEPLOYMENT="acme").out == "a goat\n"
    for scope in (["--user", "bea"], ["--user", "bea", "--deployment", "acme"], []):
        assert echoic("get", "pet", *scope).code == 1
        assert echoic("query", "parrot goat pet", *scope).code == 1
        assert echoic("list", *scope).code == 1


def test_the_line_outweighs_the_environment_before_and_after_the_command(echoic):
    echoic("--user", "ana", "set", "pet", "a parrot", ECHOIC_USER="bea")
    echoic("set", "pet", "a goat", "--user", "cleo", ECHOIC_USER="bea")
    assert echoic("--user", "bea", "get", "pet", "--user", "ana").out == "a parrot\n"
    assert echoic("get", "pet", ECHOIC_USER="cleo").out == "a goat\n"
    assert echoic("get", "pet", ECHOIC_USER="bea").code == 1


def test_a_new_store_says_where_and_for_whom_once(echoic, tmp_path):
    first = echoic("set", "a", "b")
    assert "created a store at echoic.db, for user 'me' (--user or ECHOIC_USER names another)" in first.err
    assert (tmp_path / "echoic.db").is_file()
    assert "created a store" not in echoic("set", "a", "c").err
    other = echoic("set", "a", "b", "--store", f"sqlite:///{tmp_path}/other.db", "--user", "ana")
    assert "for user 'ana'\n" in other.err


def test_stdout_carries_data_and_nothing_else(echoic):
    assert echoic("set", "a", "b").out == ""
    assert echoic("get", "nothing").out == ""
    assert echoic("list").out.count("\n") == 1
    assert echoic("set", "a", "c", "--quiet").err == ""
    assert echoic("get", "nothing", "--quiet").err == ""


def test_a_cell_never_breaks_its_row(echoic):
    echoic("remember", "one\ttwo\nthree\x1b[31m\u202e")
    (line,) = echoic("list").out.splitlines()
    assert line.split("\t")[1] == "one\\ttwo\\nthree\\u001b[31m\\u202e"


@pytest.mark.parametrize(
    "words", [["set", "", "x"], ["set", "k", " "], ["get", "k" * 257], ["set", "k", "-"]]
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(echoic, words):
    refused = echoic(*words)
    assert (refused.code, refused.out) == (64, "")
    assert refused.err.splitlines()[-1].startswith("echoic: ")
    assert echoic("list").code == 1


def test_bytes_that_are_not_utf8_are_refused(echoic):
    refused = echoic("set", "k", "-", stdin=b"caf\xe9")
    assert refused.code == 64
    assert "not UTF-8 at byte 3" in refused.err


def test_what_is_about_no_person_waits_for_an_operator_and_is_then_everyones(echoic):
    echoic("set", "opening_hours", "Monday to Friday, 9 to 17", "--user", "ana")
    assert echoic("get", "opening_hours", "--user", "bea").code == 1
    (row,) = [line.split("\t") for line in echoic("proposals").out.splitlines()]
    assert echoic("proposals", "list").out.splitlines()[0].split("\t") == row
    assert echoic("proposals", "approve", row[0]).code == 0
    assert echoic("get", "opening_hours", "--user", "bea").out == "Monday to Friday, 9 to 17\n"
    assert echoic("get", "opening_hours", "--user", "bea", "--deployment", "other").code == 1
    assert echoic("proposals").code == 1
    again = echoic("proposals", "approve", row[0])
    assert again.code == 64
    assert "no proposal" in again.err


def test_a_rejected_proposal_stays_its_authors_own(echoic):
    echoic("set", "opening_hours", "Monday to Friday, 9 to 17", "--user", "ana")
    name = echoic("proposals", "--json").json["data"][0]["id"]
    assert echoic("proposals", "reject", name).code == 0
    assert echoic("proposals").code == 1
    assert echoic("get", "opening_hours", "--user", "ana").code == 0
    assert echoic("get", "opening_hours", "--user", "bea").code == 1


def test_with_global_writes_auto_it_is_everyones_at_once(echoic):
    said = "Monday to Friday, 9 to 17"
    kept = echoic("set", "opening_hours", said, "--user", "ana", "--global-writes", "auto")
    assert "global" in kept.err
    assert echoic("get", "opening_hours", "--user", "bea").out == f"{said}\n"


def test_operators_see_who_is_known(echoic):
    assert echoic("users").code == 1
    for user in ("ana", "bea"):
        echoic("set", "a", "b", "--user", user)
    echoic("set", "a", "b", "--user", "cleo", "--deployment", "acme")
    assert echoic("users").out.splitlines() == ["ana", "bea"]
    assert echoic("users", "--deployment", "acme").out.splitlines() == ["cleo"]


def test_what_is_kept_of_other_people_is_an_option_and_a_variable(echoic):
    sister = ("set", "sister_name", "Ruth")
    for refused in (
        echoic(*sister, "--third-parties", "drop"),
        echoic(*sister, ECHOIC_THIRD_PARTIES="drop"),
    ):
        assert (refused.code, "third_parties" in refused.err) == (64, True)
    assert echoic("get", "sister_name").code == 1
    assert echoic(*sister, "--third-parties", "keep", ECHOIC_THIRD_PARTIES="drop").code == 0
    assert "'some' is not one of" in echoic("list", ECHOIC_THIRD_PARTIES="some").err


def test_a_global_option_that_takes_one_of_several_values_is_no_flag():
    choices = [each for each in global_options(hidden=False) if isinstance(each.type, click.Choice)]
    assert len(choices) == sum(isinstance(each, click.Choice) for each in _TYPES.values())
    assert [each.name for each in choices if each.is_flag] == []
