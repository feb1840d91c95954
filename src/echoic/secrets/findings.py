"""What was found in a text and where, and the text without it. Finds nothing itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal[
    "URL", "KEY", "EMAIL", "IBAN", "CARD", "BIRTHDATE", "ID", "PASSWORD", "ACCOUNT", "PHONE", "IP", "ADDRESS"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds; where findings overlap, the earlier here names what is taken out."""

PLACEHOLDER = re.compile(rf"\[(?:{'|'.join(KINDS)})\]")
"""What stands where something was taken out."""

_RANK = {kind: rank for rank, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One stretch of personal data."""

    kind: Kind
    start: int
    """First character, counted in the original text."""
    end: int
    """One past the last character, counted in the original text."""
    rule: str
    """Which rule found it, such as "phone-national"."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """A text without what was found in it."""

    text: str
    found: tuple[Finding, ...]
    """In order of place; none overlaps another."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Each kind found, once, in order of place."""
        return tuple(dict.fromkeys(finding.kind for finding in self.found))


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """The same stretches with no overlap: what overlaps becomes one, so that nothing is left standing."""
    united: list[Finding] = []
    for finding in sorted(findings, key=lambda f: (f.start, -f.end, _RANK[f.kind])):
        last = united[-1] if united else None
        if last is None or finding.start >= last.end:
            united.append(finding)
            continue
        name = min(last, finding, key=lambda f: _RANK[f.kind])
        united[-1] = Finding(name.kind, last.start, max(last.end, finding.end), name.rule)
    return united


def replaced(text: str, findings: Sequence[Finding]) -> str:
    """`text` with a placeholder for each of `findings`, which are in order and do not overlap."""
    pieces: list[str] = []
    done = 0
    for finding in findings:
        pieces += (text[done : finding.start], f"[{finding.kind}]")
        done = finding.end
    return "".join((*pieces, text[done:]))


__all__ = ["KINDS", "PLACEHOLDER", "Finding", "Kind", "Redacted", "merged", "replaced"]
