"""Every block of Python in the documents runs as it stands: here, or in the test that is named here."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from pydantic import BaseModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.realtime.openai import OpenAIRealtimeModel

import echoic
import forked
from echoic import Turn
from echoic_loopback.openai_realtime import OpenAIRealtimeServer
from echoic_loopback.realtime import Says, Script

ROOT = Path(__file__).parent.parent
ELSEWHERE = {
    ("README.md", 0): "tests/test_docs.py",
    ("docs/audit.md", 0): "tests/memory/test_audit.py",
    ("docs/audit.md", 1): "tests/memory/test_audit.py",
    ("docs/capability.md", 0): "tests/capability/test_documents.py",
    ("docs/observability.md", 0): "tests/memory/test_hooks.py",
    ("docs/own_store.md", 0): "tests/lineage/test_own_store.py",
    # with the frameworks, in `make integrations`
    ("docs/integrations.md", 0): "tests/integrations/test_livekit.py",
    ("docs/integrations.md", 1): "tests/integrations/test_pipecat.py",
    ("docs/integrations.md", 2): "tests/integrations/test_openai_agents.py",
    ("docs/integrations.md", 3): "tests/integrations/test_openai_agents.py",
    ("docs/integrations.md", 4): "tests/integrations/test_adk.py",
    ("docs/integrations.md", 5): "tests/integrations/test_langgraph.py",
    ("docs/integrations.md", 6): "tests/integrations/test_mcp.py",
    ("docs/integrations.md", 7): "tests/integrations/test_webhooks.py",
    ("docs/integrations.md", 8): "tests/integrations/test_definitions.py",
}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks() -> dict[tuple[str, int], str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        (str(page.relative_to(ROOT)), number): program
        for page in pages
        for number, program in enumerate(BLOCK.findall(page.read_text()))
    }


BLOCKS = blocks()
PROGRAMS = {where for where, text in BLOCKS.items() if "asyncio.run(" in text or "sync.open(" in text}
PAGES = sorted({page for page, number in BLOCKS.keys() - ELSEWHERE.keys() - PROGRAMS})


def test_what_is_said_to_run_elsewhere_is_read_there():
    assert ELSEWHERE.keys() <= BLOCKS.keys()
    for (page, _), test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text(), test


@pytest.mark.parametrize(
    "where", sorted(PROGRAMS - ELSEWHERE.keys()), ids=lambda where: f"{where[0]}-{where[1]}"
)
def test_a_program_prints_what_its_comments_say(where, tmp_path):
    ran = forked.run(
        [sys.executable, "-c", BLOCKS[where]],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ECHOIC_EMBEDDER": "lexical"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    # `print(…)  # this`, and `asyncio.run(main())  # prints this` where it is printed within
    promised = re.findall(r"print\(.*\)  # (.+)|# prints (.+)", BLOCKS[where])
    assert (
        ran.stdout.splitlines()[: len(promised)] == [one or other for one, other in promised] or not promised
    )


@contextlib.asynccontextmanager
async def prepared(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The names that the fragments of a page take for granted: real ones."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    names = {"echoic": echoic, "Turn": Turn, "asyncio": asyncio}
    async with echoic.open("memory://", embedder="lexical") as service:
        ana = service.user("ana")
        call = await ana.conversation("monday", agent="films")
        await call.append(Turn(speaker="user", text="I live in Lisbon and I prefer action movies."))
        await call.complete()
        names |= {"service": service, "memory": service, "ana": ana, "user": ana, "store": "memory://"}
        match page:
            case "docs/capability.md":
                from echoic.capability import reflect

                names |= {
                    "BaseModel": BaseModel,
                    "reflect": reflect,
                    "monday": datetime.now(UTC) - timedelta(days=7),
                }
            case "docs/observability.md":
                names |= {"key": b"k" * 32, "tracer_provider": None, "meter_provider": None}
            case "docs/phone.md":
                names |= {"auth_token": "t" * 32, "salt": "s" * 32, "app": FastAPI()}
            case "docs/voice.md":
                async with voice(names):
                    yield names
                return
        yield names


@contextlib.asynccontextmanager
async def voice(names: dict):
    """A provider that speaks, a line, and a process that ends when the caller has heard something."""
    from echoic.server import ServerSettings
    from echoic.session import VoiceAgent

    async def play(pcm: bytes) -> None:
        assert pcm
        names["session_id"] = names["session"].session_id
        await names["session"].suspend()

    agents = [VoiceAgent(name=name, instructions="Be brief.") for name in ("robin", "casey")]
    async with OpenAIRealtimeServer(Script(Says("hello there"), open_ended=True)) as server:
        provider = OpenAIProvider(base_url=server.base_url, api_key="any")
        names |= {"model": OpenAIRealtimeModel("gpt-realtime", provider=provider), "frame": bytes(960)}
        names |= {"play": play, "agents": agents, "casey": agents[1]}
        names |= {"ServerSettings": ServerSettings, "secret": "s3cr3t-of-forty-two-different-bytes-here!"}
        yield names


async def run(program: str, names: dict) -> None:
    code = compile(program, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    made = eval(code, names)
    if inspect.isawaitable(made):
        await made


@pytest.mark.parametrize("page", PAGES)
async def test_the_fragments_of_a_page_run_in_their_order(page, tmp_path, monkeypatch):
    async with prepared(page, tmp_path, monkeypatch) as names:
        for (of, number), program in BLOCKS.items():
            if of == page and (of, number) not in ELSEWHERE and (of, number) not in PROGRAMS:
                await run(program, names)
