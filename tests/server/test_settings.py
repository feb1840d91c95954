from __future__ import annotations

import pytest

from echoic.errors import InvalidInput
from echoic.server import ServerSettings, TokenRefused, Tokens


def test_a_weak_secret_is_refused():
    with pytest.raises(InvalidInput, match="secret has 5 bytes, 32 at least"):
        ServerSettings(secret="short")
    with pytest.raises(InvalidInput, match="operator_key"):
        ServerSettings(secret="x" * 32, operator_key="short")


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(InvalidInput, match="not among the deployments served"):
        ServerSettings(secret="x" * 32, deployments=frozenset({"acme"}))
    with pytest.raises(InvalidInput, match="token_lifetime_s"):
        ServerSettings(secret="x" * 32, token_lifetime_s=0)


def test_settings_show_no_secret():
    settings = ServerSettings(secret="s" * 40, operator_key="k" * 40)
    assert "sss" not in repr(settings)
    assert "kkk" not in repr(settings)


def test_a_refusal_names_no_secret():
    tokens = Tokens(ServerSettings(secret="s" * 40))
    with pytest.raises(TokenRefused) as refused:
        tokens.verify("no token at all")
    assert "sss" not in str(refused.value)
    assert "no token at all" not in str(refused.value)
