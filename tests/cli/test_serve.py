from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

import forked


@pytest.fixture
def serve(tmp_path, environment):
    """Starts servers on free ports; the URL is read from stdout, when it can be used."""
    running = []

    def start(*words, **variables):
        server = forked.Popen(
            [sys.executable, "-m", "echoic.cli", "serve", "--port", "0", *words],
            cwd=tmp_path,
            env={**environment, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(server)
        return server, server.stdout.readline().strip()

    yield start
    for server in running:
        server.kill()
        server.communicate()


def ask(url, path, body=None, token=""):
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {token}"} if token else {})}
    request = urllib.request.Request(f"{url}{path}", data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.status, response.read()


def test_the_page_is_there_when_the_url_is_printed(serve):
    server, url = serve()
    assert url.startswith("http://127.0.0.1:")
    status, page = ask(url, "")
    assert status == 200
    assert b"<html" in page.lower()
    server.send_signal(signal.SIGINT)
    _, err = server.communicate(timeout=30)
    assert server.returncode == 0, err
    assert "Traceback" not in err


def test_the_server_and_the_command_line_share_one_memory(serve, echoic):
    server, url = serve()
    _, body = ask(url, "api/identity", {})
    identity = json.loads(body)
    token, user = identity["userCookie"], identity["user"]
    said = {
        "operation": "set",
        "key": "pet",
        "value": "my axolotl",
        "userCookie": token,
        "deploymentId": "default",
    }
    status, answer = ask(url, "api/memory", said)
    assert (status, json.loads(answer)["success"]) == (200, True)
    assert echoic("get", "pet", "--user", user).out == "my axolotl\n"
    server.terminate()
    server.communicate(timeout=30)
    assert server.returncode == 0


def test_json_prints_its_document_when_it_is_ready(serve):
    server, line = serve("--json")
    document = json.loads(line)
    assert (document["status"], document["command"]) == ("ok", "serve")
    assert ask(document["data"]["url"], "")[0] == 200
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=30)[0] == ""


def test_the_secret_is_made_once_beside_the_store_for_its_owner_alone(serve, tmp_path):
    for _ in range(2):
        server, _ = serve()
        server.terminate()
        server.communicate(timeout=30)
        path = tmp_path / "echoic.db-secret"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        made = path.read_text()
        assert len(made.strip()) >= 32
    path.chmod(0o644)
    server, line = serve()
    assert line == ""
    assert "chmod 600" in server.communicate(timeout=30)[1]
    assert server.returncode == 64
    assert path.read_text() == made


def test_an_identity_outlives_the_server_that_gave_it(serve):
    first, url = serve()
    token = json.loads(ask(url, "api/identity", {})[1])["userCookie"]
    first.terminate()
    first.communicate(timeout=30)
    _, url = serve()
    body = {"operation": "list", "userCookie": token, "deploymentId": "default"}
    assert ask(url, "api/memory", body)[0] == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example.com"])
def test_beyond_this_machine_it_listens_only_with_a_secret_of_ones_own(echoic, host, tmp_path):
    refused = echoic("serve", "--host", host, "--port", "0")
    assert (refused.code, refused.out) == (64, "")
    assert "ECHOIC_SECRET" in refused.err
    assert not (tmp_path / "echoic.db-secret").exists()


def test_a_short_secret_is_refused_and_not_repeated(echoic):
    refused = echoic("serve", "--port", "0", ECHOIC_SECRET="hunter2")
    assert refused.code == 64
    assert "hunter2" not in refused.err


STRONG = {
    "ECHOIC_SECRET": "of these tests, and long enough for HS256",
    "ECHOIC_OPERATOR_KEY": "the operator of these tests, and no other",
    "ECHOIC_AGENT_KEY": "the backend of these tests: for its own users",
    "ECHOIC_RETELL_KEY": "key_4f1b79c2d0e6",
    "ECHOIC_VAPI_SECRET": "hook_9d2e60b1a7c4",
    "ECHOIC_ELEVENLABS_SECRET": "wsec_71e0c9b25da8",
    "ECHOIC_TWILIO_AUTH_TOKEN": "e58f1c7ab29d04e36f1a80c5d7b23e94",
}


@pytest.mark.parametrize("weak", STRONG)
def test_beyond_this_machine_it_does_not_listen_with_a_secret_that_is_easy_to_guess(echoic, tmp_path, weak):
    command = ("phone", "serve", "--model", "test") if "TWILIO" in weak else ("serve",)
    refused = echoic(*command, "--host", "0.0.0.0", "--port", "0", **{**STRONG, weak: "abc" * 12})
    assert (refused.code, refused.out) == (64, "")
    assert f"{weak} " in refused.err
    assert "is easy to guess" in refused.err
    assert "abcabc" not in refused.err
    assert not (tmp_path / "echoic.db").exists()


def test_accounts_need_an_issuer_an_audience_and_keys(echoic, tmp_path):
    for given in ({"ECHOIC_JWT_ISSUER": "https://login.example.com"}, {"ECHOIC_JWKS": "jwks.json"}):
        refused = echoic("serve", "--port", "0", **given)
        assert refused.code == 64
        assert "--jwt-issuer, --jwt-audience and --jwks belong together" in refused.err
    assert not (tmp_path / "echoic.db").exists()


def test_a_token_of_ones_own_sign_in_acts_for_its_user(serve, tmp_path):
    key = ed25519.Ed25519PrivateKey.generate()
    published = {
        **json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key())),
        "kid": "a",
        "alg": "EdDSA",
    }
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [published]}))
    issuer = "https://login.example.com"
    _, url = serve(ECHOIC_JWT_ISSUER=issuer, ECHOIC_JWT_AUDIENCE="memory", ECHOIC_JWKS="jwks.json")
    claims = {"iss": issuer, "aud": "memory", "sub": "crm-7", "exp": int(time.time()) + 600}
    token = jwt.encode(claims, key, algorithm="EdDSA", headers={"kid": "a"})
    assert ask(url, "api/memories", token=token)[0] == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(url, "api/memories", token=jwt.encode({**claims, "aud": "x"}, key, "EdDSA", {"kid": "a"}))
    with refused.value as error:
        assert error.code == 401


def test_on_this_machine_it_warns_of_a_secret_that_is_easy_to_guess(serve):
    server, url = serve(ECHOIC_SECRET="s" * 40)
    assert ask(url, "api/identity", {})[0] == 200
    server.send_signal(signal.SIGINT)
    assert "ECHOIC_SECRET is easy to guess" in server.communicate(timeout=30)[1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--host", "a..b"), "not a host name"),
        (("--host", "a" * 100), "not a host name"),
        (("--allow-host", "*foo"), "without scheme and port"),
        (("--allow-host", "http://memory.example"), "without scheme and port"),
        (("--allow-origin", "app.example"), "https://app.example.com"),
    ],
)
def test_names_that_cannot_be_meant_are_refused_before_anything_is_opened(echoic, tmp_path, words, why):
    refused = echoic("serve", "--port", "0", *words, ECHOIC_SECRET="s" * 40)
    assert (refused.code, refused.out) == (64, "")
    assert why in refused.err
    assert "Traceback" not in refused.err
    assert not (tmp_path / "echoic.db").exists()


def test_a_secret_that_is_no_text_is_refused(environment, tmp_path):
    refused = forked.run(
        [sys.executable, "-m", "echoic.cli", "serve", "--port", "0"],
        cwd=tmp_path,
        env={**environment, "ECHOIC_SECRET": os.fsdecode(b"\xff" * 40)},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 64
    assert b"not UTF-8" in refused.stderr


def test_a_port_in_use_is_said_before_anything_is_opened(echoic, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        refused = echoic("serve", "--port", str(other.getsockname()[1]))
    assert refused.code == 64
    assert "--port 0 picks a free one" in refused.err
    assert not (tmp_path / "echoic.db").exists()


def test_a_store_that_cannot_be_opened_is_said_as_by_every_command(echoic, tmp_path):
    (tmp_path / "echoic.db").write_bytes(b"not a database at all" * 100)
    refused = echoic("serve", "--port", "0")
    assert (refused.code, refused.out) == (2, "")
    assert "left untouched" in refused.err


def test_what_one_user_may_keep_is_limited_and_may_be_set(serve):
    _, url = serve("--max-user-memories", "1", "--max-user-mb", "0", "--max-deployment-mb", "0")
    token = json.loads(ask(url, "api/identity", {})[1])["userCookie"]
    kept = {"operation": "set", "key": "pet", "value": "my axolotl"}
    assert ask(url, "api/memory", kept, token)[0] == 200
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(url, "api/memory", {**kept, "key": "home"}, token)
    with refused.value as error:
        assert error.code == 507


def test_a_proxy_that_is_no_address_is_refused_before_anything_is_opened(echoic, tmp_path):
    for command in (("serve",), ("phone", "serve", "--model", "test")):
        refused = echoic(
            *command, "--port", "0", "--trusted-proxies", "10.0.0.0/8, proxy",
            ECHOIC_SECRET="s" * 40, ECHOIC_TWILIO_AUTH_TOKEN="t" * 32,
        )  # fmt: skip
        assert refused.code == 64, refused.err
        assert "trusted_proxies" in refused.err
        assert not (tmp_path / "echoic.db").exists()


def test_the_urls_of_webhooks_are_printed_for_the_platforms_that_have_a_secret(serve):
    _, line = serve("--json", "--vapi-secret", "shared", ECHOIC_ELEVENLABS_SECRET="other")
    urls = json.loads(line)["data"]
    base = urls.pop("url")
    assert urls == {
        "vapi": f"{base}hooks/vapi",
        "elevenlabs_start": f"{base}hooks/elevenlabs/start",
        "elevenlabs_tools": f"{base}hooks/elevenlabs/tools/search_memory",
        "elevenlabs_ended": f"{base}hooks/elevenlabs/ended",
    }
    for path, status in (("hooks/vapi", 401), ("hooks/elevenlabs/ended", 401), ("hooks/retell", 404)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(base, path, {})
        with refused.value:
            assert refused.value.code == status


def test_the_urls_of_webhooks_are_those_that_others_reach(serve):
    server, line = serve("--retell-key", "shared", "--allow-host", "memory.example.com")
    assert line.startswith("http://127.0.0.1:")
    assert server.stdout.readline().strip() == "https://memory.example.com/hooks/retell"


@pytest.mark.parametrize("trust", ["a", "any"])
def test_the_number_of_an_incoming_call_is_believed_where_the_deployment_says_so(serve, trust):
    _, line = serve("--json", "--vapi-secret", "shared", "--phone-trust", trust)

    def tell(kind, **message):
        call = {"id": "v1", "type": "inboundPhoneCall", "customer": {"number": "+15550000001"}}
        body = json.dumps({"message": {"type": kind, "call": call, **message}}).encode()
        signature = hmac.new(b"shared", body, hashlib.sha256).hexdigest()
        headers = {"content-type": "application/json", "x-vapi-signature": f"sha256={signature}"}
        request = urllib.request.Request(f"{json.loads(line)['data']['url']}hooks/vapi", body, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read().decode()

    said = [
        {"role": "user", "message": "My boat in the harbour is called Nellie.", "time": 1_790_000_000_000}
    ]
    tell("end-of-call-report", artifact={"messages": said})
    asked = [{"role": "user", "content": "What is my boat in the harbour called?"}]
    assert ("Nellie" in tell("knowledge-base-request", messages=asked)) == (trust == "any")
