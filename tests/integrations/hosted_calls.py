"""Hosted voice platforms as tests play them: an app with their webhooks, and what they send."""

from __future__ import annotations

import hashlib
import hmac
import json

import httpx
from fastapi import FastAPI

from echoic.integrations.hosted_agents import webhooks

VAPI, RETELL, ELEVENLABS = "vapi-secret", "key_retell", "wsec_elevenlabs"
ANA, BOB = "+15550000001", "+15550000002"
USERS = {ANA: "ana", BOB: "bob"}
TEACHES = "Hi, I'm Ana and I'm allergic to peanuts."
ASKS = "What am I allergic to?"


async def by_list(caller):
    return USERS.get(caller.number)


class Platform:
    """Sends webhooks to an app that serves them."""

    def __init__(self, service, whose=by_list, **options):
        secrets = {"vapi_secret": VAPI, "retell_key": RETELL, "elevenlabs_secret": ELEVENLABS}
        app = FastAPI()
        # the list is a backend that had its callers sign in: they are told everything
        app.include_router(webhooks(service, whose=whose, **{"level": "account", **secrets, **options}))
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://echoic")

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()

    async def vapi(self, kind, number=ANA, **message):
        call = {"id": "v1", "type": "inboundPhoneCall", "customer": {"number": number}}
        body = json.dumps({"message": {"type": kind, "call": call, **message}}).encode()
        return await self.http.post("/vapi", content=body, headers=vapi_signed(body))

    async def elevenlabs(self, path, **payload):
        return await self.http.post(
            f"/elevenlabs/{path}", json=payload, headers={"x-echoic-secret": ELEVENLABS}
        )


def digest(secret, signed):
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def vapi_signed(body, secret=VAPI):
    return {"x-vapi-signature": f"sha256={digest(secret, body)}"}


def retell_signed(body, now_s, secret=RETELL):
    stamp = str(int(now_s * 1000))
    return {"x-retell-signature": f"v={stamp},d={digest(secret, body + stamp.encode())}"}


def elevenlabs_signed(body, now_s, secret=ELEVENLABS):
    stamp = str(int(now_s))
    return {"elevenlabs-signature": f"t={stamp},v0={digest(secret, stamp.encode() + b'.' + body)}"}


def retell_ended(number=ANA, *, outbound=False, words=({"word": "Hi", "start": 1.5, "end": 1.9},)):
    said = [
        {"role": "agent", "content": "Hello!", "words": []},
        {"role": "user", "content": TEACHES, "words": words},
    ]
    call = {"call_id": "r1", "from_number": number, "to_number": "+15559999999", "direction": "inbound"}
    if outbound:
        call |= {"from_number": "+15559999999", "to_number": number, "direction": "outbound"}
    call |= {"start_timestamp": 1_790_000_000_000, "transcript_object": said}
    return json.dumps({"event": "call_ended", "call": call}).encode()


def elevenlabs_ended(number=ANA):
    said = [
        {"role": "agent", "message": "Hello!", "time_in_call_secs": 0},
        {"role": "user", "message": TEACHES, "time_in_call_secs": 2},
        {"role": "agent", "message": None, "time_in_call_secs": 3},
        {
            "role": "agent",
            "message": "Noted, I will",
            "original_message": "Noted, I will remember that.",
            "interrupted": True,
            "time_in_call_secs": 4,
        },
    ]
    variables = {"dynamic_variables": {"system__caller_id": number}}
    data = {"agent_id": "a", "conversation_id": "e1", "transcript": said}
    data |= {
        "metadata": {"start_time_unix_secs": 1_790_000_000},
        "conversation_initiation_client_data": variables,
    }
    return json.dumps({"type": "post_call_transcription", "event_timestamp": 1, "data": data}).encode()
