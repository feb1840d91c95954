"""Keys and tokens, known by how they look. Passwords and codes look like anything: those are `announced`."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from echoic.secrets.findings import Finding
from echoic.text.views import View

_TAIL = r"[A-Za-z0-9_-]"
# Prefixes as their issuers publish them, each with the shortest tail they give out.
_PREFIXED = re.compile(
    rf"""(?<![A-Za-z0-9])(?:
      sk-(?:ant-|proj-|svcacct-|admin-|or-v1-)?{_TAIL}{{16,}}+
    | (?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{{16,}}+
    | gh[opusr]_[A-Za-z0-9]{{20,}}+ | github_pat_[A-Za-z0-9_]{{20,}}+ | gl(?:pat|dt|rt|soat)-{_TAIL}{{16,}}+
    | xox[abeoprs]-[A-Za-z0-9-]{{10,}}+ | xapp-[A-Za-z0-9-]{{10,}}+
    | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}(?![A-Za-z0-9])
    | AIza{_TAIL}{{30,}}+ | ya29\.{_TAIL}{{20,}}+ | GOCSPX-{_TAIL}{{20,}}+
    | SG\.{_TAIL}{{16,}}+\.{_TAIL}{{16,}}+ | (?:AC|SK)[0-9a-f]{{32}}(?![A-Za-z0-9])
    | hf_[A-Za-z0-9]{{20,}}+ | npm_[A-Za-z0-9]{{20,}}+ | pypi-{_TAIL}{{20,}}+ | do[opr]_v1_[a-f0-9]{{20,}}+
    | shp(?:at|ca|pa|ss)_[a-fA-F0-9]{{16,}}+ | sq0(?:atp|csp)-{_TAIL}{{16,}}+ | EAAA{_TAIL}{{40,}}+
    | (?:pa|vo)-{_TAIL}{{30,}}+ | gsk_[A-Za-z0-9]{{20,}}+
    | r8_[A-Za-z0-9]{{20,}}+ | lin_api_[A-Za-z0-9]{{20,}}+
    | key-[0-9a-f]{{32}}(?![A-Za-z0-9]) | dckr_pat_{_TAIL}{{16,}}+
    | eyJ{_TAIL}{{8,}}+\.{_TAIL}{{8,}}+(?:\.{_TAIL}*+)?
    | (?:xprv|zprv|yprv)[A-Za-z0-9]{{60,}}+
    | AGE-SECRET-KEY-1[A-Z0-9]{{20,}}+
    )""",
    re.VERBOSE,
)
_BEARER = re.compile(r"(?<!\w)(?:bearer|basic)\s+([A-Za-z0-9+/_.=~-]{16,}+)", re.IGNORECASE)
_BLOCK = re.compile(r"-----\s?BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|MESSAGE)[A-Z0-9 ]{0,20}-----")
_BLOCK_END = re.compile(r"-----\s?END [A-Z0-9 ]{0,60}-----")
_RANDOM = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{20,}+={0,2}")
_LEAST_ENTROPY = 3.5
"""Bits a character. English runs at about 4 over its alphabet too, so the mix of classes must speak first."""


def keys(view: View) -> Iterator[Finding]:
    """Keys and tokens by prefix, private key blocks, and what is too random to be anything else."""
    text = view.text
    yield from _blocks(text)
    for found in _PREFIXED.finditer(text):
        yield Finding("KEY", found.start(), found.end(), "key-prefix")
    for found in _BEARER.finditer(text):
        if any(character.isdecimal() for character in found[1]):
            yield Finding("KEY", found.start(1), found.end(1), "key-bearer")
    for found in _RANDOM.finditer(text):
        if is_random(found[0]):
            yield Finding("KEY", found.start(), found.end(), "key-entropy")


def _blocks(text: str) -> Iterator[Finding]:
    begin = _BLOCK.search(text)
    while begin:
        end = _BLOCK_END.search(text, begin.end())
        # A key that was cut off is still a key.
        last = end.end() if end else len(text)
        yield Finding("KEY", begin.start(), last, "key-block")
        begin = _BLOCK.search(text, last)


def is_random(token: str) -> bool:
    """Whether letters of both cases and digits alternate as only generated strings do."""
    classes = [("l" if c.islower() else "u" if c.isupper() else "d") for c in token if c.isalnum()]
    if len(set(classes)) < 3 or classes.count("d") < 2:
        return False
    turns = sum(a != b for a, b in pairwise(classes))
    return turns * 4 >= len(classes) and entropy(token) >= _LEAST_ENTROPY


def entropy(text: str) -> float:
    """Shannon entropy of the characters of `text`, in bits a character; 0 where it is empty."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


__all__ = ["entropy", "is_random", "keys"]
