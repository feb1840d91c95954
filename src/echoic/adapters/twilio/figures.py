"""What a call took: counts, no content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

RECORD: Final = "phone_call"
"""The name of the result a kept call's figures are recorded under; see `UserMemory.task`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a call took. No content."""

    turns: int
    interruptions: int
    input_tokens: int
    """Sent to the model, those from its provider's cache included."""
    cached_tokens: int
    """Of these, those the provider had in its cache."""
    output_tokens: int = 0
    recalls: int = 0
    """Turns whose words were heard before they were complete, so that memory could be searched ahead."""
    recalls_ready: int = 0
    """Of these, those whose answer was there when the turn ended."""
    language: str = ""
    """The line's, at the end."""
    kept: bool

    @property
    def cached_share(self) -> float:
        """Of the tokens sent, those the provider had in its cache; 0 where none were sent."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else 0.0

    def as_json(self) -> dict[str, Any]:
        """All of it, as it is recorded and reported."""
        counts = {name: getattr(self, name) for name in Figures.__slots__}
        return {**counts, "cached_share": round(self.cached_share, 4)}


__all__ = ["RECORD", "Figures"]
