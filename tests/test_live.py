"""What `make live` does with real providers, here with their stand-ins: each passes, and each fault is seen."""

from __future__ import annotations

import base64
import http.server
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
from pymongo import AsyncMongoClient

import forked
from echoic_loopback.gemini_live import GeminiLiveServer
from echoic_loopback.mongodb import MongoServer
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, Script

SCRIPT = Path(__file__).parent.parent / "scripts" / "live.py"
KEY = "sk-a-key-that-must-stand-nowhere"


@pytest.fixture(scope="module")
def live():
    spec = spec_from_file_location("live", SCRIPT)
    module = sys.modules["live"] = module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@contextmanager
def answering(answer):
    """A server on the loopback that answers every request with what `answer` makes of it, as JSON."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, told = answer(self, json.loads(body or "null"))
            made = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(made)))
            self.end_headers()
            self.wfile.write(made)

        do_POST = do_GET  # noqa: N815 - as the class calls it

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def failed(report):
    return [step["failed"] for step in report.steps if "failed" in step]


@pytest.mark.parametrize(
    ("said", "wrong"), [("hello Ana", None), ("hello you", "the greeting does not use the name")]
)
async def test_a_voice_model_greets_by_the_name_in_memory(live, said, wrong):
    async with OpenAIRealtimeServer(Script(Says(said), open_ended=True)) as server:
        report = await live.check("openai", {"OPENAI_KEY": KEY, "OPENAI_URL": server.base_url})
    assert report.ok == (wrong is None), report
    assert (failed(report) or [None])[0] is None if wrong is None else wrong in failed(report)[0]
    assert KEY not in str(report)


async def test_gemini_is_checked_by_the_same_call(live):
    async with GeminiLiveServer(Script(Says("hello Ana"), open_ended=True)) as server:
        with server.trusted():
            report = await live.check("gemini", {"GEMINI_KEY": KEY, "GEMINI_URL": server.base_url})
    assert report.ok, report


async def test_vectors_of_voyage_answer_a_question(live):
    def vectors(_, request):
        made = [np.full(request.get("output_dimension", 1024), 0.01, "<f4") for _ in request["input"]]
        for text, vector in zip(request["input"], made, strict=True):
            vector["town" in text] = 1.0
        coded = [base64.b64encode(vector.tobytes()).decode() for vector in made]
        data = [{"index": number, "embedding": each} for number, each in enumerate(coded)]
        return 200, {"data": data, "usage": {"total_tokens": 4}}

    with answering(vectors) as url:
        report = await live.check("voyage", {"VOYAGE_KEY": KEY, "VOYAGE_URL": url})
    assert report.ok, report
    with answering(lambda *_: (401, {"detail": f"no such key: {KEY}"})) as url:
        report = await live.check("voyage", {"VOYAGE_KEY": KEY, "VOYAGE_URL": url})
    assert not report.ok
    assert KEY not in str(report)


@pytest.mark.parametrize("status", ["active", "suspended"])
async def test_the_account_of_twilio_is_asked_for_and_nothing_is_called(live, status):
    paths = []

    def account(handler, _):
        paths.append((handler.command, handler.path))
        return 200, {"sid": "AC1", "status": status}

    with answering(account) as url:
        report = await live.check("twilio", {"TWILIO_SID": "AC1", "TWILIO_TOKEN": KEY, "TWILIO_URL": url})
    assert report.ok == (status == "active")
    assert paths == [("GET", "/2010-04-01/Accounts/AC1.json")]


async def test_mongodb_is_used_in_a_database_that_is_gone_afterwards(live, monkeypatch):
    monkeypatch.setattr(live.secrets, "token_hex", lambda _: "ab")
    dropped = []
    drop = AsyncMongoClient.drop_database

    async def watched(client, name, **options):
        dropped.append((name, sorted(await client[name].list_collection_names())))
        await drop(client, name, **options)

    monkeypatch.setattr(AsyncMongoClient, "drop_database", watched)
    with MongoServer() as server:
        report = await live.check("mongodb", {"MONGODB_URI": server.url("precious")})
        assert report.ok, report
        ((name, held),) = dropped
        assert name == "echoic_live_ab"
        assert held
        async with AsyncMongoClient(server.url("precious")) as client:
            assert await client[name].list_collection_names() == []
            assert await client["precious"].list_collection_names() == []


def test_nothing_is_sent_before_somebody_agreed_to_what_it_costs(tmp_path):
    ran = forked.run(
        [sys.executable, str(SCRIPT), "voyage", "twilio"],
        cwd=tmp_path,
        env={
            "PATH": "/usr/bin:/bin",
            "ECHOIC_LIVE_VOYAGE_KEY": KEY,
            "ECHOIC_LIVE_VOYAGE_URL": "http://127.0.0.1:9",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 2
    assert "USD" in ran.stdout
    assert "nothing was sent" in ran.stdout
    assert "twilio: not checked, ECHOIC_LIVE_TWILIO_SID" in ran.stdout
    assert KEY not in ran.stdout + ran.stderr
    assert not (tmp_path / "live-report.json").exists()
