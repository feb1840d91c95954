"""`echoic distil --watch` as a worker, and what was given up as `echoic doctor` shows it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import forked
from echoic.embedding import LexicalEmbedder
from echoic.memory.extraction.model_reader import ATTEMPTS
from echoic.memory.service import MemoryService
from echoic.stores import store_from
from echoic.types import Turn


class Broken:
    """A model that cannot be reached."""

    name = "model"
    timeout_s = 5.0

    async def open(self): ...

    async def aclose(self): ...

    async def extract(self, reading):
        raise ConnectionRefusedError


async def give_up(url, times=ATTEMPTS):
    async with MemoryService(store_from(url), LexicalEmbedder(), extractor=Broken()) as memory:
        call = await memory.user("ana").conversation("call-1")
        await call.append(Turn(speaker="user", text="Something only a model understands", id="1"))
        for _ in range(times):
            await call.distil()


def export_of(user, text):
    said = {"id": "t", "speaker": "user", "text": text, "said_at": "2026-01-02T10:00:00+00:00"}
    times = {"started_at": said["said_at"], "updated_at": said["said_at"]}
    talk = {"id": "c", "status": "completed", **times, "turns": [said]}
    return {"format": "echoic-export", "version": 1, "user": user, "memories": [], "conversations": [talk]}


def test_a_worker_learns_what_other_processes_heard_until_it_is_interrupted(
    echoic, document, environment, tmp_path
):
    echoic("import", str(document("ana.json", export_of("ana", "My name is Ana."))))
    worker = forked.Popen(
        [sys.executable, "-m", "echoic.cli", "distil", "--watch", "--every", "0.1"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert worker.stderr.readline() == "watching all deployments, every 0.1 s\n"
        assert worker.stderr.readline() == "read 1 turns: kept 1, retracted 0\n"
        other = document("bob.json", export_of("bob", "My name is Bob."))
        echoic("import", str(other), "--deployment", "shop", "--user", "bob")
        assert worker.stderr.readline() == "read 1 turns: kept 1, retracted 0\n"
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=30)
    finally:
        worker.kill()
        worker.communicate()
    assert worker.returncode == 130
    assert (out, err) == ("", "echoic: interrupted; everything acknowledged is stored\n")
    assert echoic("get", "user_name", "--user", "ana").out == "Ana\n"
    assert echoic("get", "user_name", "--user", "bob", "--deployment", "shop").out == "Bob\n"


def test_doctor_shows_what_was_given_up_and_the_way_out(echoic, tmp_path):
    asyncio.run(give_up(f"sqlite:///{tmp_path}/echoic.db"))
    steps = {step["name"]: step for step in echoic("doctor", "--json").json["data"]}
    assert steps["distilling"]["well"] is False
    assert "'call-1' of 'ana' (ConnectionRefusedError, 5 times)" in steps["distilling"]["detail"]
    assert "echoic distil --parked" in steps["distilling"]["advice"]
    assert "Something" not in str(steps)
    assert steps["gone"]["well"] is True, "the other steps are tried all the same"
    told = echoic("distil")
    assert told.code == 0
    assert "see `echoic doctor`" in told.err


def test_doctor_is_well_while_a_failure_will_be_tried_again(echoic, tmp_path):
    asyncio.run(give_up(f"sqlite:///{tmp_path}/echoic.db", times=1))
    ran = echoic("doctor", "--json")
    assert ran.code == 0
    detail = next(step for step in ran.json["data"] if step["name"] == "distilling")["detail"]
    assert detail == "0 conversations wait, 1 wait for a retry of the model, none was given up"


def test_a_model_that_is_not_known_and_a_time_that_is_none_are_refused(echoic):
    refused = echoic("distil", "--model", "psychic:x")
    assert refused.code == 64
    assert "psychic" in refused.err
    assert echoic("distil", "--watch", "--every", "0").code != 0
