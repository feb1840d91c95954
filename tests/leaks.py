"""Which secrets stand in the bytes of a store. Digits inside an id of hexadecimal digits are none."""

from __future__ import annotations

import re
from collections.abc import Iterable

_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def leaked(kept: bytes, secrets: Iterable[str]) -> list[str]:
    """Those of `secrets` that stand in `kept`, in any case."""
    assert kept, "nothing was kept at all"
    text = _UUID.sub(b"", kept.lower())
    return [
        s
        for s in secrets
        if re.search(rb"(?<![0-9a-f])" + re.escape(s.lower().encode()) + rb"(?![0-9a-f])", text)
    ]
