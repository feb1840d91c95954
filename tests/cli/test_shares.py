"""What a deployment reads of others through the command line: what `--shares` names for it, and nothing else."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.request

import pytest

import forked

HOURS = {
    "kb": "Monday to Friday, 9 to 17",
    "more": "Monday to Friday, 8 to 18",
    "shop": "Monday to Friday, 7 to 19",
}
MINE = "My own store is open on Fridays, ask for Zacharias"
QUESTION = "opening hours on Friday?"


@pytest.fixture
def knowing(echoic):
    """Two knowledge bases and a shop, each with something of everyone's and something of Eve's own."""
    for deployment, hours in HOURS.items():
        where = ("--deployment", deployment, "--user", "eve")
        kept = echoic("set", "opening_hours", hours, *where, "--global-writes", "auto")
        assert "global" in kept.err
        echoic("set", "plan", f"{MINE} of {deployment}", *where)
    return echoic


def asked(echoic, deployment, *words, **variables):
    """What somebody of `deployment` who is new finds, and the deployments it is of."""
    ran = echoic("query", QUESTION, "--deployment", deployment, "--json", *words, **variables)
    return {(hit["scope"]["deployment"], hit["text"]) for hit in ran.json["data"]}


def test_nothing_is_shared_by_default(knowing):
    assert asked(knowing, "acme") == set()
    nothing = knowing("get", "opening_hours", "--deployment", "acme")
    assert (nothing.code, nothing.out) == (1, "")
    assert asked(knowing, "acme", ECHOIC_SHARES="") == set()


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_what_is_named_is_found_and_nothing_of_any_user_or_of_others(knowing, how):
    said = "acme=kb,more; desk=kb"
    words, variables = (("--shares", said), {}) if how == "flag" else ((), {"ECHOIC_SHARES": said})
    of_kb = {("kb", HOURS["kb"])}
    assert asked(knowing, "acme", *words, **variables) == of_kb | {("more", HOURS["more"])}
    assert asked(knowing, "desk", *words, **variables) == of_kb
    assert asked(knowing, "elsewhere", *words, **variables) == set()
    # one of the same name as who wrote it is somebody else there
    mine = asked(knowing, "acme", "--user", "eve", *words, **variables)
    assert mine == of_kb | {("more", HOURS["more"])}


def test_who_said_it_is_in_no_answer(knowing):
    shares = ("--shares", "acme=kb", "--deployment", "acme")
    for command in (("get", "opening_hours"), ("query", QUESTION)):
        ran = knowing(*command, *shares, "--json")
        assert HOURS["kb"] in ran.out
        assert "eve" not in ran.out
        assert "Zacharias" not in ran.out


def test_it_is_only_read(knowing):
    shares = ("--shares", "acme=kb", "--deployment", "acme")
    assert knowing("delete", "opening_hours", *shares).code == 1
    knowing("set", "opening_hours", "We never open", *shares)
    knowing("forget", "--all", "--yes", *shares)
    assert knowing("get", "opening_hours", "--deployment", "kb").out.strip() == HOURS["kb"]
    exported = knowing("export", *shares).out
    assert HOURS["kb"] not in exported


@contextlib.contextmanager
def served(environment, folder, deployment, shares):
    """A real server of one deployment; asks it as somebody it has never met."""
    server = forked.Popen(
        [sys.executable, "-m", "echoic.cli", "serve", "--port", "0", "--deployment", deployment],
        cwd=folder,
        env={**environment, "ECHOIC_SHARES": shares},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        url = server.stdout.readline().strip()

        def ask(path, body=None, token=""):
            data = None if body is None else json.dumps(body).encode()
            headers = {"content-type": "application/json"}
            headers |= {"authorization": f"Bearer {token}"} if token else {}
            request = urllib.request.Request(f"{url}{path}", data=data, headers=headers)
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.read().decode()

        token = json.loads(ask("api/identity", {"deploymentId": deployment}))["userCookie"]
        yield (
            lambda path, body=None: ask(path, body, token),
            {
                "deploymentId": deployment,
                "userCookie": token,
            },
        )
    finally:
        server.kill()
        server.communicate()


READING = [
    "api/memories?history=true",
    "api/memories/opening_hours/history",
    "api/memories/plan/history",
    "api/export",
    "api/profile",
    "api/block",
]


def everything_told(ask, named):
    """What a caller is told by every route that reads, as text."""
    operations = [
        {"operation": "query", "query": QUESTION, "limit": 50},
        {"operation": "query", "query": "Zacharias and eve, my own store", "limit": 50},
        {"operation": "get", "key": "opening_hours"},
        {"operation": "get", "key": "plan"},
        {"operation": "list"},
    ]
    answers = [ask("api/memory", {**named, **operation}) for operation in operations]
    answers += [ask("api/chat", {"text": QUESTION}), *map(ask, READING)]
    return "\n".join(answers)


def test_no_route_of_a_server_tells_anything_of_a_user_or_of_who_is_not_shared(
    knowing, environment, tmp_path
):
    with served(environment, tmp_path, "acme", "acme=kb") as (ask, named):
        told = everything_told(ask, named)
        got = json.loads(ask("api/memory", {**named, "operation": "get", "key": "opening_hours"}))
    assert got["result"]["text"] == HOURS["kb"]
    assert HOURS["kb"] in told
    for other in (HOURS["more"], HOURS["shop"], "Zacharias", '"eve"'):
        assert other not in told
    with served(environment, tmp_path, "desk", "acme=kb") as (ask, named):
        told = everything_told(ask, named)
    for other in (*HOURS.values(), "Zacharias", '"eve"'):
        assert other not in told


def test_control_a_server_of_the_deployment_itself_tells_what_is_everyones(knowing, environment, tmp_path):
    with served(environment, tmp_path, "shop", "") as (ask, named):
        told = everything_told(ask, named)
    assert HOURS["shop"] in told
    assert "Zacharias" not in told


def test_the_server_and_every_command_are_told_in_the_same_words(echoic):
    assert "ECHOIC_SHARES" in echoic("--help").out
    for command in (("serve", "--port", "0"), ("query", "x"), ("distil", "--model", "openai:gpt-5")):
        refused = echoic(*command, "--shares", "acme")
        assert refused.code == 64
        assert "READER=NAME" in refused.err


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ("acme", "READER=NAME"),
        ("acme=kb=more", "READER=NAME"),
        ("acme=kb;acme=more", "twice"),
        ("acme=kb,kb", "twice"),
        ("acme=acme", "anyway"),
        ("acme=", "empty"),
        ("=kb", "empty"),
        ("acme=kb,,more", "empty"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_opened(echoic, tmp_path, shares, reason):
    ran = echoic("query", "anything", "--shares", shares)
    assert ran.code == 64
    assert reason in ran.err
    assert list(tmp_path.glob("*.db")) == []
