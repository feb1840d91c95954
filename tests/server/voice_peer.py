"""A browser's end of a WebRTC call, with aiortc: a microphone, a loudspeaker, and the data channel beside them."""

from __future__ import annotations

import asyncio
import json
from fractions import Fraction

RATE_HZ = 24_000
FRAME_BYTES = 960


class Peer:
    """Plays PCM16 at 24 kHz when told to, and keeps what is played to it."""

    def __init__(self):
        from aiortc import RTCConfiguration, RTCPeerConnection

        self.heard = bytearray()
        self.events = []
        self._peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._microphone = microphone()
        self._peer.addTrack(self._microphone)
        channel = self._peer.createDataChannel("oai-events")
        channel.on("message", lambda message: self.events.append(json.loads(message)))
        self._task = None
        self._peer.on("track", self._on_track)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._peer.close()

    def say(self, pcm):
        """Speak, after what is still being said."""
        self._microphone.waiting += pcm

    async def dial(self, client, identity, session):
        """Offer the server its media; the status it answers with."""
        from aiortc import RTCSessionDescription

        await self._peer.setLocalDescription(await self._peer.createOffer())
        answer = await offered(client, identity, session, self._peer.localDescription.sdp)
        if answer.status_code == 200:
            assert answer.headers["content-type"].startswith("application/sdp")
            await self._peer.setRemoteDescription(RTCSessionDescription(answer.text, "answer"))
        return answer.status_code

    def _on_track(self, track):
        self._task = asyncio.ensure_future(self._listen(track))

    async def _listen(self, track):
        from aiortc.mediastreams import MediaStreamError
        from av import AudioResampler

        resampler = AudioResampler(format="s16", layout="mono", rate=RATE_HZ)
        try:
            while True:
                for frame in resampler.resample(await track.recv()):
                    self.heard += frame.to_ndarray().astype("<i2").tobytes()
        except MediaStreamError:
            return


async def offered(client, identity, session, sdp, kind="application/sdp"):
    headers = {**identity.headers, "Content-Type": kind}
    return await client.post(f"/api/voice/sessions/{session}/offer", content=sdp, headers=headers)


def microphone():
    from aiortc.mediastreams import AudioStreamTrack
    from av import AudioFrame

    class Microphone(AudioStreamTrack):
        def __init__(self):
            super().__init__()
            self.waiting = bytearray()
            self._at = 0

        async def recv(self):
            await asyncio.sleep(0.019)
            chunk = bytes(self.waiting[:FRAME_BYTES]).ljust(FRAME_BYTES, b"\0")
            del self.waiting[:FRAME_BYTES]
            frame = AudioFrame(format="s16", layout="mono", samples=FRAME_BYTES // 2)
            frame.planes[0].update(chunk)
            frame.sample_rate, frame.time_base = RATE_HZ, Fraction(1, RATE_HZ)
            frame.pts = self._at * (FRAME_BYTES // 2)
            self._at += 1
            return frame

    return Microphone()
