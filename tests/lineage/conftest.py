"""What the tests of other folders stand on, for the features that the founding documents describe."""

from __future__ import annotations

import pytest

import echoic
from adapters.conftest import line
from capability.conftest import call_tool, chat
from embedding.conftest import _switchboard, embedding_server
from session.conftest import _no_foreign_key, eventually, phone, provider, serve
from stores.conftest import closed_while_connecting

__all__ = [
    "_no_foreign_key",
    "_switchboard",
    "call_tool",
    "chat",
    "closed_while_connecting",
    "embedding_server",
    "eventually",
    "line",
    "phone",
    "provider",
    "serve",
]


@pytest.fixture
async def memory(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical") as service:
        yield service
