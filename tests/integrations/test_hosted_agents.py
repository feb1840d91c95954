"""The webhooks of Retell and ElevenLabs against what their own libraries sign and accept."""

from __future__ import annotations

import time

import pytest
from elevenlabs.client import ElevenLabs
from retell.lib.webhook_auth import symmetric

import echoic
from integrations.hosted_calls import (
    ELEVENLABS,
    RETELL,
    Platform,
    elevenlabs_ended,
    elevenlabs_signed,
    retell_ended,
    retell_signed,
)


@pytest.fixture
async def platform(tmp_path):
    service = echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical")
    async with service, Platform(service) as made:
        yield made


async def posted(platform, path, body, headers):
    return (await platform.http.post(path, content=body, headers=headers)).status_code


async def test_what_retell_signs_is_accepted_while_it_is_fresh(platform):
    body, now_ms = retell_ended(), int(time.time() * 1000)
    text = body.decode()
    for away_ms, status in ((0, 200), (-200_000, 200), (-400_000, 401), (400_000, 401)):
        signature = symmetric["sign"](text, RETELL, now_ms + away_ms)
        assert await posted(platform, "/retell", body, {"x-retell-signature": signature}) == status
    assert await posted(platform, "/retell", body + b" ", {"x-retell-signature": signature}) == 401
    ours = retell_signed(body, time.time())["x-retell-signature"]
    assert symmetric["verify"](text, RETELL, ours)


async def test_what_elevenlabs_accepts_is_accepted_and_what_is_far_ahead_is_not(platform):
    body = elevenlabs_ended()
    headers = elevenlabs_signed(body, time.time())
    theirs = ElevenLabs(api_key="x").webhooks
    event = theirs.construct_event(body.decode(), headers["elevenlabs-signature"], ELEVENLABS)
    assert event["type"] == "post_call_transcription"
    assert await posted(platform, "/elevenlabs/ended", body, headers) == 200
    for away_s in (-3600, 10**7):
        headers = elevenlabs_signed(body, time.time() + away_s)
        assert await posted(platform, "/elevenlabs/ended", body, headers) == 401
