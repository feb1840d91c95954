"""A corpus of telephone calls between people and voice agents, with what memory should make of them."""

from echoic_corpus.model import (
    EVERYTHING,
    Call,
    Caller,
    Consent,
    Fact,
    Forget,
    Question,
    Span,
    Trap,
    Turn,
)
from echoic_corpus.noise import Heard, Recogniser, Word
from echoic_corpus.reading import DATA, Problem, read, read_all, splits

__all__ = [
    "DATA",
    "EVERYTHING",
    "Call",
    "Caller",
    "Consent",
    "Fact",
    "Forget",
    "Heard",
    "Problem",
    "Question",
    "Recogniser",
    "Span",
    "Trap",
    "Turn",
    "Word",
    "read",
    "read_all",
    "splits",
]
