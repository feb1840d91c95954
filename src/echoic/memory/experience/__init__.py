"""What an agent learned by serving people, kept for all whom it serves: lessons, and nobody's secrets.

A lesson is checked by rules before it is kept, whoever wrote it. What conversations taught is in no prompt
before an operator approved it.
"""

from __future__ import annotations

from echoic.memory.experience.check import MAX_LESSON_CHARACTERS, objection
from echoic.memory.experience.lessons import (
    MAX_LESSONS_PER_KIND,
    AgentExperience,
    agents_with_lessons,
    unlearn,
)

__all__ = [
    "MAX_LESSONS_PER_KIND",
    "MAX_LESSON_CHARACTERS",
    "AgentExperience",
    "agents_with_lessons",
    "objection",
    "unlearn",
]
