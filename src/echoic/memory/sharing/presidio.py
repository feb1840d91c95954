"""A second pair of eyes: Microsoft Presidio's pattern recognisers beside our rules. Optional, extra "pii".

No language model is loaded and nothing is downloaded: recognisers that would fetch a list of domains, and
dates and company registers, which name nobody, are left out. Slower than the rules alone by far; never on
the path of a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from echoic.errors import InvalidInput, brief
from echoic.memory.sharing.redaction import redact
from echoic.secrets.findings import Finding, Kind, Redacted

_LANGUAGE = "en"
"""What recognisers are asked for; patterns know no language, and their context words come in several."""
# The first two fetch a list of domains; the others belong to no person, or have no check at all.
_LEFT_OUT = frozenset(
    """URL EMAIL_ADDRESS DATE_TIME UUID AU_ABN AU_ACN DE_HANDELSREGISTER DE_VAT_ID IT_VAT_CODE KR_BRN
    SE_ORGANISATIONSNUMMER SG_UEN ZA_COMPANY_REGISTRATION ZA_VAT_NUMBER IN_GSTIN US_PROVIDER_TAX_ID
    IP_ADDRESS NG_VEHICLE_REGISTRATION CA_SIN""".split()
)
_SURE_PATTERN = 0.5
"""Presidio's own estimate of a pattern, before check digits. One of ten numbers passes a check digit, so
that a weaker pattern counts only with one of its words before it. Measured on our 286 negatives: without this
and the list above 17 are false, with both none."""
_KINDS: dict[str, Kind] = {
    "CREDIT_CARD": "CARD",
    "IBAN_CODE": "IBAN",
    "MAC_ADDRESS": "IP",
    "PHONE_NUMBER": "PHONE",
    "CRYPTO": "ACCOUNT",
    "US_BANK_NUMBER": "ACCOUNT",
    "ABA_ROUTING_NUMBER": "ACCOUNT",
    "US_CLAIM_NUMBER": "ACCOUNT",
    "US_HEALTH_INSURANCE_MEMBER_ID": "ACCOUNT",
    "CA_POSTAL_CODE": "ADDRESS",
    "DE_PLZ": "ADDRESS",
    "UK_POSTCODE": "ADDRESS",
}
"""Everything else Presidio finds is an identity number of some country."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


class PresidioRedactor:
    """`redact` with what Presidio's patterns find as well. Building one takes about a second; share it.

    Args:
        least_score: 0 to 1; what Presidio is less sure of is not taken out.

    Raises:
        ImportError: the extra "pii" is not installed.
        InvalidInput: `least_score` is not between 0 and 1.
    """

    def __init__(self, *, least_score: float = 0.5) -> None:
        if not 0 <= least_score <= 1:
            raise InvalidInput(f"least_score must be between 0 and 1, not {brief(least_score)}")
        self._least_score = least_score
        self._analyzer = _analyzer()

    def __call__(self, text: str, *, region: str | None = None) -> Redacted:
        """See `redact`."""
        return self.redact(text, region=region)

    def redact(self, text: str, *, region: str | None = None) -> Redacted:
        """`text` without what our rules or Presidio's find in it. Redacting again changes nothing.

        Raises:
            InvalidInput: no country with telephone numbers has the code `region`.
        """
        return redact(text, region=region, also=self.find)

    def find(self, text: str) -> Iterator[Finding]:
        """What Presidio alone finds."""
        results = self._analyzer.analyze(
            text, language=_LANGUAGE, score_threshold=self._least_score, return_decision_process=True
        )
        for result in results:
            why = result.analysis_explanation
            sure = why.original_score >= _SURE_PATTERN or why.supportive_context_word
            if sure and result.end > result.start:
                kind = _KINDS.get(result.entity_type, "ID")
                yield Finding(kind, result.start, result.end, f"presidio-{result.entity_type.lower()}")


class _NoModel:
    """Stands where Presidio expects a language model: cuts words, so that cues count, and no more."""

    def load(self) -> None:
        """Nothing to load."""

    def is_loaded(self) -> bool:
        return True

    def process_text(self, text: str, language: str) -> Any:
        from presidio_analyzer.nlp_engine import NlpArtifacts

        found = list(_TOKEN.finditer(text))
        words = [token[0] for token in found]
        lowered = [word.lower() for word in words]
        # One more token past the end: Presidio fails on a match that begins behind the last.
        artifacts = NlpArtifacts(
            [], [*words, " "], [*(token.start() for token in found), len(text)], lowered, None, language
        )
        artifacts.keywords = lowered
        return artifacts

    def process_batch(self, texts: Any, language: str, **_: Any) -> Iterator[tuple[str, Any]]:
        for text in texts:
            yield text, self.process_text(text, language)

    def is_stopword(self, word: str, language: str) -> bool:  # noqa: ARG002 - Presidio's interface
        return False

    def is_punct(self, word: str, language: str) -> bool:  # noqa: ARG002 - Presidio's interface
        return not word.isalnum()

    def get_supported_entities(self) -> list[str]:
        return []

    def get_supported_languages(self) -> list[str]:
        return [_LANGUAGE]


def _analyzer() -> Any:
    try:
        from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    except ImportError as error:
        raise ImportError('redaction by Presidio needs an extra: pip install "echoic[pii]"') from error
    registry = RecognizerRegistry(recognizers=list(_recognisers()), supported_languages=[_LANGUAGE])
    return AnalyzerEngine(registry=registry, nlp_engine=_NoModel(), supported_languages=[_LANGUAGE])


def _recognisers() -> Iterator[Any]:
    """Every pattern recogniser Presidio brings, of all countries, that is not left out."""
    from presidio_analyzer import PatternRecognizer, predefined_recognizers

    for recogniser in vars(predefined_recognizers).values():
        if isinstance(recogniser, type) and issubclass(recogniser, PatternRecognizer):
            made = recogniser(supported_language=_LANGUAGE)
            if _LEFT_OUT.isdisjoint(made.supported_entities):
                yield made


__all__ = ["PresidioRedactor"]
