"""Run the same scripted checks against real providers: OpenAI, Gemini, Voyage, Twilio and MongoDB.

    ECHOIC_LIVE_OPENAI_KEY=… make live
    ECHOIC_LIVE_VOYAGE_KEY=… .venv/bin/python scripts/live.py voyage --yes

Whatever has its variables is checked, one provider after another. What will be sent and what that may cost is
said first, and asked about. The report, live-report.json, holds times and outcomes, no key, address or text.
ECHOIC_LIVE_…_URL is another address of the same interface, such as a stand-in of echoic-loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import platform
import secrets
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import echoic
from echoic import Turn
from echoic.embedding import embedder_from

CALL_S = 45.0
"""The longest a call with a voice model lasts."""
PREFIX = "ECHOIC_LIVE_"


class Wrong(Exception):
    """A provider did something else than what Echoic relies on. The message holds no content."""


@dataclass
class Report:
    """What was done with one provider."""

    provider: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    ok: bool = False

    @asynccontextmanager
    async def step(self, name: str) -> Any:
        """Time a step, and note how it ended: by the type of an error, for its message may quote a key."""
        facts: dict[str, Any] = {"step": name}
        self.steps.append(facts)
        began = time.monotonic()
        try:
            yield facts
        except Exception as error:
            facts["failed"] = str(error) if isinstance(error, Wrong) else type(error).__name__
            raise
        finally:
            facts["ms"] = round((time.monotonic() - began) * 1000, 1)


def need(condition: object, what: str) -> None:
    if not condition:
        raise Wrong(what)


async def voice_call(report: Report, model: Any) -> None:
    """A voice model greets a caller by the name that memory has; what it said and what was heard is kept."""
    from echoic.session import VoiceAgent, VoiceSession

    agent = VoiceAgent(
        name="robin",
        instructions="You answer a telephone. Say one short sentence, then wait.",
        greeting="Greet the caller by the name you know them by.",
    )
    async with echoic.open("memory://", embedder="lexical") as memory:
        ana = memory.user("ana")
        await ana.set("user_name", "Ana")
        played = 0
        async with report.step("a call that greets") as facts:
            began = time.monotonic()
            async with VoiceSession(
                memory, user="ana", agents=[agent], model=model, session_id="live"
            ) as call:

                async def listen() -> None:
                    while True:
                        await call.send_audio(bytes(2 * call.profile.input_hz * 20 // 1000))
                        await asyncio.sleep(0.02)

                async def play() -> None:
                    nonlocal played
                    async for pcm in call.audio():
                        if not played:
                            facts["first_audio_ms"] = round((time.monotonic() - began) * 1000, 1)
                        played += len(pcm)
                        await asyncio.sleep(len(pcm) / 2 / call.profile.output_hz)

                line = [asyncio.create_task(listen()), asyncio.create_task(play())]
                try:
                    quiet = 0
                    while quiet < 5 and time.monotonic() - began < CALL_S:
                        await asyncio.sleep(0.2)
                        quiet = quiet + 1 if played and call.live.playback.idle else 0
                finally:
                    for task in line:
                        task.cancel()
                    await asyncio.gather(*line, return_exceptions=True)
            need(played, "no audio came")
        async with report.step("what was said is kept") as facts:
            task = await ana.task("live")
            turns = [turn for turn in (task.turns if task else ()) if turn.speaker == "agent"]
            facts["turns"] = len(turns)
            need(turns, "the agent's turn was not kept")
            need("ana" in turns[0].text.casefold(), "the greeting does not use the name that memory has")
            need(turns[0].heard_text.strip(), "nothing counts as heard though all was played")


async def openai(report: Report, given: Mapping[str, str]) -> None:
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.realtime.openai import OpenAIRealtimeModel

    provider = OpenAIProvider(api_key=given["OPENAI_KEY"], base_url=given.get("OPENAI_URL"))
    await voice_call(
        report, OpenAIRealtimeModel(given.get("OPENAI_MODEL", "gpt-realtime"), provider=provider)
    )


async def gemini(report: Report, given: Mapping[str, str]) -> None:
    from pydantic_ai.providers.google import GoogleProvider
    from pydantic_ai.realtime.google import GoogleRealtimeModel

    provider = GoogleProvider(api_key=given["GEMINI_KEY"], base_url=given.get("GEMINI_URL"))
    await voice_call(
        report, GoogleRealtimeModel(given.get("GEMINI_MODEL", "gemini-3.8-live"), provider=provider)
    )


async def voyage(report: Report, given: Mapping[str, str]) -> None:
    options = {"base_url": given["VOYAGE_URL"]} if "VOYAGE_URL" in given else {}
    name = f"voyageai:{given.get('VOYAGE_MODEL', 'voyage-3.5-lite')}"
    embedder = embedder_from(name, api_key=given["VOYAGE_KEY"], **options)
    async with echoic.open("memory://", embedder=embedder) as memory:
        ana = memory.user("ana")
        async with report.step("vectors of what is kept"):
            for text in (
                "She moved to the town of Lisbon.",
                "She is allergic to peanuts.",
                "She drives a van.",
            ):
                await ana.remember(text)
            need(await memory.settle(), "vectors did not arrive")
        async with report.step("a question") as facts:
            found = await ana.recall("Which town did she move to?")
            facts["cut"] = list(found.cut)
            need(found.outcome == "complete", "the search was not complete")
            need(found.hits and "Lisbon" in found.hits[0].text, "another memory came first")


async def twilio(report: Report, given: Mapping[str, str]) -> None:
    sid, token = given["TWILIO_SID"], given["TWILIO_TOKEN"]
    address = given.get("TWILIO_URL", "https://api.twilio.com").rstrip("/")
    request = urllib.request.Request(f"{address}/2010-04-01/Accounts/{sid}.json")
    request.add_header("Authorization", f"Basic {base64.b64encode(f'{sid}:{token}'.encode()).decode()}")

    def ask() -> Any:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    async with report.step("the account of these credentials") as facts:
        told = await asyncio.to_thread(ask)
        facts["status"] = str(told.get("status"))[:20]
        need(told.get("sid") == sid, "another account answered")
        need(told.get("status") == "active", "the account is not active")


async def mongodb(report: Report, given: Mapping[str, str]) -> None:
    from pymongo import AsyncMongoClient

    name = f"echoic_live_{secrets.token_hex(4)}"
    parts = urlsplit(given["MONGODB_URI"])
    address = urlunsplit(parts._replace(path=f"/{name}"))
    try:
        async with echoic.open(address, embedder="lexical") as memory:
            ana = memory.user("ana")
            async with report.step("writes"):
                await ana.set("favourite_drink", "flat white with oat milk")
                call = await ana.conversation("live")
                await call.append(Turn(speaker="user", text="I moved to Lisbon."))
                await call.learn()
            async with report.step("a search"):
                need((await ana.query("which town does she live in?")), "what was learned was not found")
                need(await memory.user("bob").facts() == [], "another user sees it")
        async with report.step("another connection"), echoic.open(address, embedder="lexical") as memory:
            kept = await memory.user("ana").get("favourite_drink")
            need(kept is not None and kept.text.startswith("flat white"), "it was not read back")
            receipt = await memory.user("ana").forget()
            need(receipt.verified, "the erasure was not verified")
    finally:
        async with AsyncMongoClient(given["MONGODB_URI"]) as client:  # only the database that was made here
            await client.drop_database(name)


@dataclass(frozen=True)
class Check:
    """What is checked of a provider."""

    needs: tuple[str, ...]
    sends: str
    run: Callable[[Report, Mapping[str, str]], Awaitable[None]]


_CALL = (
    f"one voice call of at most {CALL_S:.0f} s, silence in, a sentence out; by estimate less than 0.25 USD"
)
CHECKS = {
    "openai": Check(("OPENAI_KEY",), _CALL, openai),
    "gemini": Check(("GEMINI_KEY",), _CALL, gemini),
    "voyage": Check(("VOYAGE_KEY",), "four short texts to embed; by estimate less than 0.01 USD", voyage),
    "twilio": Check(("TWILIO_SID", "TWILIO_TOKEN"), "one request for the account's own record; free", twilio),
    "mongodb": Check(("MONGODB_URI",), "a database of its own, made and dropped; some 50 commands", mongodb),
}


def given_in(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(PREFIX): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value
    }


async def check(name: str, given: Mapping[str, str]) -> Report:
    """Check one provider. What goes wrong is in the report."""
    report = Report(name)
    try:
        await CHECKS[name].run(report, given)
        report.ok = True
    except Exception as error:  # noqa: BLE001 - whatever a provider's client raises is a finding
        if not report.steps or "failed" not in report.steps[-1]:
            report.steps.append({"step": "to begin or to end", "failed": type(error).__name__})
    return report


def chosen(names: list[str], given: Mapping[str, str]) -> list[str]:
    """The providers that can be checked; says what the others lack."""
    able = []
    for name in names or CHECKS:
        lacks = [PREFIX + each for each in CHECKS[name].needs if each not in given]
        if lacks:
            print(f"{name}: not checked, {' and '.join(lacks)} is not set")
        else:
            print(f"{name}: {CHECKS[name].sends}")
            able.append(name)
    return able


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("providers", nargs="*", metavar="PROVIDER", help=", ".join(CHECKS))
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is sent")
    parser.add_argument("--report", type=Path, default=Path("live-report.json"))
    asked = parser.parse_args()
    if unknown := set(asked.providers) - CHECKS.keys():
        parser.error(f"no provider {', '.join(sorted(unknown))}: one of {', '.join(CHECKS)}")
    given = given_in(os.environ)
    able = chosen(asked.providers, given)
    if not able:
        return 2
    if not asked.yes:
        if not sys.stdin.isatty():
            print("nothing was sent: say --yes, or answer on a terminal")
            return 2
        if input("Go on? [y/N] ").strip().lower() not in {"y", "yes"}:
            return 2
    reports = []
    for name in able:
        report = asyncio.run(check(name, given))
        reports.append(report)
        print(f"{name}: {'as expected' if report.ok else 'NOT as expected'}")
        for step in report.steps:
            print(f"  {step}")
    packages = ("echoic", "openai", "google-genai", "pydantic-ai-slim", "pymongo", "websockets")
    made = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "providers": [{"provider": each.provider, "ok": each.ok, "steps": each.steps} for each in reports],
    }
    asked.report.write_text(json.dumps(made, indent=1) + "\n")
    print(f"the report is in {asked.report}")
    return 0 if all(each.ok for each in reports) else 1


if __name__ == "__main__":
    raise SystemExit(main())
