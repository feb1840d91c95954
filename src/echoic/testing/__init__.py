"""What a store or an embedder of your own has to pass, and what tests of voice agents can use.

Names are imported when they are first asked for: the store's suite needs no model runtime, and nothing here
is needed by Echoic itself. Needs pytest, pytest-asyncio and hypothesis.
"""

from __future__ import annotations

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


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home.startswith(f"{__name__}."):
        import pytest

        # so that a failing assertion of a suite shows its values, as one in a test file does
        pytest.register_assert_rewrite(
            home, f"{__name__}.store_reading", f"{__name__}.store_subject", f"{__name__}.store_writing"
        )
    return getattr(import_module(home), name)


__all__ = ["EmbedderConformance", "InMemoryStore", "StoreConformance", "random_histories"]
