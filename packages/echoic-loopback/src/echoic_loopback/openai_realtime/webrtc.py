# mypy: disable-error-code="import-not-found, misc"
"""Media for calls: the caller's microphone into the session, the agent's speech to the caller's loudspeaker.

Optional, and the one part that needs `aiortc`. The peer is real: ICE, DTLS, SRTP, Opus, and the `oai-events`
data channel. It listens on this machine's addresses, and uses no STUN or TURN server.
"""

from __future__ import annotations

import asyncio
import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from websockets.frames import CloseCode

from echoic_loopback.openai_realtime.session import OpenAISession
from echoic_loopback.realtime.audio import pcm_bytes

if TYPE_CHECKING:
    from aiortc import RTCDataChannel, RTCPeerConnection

RATE_HZ = 24_000
FRAME_MS = 20
CHANNEL = "oai-events"
"""The data channel's label, by the provider's guide."""


class Media:
    """`OpenAIRealtimeServer(..., media=Media())`: every call gets audio and a data channel."""

    async def __call__(self, session: OpenAISession, sdp: str) -> str:
        """Answers a call's offer.

        Raises:
            ImportError: aiortc is not installed.
            ValueError: the offer is not one that can be answered.
        """
        from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription

        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        session.cleanups.append(peer.close)
        speaker = _speaker()
        assert session.playback is not None
        session.playback.speaker = speaker
        peer.addTrack(speaker.track)
        _listen(peer, session)
        await peer.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        return str(peer.localDescription.sdp)


def _listen(peer: RTCPeerConnection, session: OpenAISession) -> None:
    tasks: set[asyncio.Task[None]] = set()

    def on_track(track: Any) -> None:
        task = asyncio.ensure_future(_hear(track, session))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def on_channel(channel: RTCDataChannel) -> None:
        if channel.label == CHANNEL:
            line = ChannelLine(channel)
            channel.on("message", lambda message: session.receive(message, 0))
            channel.on("close", lambda: session.lines.remove(line) if line in session.lines else None)
            session.lines.append(line)
            session.emit("session.created", session=session.settings)
            session.news()

    def on_state() -> None:
        if peer.connectionState in {"failed", "closed"}:
            session.ended.set()

    peer.on("track", on_track)
    peer.on("datachannel", on_channel)
    peer.on("connectionstatechange", on_state)


async def _hear(track: Any, session: OpenAISession) -> None:
    from aiortc.mediastreams import MediaStreamError
    from av import AudioResampler

    resampler = AudioResampler(format="s16", layout="mono", rate=RATE_HZ)
    while True:
        try:
            frame = await track.recv()
        except MediaStreamError:
            return
        for resampled in resampler.resample(frame):
            session.hear_audio(resampled.to_ndarray().astype("<i2").tobytes())


class ChannelLine:
    """The caller's data channel as a line."""

    def __init__(self, channel: RTCDataChannel) -> None:
        self._channel = channel

    def put(self, message: str) -> None:
        if self._channel.readyState == "open":
            self._channel.send(message)

    async def flush(self) -> None:
        """A data channel tells no one when it has delivered; this lets it begin."""
        await asyncio.sleep(0)

    async def close(self, code: int = CloseCode.NORMAL_CLOSURE, reason: str = "") -> None:
        del code, reason
        self._channel.close()

    async def abort(self) -> None:
        self._channel.close()


def _speaker() -> Any:
    # the class needs aiortc's base class, which is not there to be named at import
    from aiortc.mediastreams import AudioStreamTrack
    from av import AudioFrame

    class Track(AudioStreamTrack):
        """Plays what it is given, and silence between, at the pace of time."""

        def __init__(self) -> None:
            super().__init__()
            self.buffer = bytearray()
            self._began_s: float | None = None
            self._frames = 0

        async def recv(self) -> Any:
            now_s = time.monotonic()
            self._began_s = now_s if self._began_s is None else self._began_s
            await asyncio.sleep(max(0.0, self._began_s + self._frames * FRAME_MS / 1000 - now_s))
            size = pcm_bytes(FRAME_MS, RATE_HZ)
            chunk = bytes(self.buffer[:size]).ljust(size, b"\0")
            del self.buffer[:size]
            frame = AudioFrame(format="s16", layout="mono", samples=size // 2)
            frame.planes[0].update(chunk)
            frame.sample_rate = RATE_HZ
            frame.pts = self._frames * (size // 2)
            frame.time_base = Fraction(1, RATE_HZ)
            self._frames += 1
            return frame

    class Speaker:
        """A track as a speaker."""

        def __init__(self) -> None:
            self.track = Track()

        def play(self, pcm: bytes) -> None:
            self.track.buffer += pcm

        def stop(self) -> None:
            self.track.buffer.clear()

    return Speaker()


__all__ = ["Media"]
