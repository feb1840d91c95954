"""Conformance suites for your own stores and embedders.

Names are imported on first use: the store's suite needs no model runtime. Needs pytest, pytest-asyncio and
hypothesis.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echoic.stores.in_memory import InMemoryStore
    from echoic.testing.embedder_conformance import EmbedderConformance
    from echoic.testing.store_conformance import StoreConformance
    from echoic.testing.store_histories import random_histories

_HOMES = {
    "EmbedderConformance": "echoic.testing.embedder_conformance",
    "InMemoryStore": "echoic.stores.in_memory",
    "StoreConformance": "echoic.testing.store_conformance",
    "random_histories": "echoic.testing.store_histories",
}
_SUITES = ("embedder_conformance", "store_conformance", "store_histories", "store_writing")

if "pytest" in sys.modules:
    import pytest

    # so that failing assertions of a suite show their values, as in a test file
    pytest.register_assert_rewrite(*(f"{__name__}.{suite}" for suite in _SUITES))


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


__all__ = ["EmbedderConformance", "InMemoryStore", "StoreConformance", "random_histories"]
