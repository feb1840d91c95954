"""What Twilio is told to do next, as TwiML. What is said in it is text, whatever it holds."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlencode

from twilio.twiml.voice_response import Connect, Gather, VoiceResponse

from echoic.adapters.twilio.settings import PhoneSettings

MAX_SAID_CHARACTERS: Final = 3000
"""Of one <Say>; Twilio takes 4,096. What is longer is said in several."""
DETECTED: Final = "multi"
_UNSPEAKABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold."""


class Scribe:
    """Writes TwiML for one server.

    Args:
        settings: language and voice.
        base: scheme and host Twilio reaches the server by.
    """

    def __init__(self, settings: PhoneSettings, base: str) -> None:
        self._settings = settings
        self._base = base

    def url(self, path: str, **query: Any) -> str:
        """Where a webhook is."""
        return f"{self._base}{path}{'?' + urlencode(query) if query else ''}"

    def listen(self, words: str, action: str, *, language: str) -> str:
        """Say `words` in `language`, then listen for it and send what was said to `action`.

        The caller cannot cut in: over webhooks nobody tells how much was heard, and what was not heard must
        not be remembered.
        """
        response = VoiceResponse()
        if words:
            self._say(response, words, language)
        gather = Gather(
            input="dtmf speech",
            action=action,
            method="POST",
            speech_timeout="auto",
            timeout=6,
            finish_on_key="#",
            action_on_empty_result=True,
            language=language,
            hints=", ".join(self._settings.hints) or None,
        )
        response.append(gather)
        return str(response)

    def go_on(self, words: str, action: str, *, language: str, pause_s: int = 0) -> str:
        """Say `words`, be silent for a while, and ask `action` what comes next."""
        response = VoiceResponse()
        if words:
            self._say(response, words, language)
        if pause_s:
            response.pause(length=pause_s)
        response.redirect(action, method="POST")
        return str(response)

    def end(self, words: str = "", *, language: str | None = None) -> str:
        """Say `words` and hang up."""
        response = VoiceResponse()
        if words:
            self._say(response, words, language or self._settings.language)
        response.hangup()
        return str(response)

    def relay(self, socket: str, action: str, greeting: str, *, language: str) -> str:
        """Connect the call to `socket`, which speaks and hears text; afterwards ask `action`.

        What is said is sent before it is complete, too: memory is searched on it meanwhile.
        """
        settings = self._settings
        response = VoiceResponse()
        connect = Connect(action=action, method="POST")
        relay = connect.conversation_relay(
            url=self._socket(socket),
            welcome_greeting=_plain(greeting) or None,
            voice=settings.voice_of(language),
            interruptible="any",
            dtmf_detection=True,
            partial_prompts=True,
            hints=", ".join(settings.hints) or None,
            events="tokens-played",
            **_hearing(language, detected=settings.detect_language),
        )
        for other in settings.spoken:
            relay.language(code=other, voice=settings.voice_of(other))
        response.append(connect)
        return str(response)

    def stream(self, socket: str, action: str, greeting: str, *, language: str) -> str:
        """Say `greeting`, then connect the call's audio to `socket`; afterwards ask `action`."""
        response = VoiceResponse()
        self._say(response, greeting, language)
        connect = Connect(action=action, method="POST")
        connect.stream(url=self._socket(socket))
        response.append(connect)
        return str(response)

    def _socket(self, path: str) -> str:
        return (
            f"{'wss' if self._base.startswith('https') else 'ws'}{self._base[self._base.index(':') :]}{path}"
        )

    def _say(self, parent: VoiceResponse, words: str, language: str) -> None:
        for piece in _pieces(_plain(words)):
            parent.say(piece, language=language, voice=self._settings.voice_of(language))


def _hearing(language: str, *, detected: bool) -> dict[str, str]:
    """What is heard and spoken; "multi" is Twilio's word for finding out, which Deepgram can."""
    if not detected:
        return {"language": language}
    return {
        "tts_language": language,
        "transcription_language": DETECTED,
        "transcription_provider": "Deepgram",
    }


def _plain(words: str) -> str:
    return _UNSPEAKABLE.sub(" ", words.encode(errors="replace").decode())


def _pieces(words: str) -> list[str]:
    """`words` in pieces that one <Say> can hold, cut between words where there are any."""
    pieces: list[str] = []
    while len(words) > MAX_SAID_CHARACTERS:
        at = words.rfind(" ", 1, MAX_SAID_CHARACTERS) + 1 or MAX_SAID_CHARACTERS
        pieces.append(words[:at])
        words = words[at:]
    return [piece for piece in (*pieces, words) if piece.strip()]
