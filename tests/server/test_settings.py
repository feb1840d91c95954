from __future__ import annotations

import pytest

from echoic.errors import InvalidInput
from echoic.server import CellLimiter, Rate, ServerSettings, TokenRefused, Tokens


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


class Clock:
    """Goes on when it is told to."""

    now = 1000.0

    def __call__(self):
        return self.now


async def test_a_limiter_lets_a_rate_pass_and_says_how_long_to_wait():
    clock = Clock()
    limiter = CellLimiter(user=Rate.of("6/minute"), address=Rate.of("1/second"), clock=clock)
    assert [await limiter.retry_after_s("user:d/a") for _ in range(6)] == [None] * 6
    assert await limiter.retry_after_s("user:d/a") == pytest.approx(10)
    assert await limiter.retry_after_s("user:d/b") is None, "nobody waits for another"
    clock.now += 9.9
    assert await limiter.retry_after_s("user:d/a") == pytest.approx(0.1)
    clock.now += 0.1
    assert await limiter.retry_after_s("user:d/a") is None, "who waits as long as told is let pass"
    assert await limiter.retry_after_s("user:d/a") == pytest.approx(10)
    clock.now += 3600
    assert [await limiter.retry_after_s("user:d/a") for _ in range(7)][5:] == [None, pytest.approx(10)]
    assert [await limiter.retry_after_s("address:::1") for _ in range(2)] == [None, pytest.approx(1)]
    assert await limiter.retry_after_s("operator") is None


async def test_a_limiter_remembers_nobody_for_longer_than_it_must():
    clock = Clock()
    limiter = CellLimiter(address=Rate.of("60/minute"), clock=clock)
    for number in range(50_000):
        clock.now += 0.01
        await limiter.retry_after_s(f"address:{number}")
    assert len(limiter._due) <= 2048


@pytest.mark.parametrize("rate", ["", "often", "0/minute", "5", "5/day", "-1/second", "1e3/hour"])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(InvalidInput, match="is no rate"):
        Rate.of(rate)
