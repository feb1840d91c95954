"""Agent experience: lessons that an agent learned by serving users, shared with all users and free of
secrets.

Rules check every lesson before it is stored, whoever wrote it. A lesson learned from conversations enters a
prompt only after an operator approved it.
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
