"""Who said a turn: the two roles under the names they go by, and people by their own. Pure.

Memories are formed from what the user said, so a user under a name nobody knows would never be learned from.
"""

from __future__ import annotations

import re
from typing import Final

from echoic.errors import InvalidInput

USER: Final = "user"
AGENT: Final = "agent"

_NAMES: Final = {
    USER: ("user", "human", "caller", "customer", "client", "end user"),
    AGENT: (
        *("agent", "assistant", "ai", "bot", "chatbot", "voicebot", "model", "llm", "language model"),
        *(f"{kind} {role}" for kind in ("ai", "voice", "virtual") for role in ("agent", "assistant")),
    ),
}
ROLES: Final = {name: role for role, names in _NAMES.items() for name in names}
"""What frameworks and transcripts call the two roles, in small letters with single spaces."""
_NOBODY: Final = frozenset(
    "system developer tool tools function memory context unknown speaker person participant".split()
)
"""What is no utterance of anybody's, and labels that do not say whose it is."""
_GAP: Final = re.compile(r"[\s_-]+")
_NUMBERED: Final = re.compile(r"(.*?)[ #]*[0-9]+")
_LABEL: Final = re.compile(r"[a-z0-9_.@+-]+")
"""A role nobody told us of, or an id: people's names have a capital, a space or letters of another script."""


def role_of(speaker: str) -> str | None:
    """The role, "user" or "agent", that goes by the name `speaker`; None: it is no name of a role."""
    return ROLES.get(_folded(speaker))


def checked_speaker(speaker: str) -> str:
    """`speaker` as it is kept: "user" or "agent" by whatever name, or a person's own name as it is written.

    Raises:
        InvalidInput: it names neither a role nor a person.
    """
    folded = _folded(speaker)
    if folded in ROLES:
        return ROLES[folded]
    numbered = _NUMBERED.fullmatch(folded)
    without_number = numbered[1] if numbered else folded
    if (numbered and without_number in ROLES) or without_number in _NOBODY or _LABEL.fullmatch(speaker):
        raise InvalidInput(
            f"speaker {speaker!r:.40} is neither a role nor a person's name. Say 'user' (also "
            f"{', '.join(_NAMES[USER][1:])}) for whoever is remembered, 'agent' (also "
            f"{', '.join(_NAMES[AGENT][1:9])}), or, where several people talk, a name with a capital such as "
            "'Ana'. Nothing is learned from other people's turns; what a system or a tool says is no turn"
        )
    return speaker


def _folded(speaker: str) -> str:
    return _GAP.sub(" ", speaker.strip().casefold())
