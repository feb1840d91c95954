from __future__ import annotations

import secrets
from random import Random

import pytest

import echoic
from echoic.checks import checked_secrets
from echoic.errors import InvalidInput
from echoic.server import (
    CellLimiter,
    IdentityTokens,
    Rate,
    ServerSettings,
    TokenRefused,
    create_app,
    uvicorn_config,
)

GUESSED = (
    "a" * 32,
    "abababababababababababababababab",
    "changeme" * 4,
    "changeme-changeme-changeme-changeme",
    "password123password123password123",
    "0123456789abcdef0123456789abcdef",
    "abcdefghijklmnopqrstuvwxyz0123456789",
    "ZYXWVUTSRQPONMLKJIHGFEDCBA987654321",
    "qwertyuiopasdfghjklzxcvbnm1234567890",
    "aaaabbbbccccddddeeeeffffgggghhhhiiii",
    "AaAaAaAaBbBbBbBbCcCcCcCcDdDdDdDd",
    "hunter2",
)


def test_a_weak_secret_is_refused():
    with pytest.raises(InvalidInput, match="secret has 5 bytes, 32 at least"):
        ServerSettings(secret="short")
    with pytest.raises(InvalidInput, match="operator_key"):
        ServerSettings(secret="x" * 32, operator_key="short")


@pytest.mark.parametrize("secret", GUESSED)
def test_a_secret_that_is_easy_to_guess_is_refused_beyond_loopback_and_warned_of_on_it(secret):
    for address in ("0.0.0.0", "::", "192.0.2.7", "memory.example", ""):
        with pytest.raises(InvalidInput, match="ECHOIC_SECRET is easy to guess") as refused:
            checked_secrets({"--vapi-secret": "", "ECHOIC_SECRET": secret}, address)
        assert secret not in str(refused.value)
    for address in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        (warning,) = checked_secrets({"ECHOIC_SECRET": secret}, address)
        assert warning.startswith("ECHOIC_SECRET is easy to guess")
        assert secret not in warning


def test_a_secret_that_was_made_at_random_is_taken_whatever_its_letters():
    random = Random(secrets.randbits(64))
    makers = (
        lambda: random.randbytes(16).hex(),  # Twilio's tokens
        lambda: random.randbytes(32).hex(),
        lambda: "".join(
            random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", k=43)
        ),
        lambda: "".join(random.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=32)),
    )
    made = {str(number): makers[number % 4]() for number in range(4000)}
    assert checked_secrets(made, "0.0.0.0") == []
    assert checked_secrets({"phrase": "correct horse battery staple, tuned on Sunday"}, "0.0.0.0") == []


@pytest.mark.parametrize(
    ("what", "weak"),
    [
        ("secret", {"secret": "x" * 32}),
        ("operator_key", {"operator_key": "x" * 32}),
        (
            "agent key 2",
            {"agent_keys": {"the backend of these tests, for its users": "default", "x" * 32: "default"}},
        ),
    ],
)
def test_a_server_does_not_listen_beyond_loopback_with_a_secret_that_is_easy_to_guess(what, weak):
    settings = ServerSettings(**{"secret": "of these tests, and long enough for HS256", **weak})
    app = create_app(echoic.open("memory://", embedder="lexical"), settings)
    with pytest.raises(InvalidInput, match=f"{what} is easy to guess"):
        uvicorn_config(app, host="0.0.0.0")
    uvicorn_config(app)


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
    tokens = IdentityTokens(ServerSettings(secret="s" * 40))
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
    with pytest.raises(InvalidInput, match="is not a rate"):
        Rate.of(rate)


@pytest.mark.parametrize("key", ["schlüssel" * 5, "k" * 40 + "\n", " " + "k" * 40])
def test_an_operator_key_that_no_header_brings_is_refused_and_not_repeated(key):
    with pytest.raises(InvalidInput, match="operator_key") as refused:
        ServerSettings(secret="x" * 32, operator_key=key)
    assert key.strip() not in str(refused.value)
    ServerSettings(secret="x" * 32, operator_key="words between which are spaces do well")


def test_a_secret_that_is_no_text_is_refused():
    with pytest.raises(InvalidInput, match="not UTF-8"):
        ServerSettings(secret="\udcff" * 40)


@pytest.mark.parametrize(
    "host", ["", "*example.com", "a.*.com", "http://memory.example", "memory.example:8300", "::1", "a b"]
)
def test_a_host_that_no_request_could_name_is_refused(host):
    with pytest.raises(InvalidInput, match="allowed_hosts"):
        ServerSettings(secret="x" * 32, allowed_hosts=(host,))


@pytest.mark.parametrize(
    "host", ["memory.example", "*.memory.example", "*", "[::1]", "[fe80::1%eth0]", "box_1"]
)
def test_a_host_that_requests_name_is_taken(host):
    assert ServerSettings(secret="x" * 32, allowed_hosts=(host,)).allowed_hosts == (host,)


@pytest.mark.parametrize(
    "origin",
    ["", "*", "app.example.com", "https://", "https://app.example/page", "https://a@b.example"],
)
def test_an_origin_that_no_browser_sends_is_refused(origin):
    with pytest.raises(InvalidInput, match="allowed_origins"):
        ServerSettings(secret="x" * 32, allowed_origins=(origin,))


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("https://App.Example/", "https://app.example"),
        ("https://app.example:443", "https://app.example"),
        ("http://app.example:443", "http://app.example:443"),
        ("http://[::1]:3000/", "http://[::1]:3000"),
        ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ("null", "null"),
    ],
)
def test_an_origin_is_taken_as_browsers_send_it(written, sent):
    assert ServerSettings(secret="x" * 32, allowed_origins=(written,)).allowed_origins == (sent,)


def test_no_deployment_of_echoics_own_is_served():
    assert not ServerSettings(secret=secrets.token_hex(16)).serves("echoic.encryption")
    with pytest.raises(InvalidInput, match="default_deployment"):
        ServerSettings(secret=secrets.token_hex(16), default_deployment="echoic.erasures")
