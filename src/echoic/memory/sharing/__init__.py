"""What may become global, with personal data taken out of it. No language model, no I/O, no clock.

`redact` takes personal data out of a text, `classify` says whether it is a fact about the business, and
`share` does both and looks once more. What they cannot judge stays private.
"""

from __future__ import annotations

from echoic.memory.sharing.classify import (
    MAX_FACT_CHARACTERS,
    REASONS,
    Classifier,
    RuleClassifier,
    Together,
    Verdict,
    agree,
    classify,
)
from echoic.memory.sharing.gate import Redactor, Shareable, share, weigh
from echoic.memory.sharing.presidio import PresidioRedactor
from echoic.memory.sharing.redaction import redact
from echoic.memory.sharing.stated import DEFAULT_GLOBAL_KINDS, GLOBAL_KINDS, LESSON, checked_kinds
from echoic.secrets.findings import KINDS, Finding, Kind, Redacted

__all__ = [
    "DEFAULT_GLOBAL_KINDS",
    "GLOBAL_KINDS",
    "KINDS",
    "LESSON",
    "MAX_FACT_CHARACTERS",
    "REASONS",
    "Classifier",
    "Finding",
    "Kind",
    "PresidioRedactor",
    "Redacted",
    "Redactor",
    "RuleClassifier",
    "Shareable",
    "Together",
    "Verdict",
    "agree",
    "checked_kinds",
    "classify",
    "redact",
    "share",
    "weigh",
]
