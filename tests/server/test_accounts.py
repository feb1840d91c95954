"""An application's own JSON Web Tokens act for its users, and nobody else's do."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.utils import der_to_raw_signature, raw_to_der_signature

import echoic
from echoic.server import ServerSettings, create_app
from echoic.server.settings import AccountIssuer
from server.conftest import SECRET

pytestmark = pytest.mark.asyncio(loop_scope="module")
ISSUER, AUDIENCE = "https://login.example.com/", "echoic-memory"
CURVE = ec.SECP256R1()
ALGORITHMS = {
    "RS256": (jwt.algorithms.RSAAlgorithm, lambda: rsa.generate_private_key(65537, 2048)),
    "ES256": (jwt.algorithms.ECAlgorithm, lambda: ec.generate_private_key(ec.SECP256R1())),
    "EdDSA": (jwt.algorithms.OKPAlgorithm, ed25519.Ed25519PrivateKey.generate),
}


class Login:
    """Signs users in, and publishes its keys in a file."""

    def __init__(self, path, *names):
        self.path = path
        self.rotate(*(names or ALGORITHMS))

    @property
    def issuer(self):
        return AccountIssuer(issuer=ISSUER, audience=AUDIENCE, jwks_file=self.path)

    def rotate(self, *names, **more):
        """One key for each name, which begins with its algorithm."""
        self.keys = {name: ALGORITHMS[name[:5]][1]() for name in names}
        self.path.write_text(json.dumps({"keys": [self.public(name, **more) for name in names]}))

    def public(self, name, **more):
        published = json.loads(ALGORITHMS[name[:5]][0].to_jwk(self.keys[name].public_key()))
        return {**published, "kid": name, "alg": name[:5], **more}

    def token(self, name="RS256", *, headers=None, without=(), **changes):
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "crm-7", "exp": int(time.time()) + 600, **changes}
        kept = {claim: value for claim, value in claims.items() if claim not in without}
        return jwt.encode(kept, self.keys[name], algorithm=name[:5], headers={"kid": name, **(headers or {})})


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def login(tmp_path_factory):
    return Login(tmp_path_factory.mktemp("login") / "jwks.json")


async def status(server, token, path="/api/memories"):
    return (await server.client.get(path, headers=bearer(token))).status_code


async def test_its_token_opens_the_memory_of_its_subject_alone_at_the_level_of_an_account(start, login):
    async with start(url="memory://", accounts=login.issuer) as server:
        for name in ALGORITHMS:
            mine, other = login.token(name, sub=f"of {name}"), login.token(name, sub=f"other {name}")
            body = {"value": "diabetes, type 1"}  # health is open from the level of a proof on
            assert (await server.client.put("/v1/keys/illness", json=body, headers=bearer(mine))).is_success
            known = await server.client.get("/v1/keys/illness", headers=bearer(mine))
            assert "diabetes" in known.text
            assert "diabetes" not in (await server.client.get("/v1/keys/illness", headers=bearer(other))).text
            assert (await server.memory.user(f"of {name}").get("illness")).text == "diabetes, type 1"
        given = await server.identity()
        assert await status(server, given.token) == 200, "identities go on beside accounts"


async def test_what_is_noted_of_a_renewed_identity_is_removed_beside_accounts_too(start, login):
    """Whoever renews identities without end would fill the store."""
    async with start(url="memory://", accounts=login.issuer, token_lifetime_s=3600) as server:
        given = await server.identity()
        renewed = await server.client.post("/api/identity", headers=given.headers)
        latest = renewed.json()["userCookie"]
        assert await status(server, latest) == 200
        soon = datetime.now(UTC) + timedelta(hours=2)
        for ends in ("with its renewal", "revoked"):
            (noted,) = await revoked(server)
            assert datetime.fromisoformat(noted.data["until"]) < soon, ends
            await server.client.post("/api/identity/revoke", headers=bearer(latest))
        assert await status(server, latest) == 401


async def test_its_token_is_refused_in_the_cookie_of_a_page(start, login):
    """Whoever sets cookies for the host would have the page keep what is said under a user of theirs."""
    async with start(url="memory://", accounts=login.issuer) as server:
        met = await server.client.post("/api/cookies", headers={"X-Echoic-Caller": "new"})
        caller = met.json()["caller"]
        server.client.cookies.clear()
        cookie = f"echoic_{caller}={login.token(sub='eve')}"
        headers = {"X-Echoic-Caller": caller, "Cookie": cookie}
        assert (await server.client.get("/api/access", headers=headers)).status_code == 401
        renewed = await server.client.post("/api/identity", headers=bearer(login.token()))
        assert (renewed.status_code, renewed.json()["code"]) == (403, "not_renewable")
        assert (await server.client.get("/api/proposals", headers=bearer(login.token()))).status_code == 401


async def test_a_token_that_is_forged_expired_or_for_somebody_else_is_refused(start, login, tmp_path):
    stranger = Login(tmp_path / "others.json")
    public = login.keys["RS256"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "crm-7", "exp": int(time.time()) + 600}
    hmac_key = jwt.utils.base64url_encode(public)
    head = jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"RS256"}')
    body = jwt.utils.base64url_encode(json.dumps(claims).encode())
    confused = jwt.get_algorithm_by_name("HS256").sign(head + b"." + body, public)
    bad = {
        "unsigned": jwt.encode(claims, None, algorithm="none", headers={"kid": "RS256"}),
        "signed with the public key": b".".join((head, body, jwt.utils.base64url_encode(confused))).decode(),
        "signed with the encoded public key": jwt.encode(claims, hmac_key, algorithm="HS256"),
        "signed with this server's secret": jwt.encode(claims, SECRET, algorithm="HS256"),
        "another algorithm of the same key": jwt.encode(
            claims, login.keys["RS256"], algorithm="RS512", headers={"kid": "RS256"}
        ),
        "signed with another algorithm's key": login.token("ES256", headers={"kid": "RS256"}),
        "signed by a stranger": stranger.token(),
        "an unknown key": login.token(headers={"kid": "RS256-2"}),
        "no key named": login.token(headers={"kid": ""}),
        "another issuer": login.token(iss="https://login.example.org/"),
        "the issuer's prefix": login.token(iss=ISSUER[:-1]),
        "no issuer": login.token(without=["iss"]),
        "another audience": login.token(aud="echoic"),
        "no audience": login.token(without=["aud"]),
        "expired": login.token(exp=int(time.time()) - 5),
        "no expiry": login.token(without=["exp"]),
        "an expiry that is no time": login.token(exp="never"),
        "an expiry after all time": login.token(exp=10**18),
        "not good yet": login.token(nbf=int(time.time()) + 600),
        "issued later": login.token(iat=int(time.time()) + 600),
        "good from no time on": login.token(nbf="soon"),
        "issued at no time": login.token(iat=[1]),
        "another deployment": login.token(deployment="acme"),
        "another deployment, as the API calls it": login.token(deploymentId="acme"),
        "a list of deployments": login.token(deployment=["default", "acme"]),
        "no subject": login.token(without=["sub"]),
        "an empty subject": login.token(sub=""),
        "a blank subject": login.token(sub="  "),
        "a subject with a line break": login.token(sub="crm-7\nadmin"),
        "a subject with a NUL": login.token(sub="crm-7\0"),
        "a subject that turns its text round": login.token(sub="crm\u202e-7"),
        "a subject of 300 characters": login.token(sub="a" * 300),
        "an id of 300 characters": login.token(jti="a" * 300),
        "damaged": login.token()[:-6] + "AAAAAA",
    }
    async with start(url="memory://", accounts=login.issuer) as server:
        found = {why: await status(server, token) for why, token in bad.items()}
        assert found == dict.fromkeys(bad, 401)
        for method, path in (("POST", "/api/identity"), ("GET", "/v1/memories"), ("POST", "/v1/forget")):
            answer = await server.client.request(method, path, headers=bearer(bad["another issuer"]))
            assert answer.status_code == 401
        for good in (login.token(), login.token(deployment="default"), login.token(aud=["x", AUDIENCE])):
            assert await status(server, good) == 200


async def test_a_token_of_an_issuer_whose_clock_is_a_moment_ahead_is_taken(start, login):
    async with start(url="memory://", accounts=login.issuer) as server:
        for name in ("iat", "nbf"):
            assert await status(server, login.token(**{name: time.time() + 20})) == 200, name


async def test_a_token_for_another_deployment_than_the_body_names_is_refused(start, login):
    async with start(url="memory://", accounts=login.issuer) as server:
        body = {"operation": "list", "userCookie": login.token()}
        for deployment, expected in (("default", 200), ("acme", 401)):
            answer = await server.client.post("/api/memory", json={**body, "deploymentId": deployment})
            assert answer.status_code == expected


async def test_without_accounts_no_such_token_is_taken(server, login):
    assert await status(server, login.token()) == 401


async def test_a_key_counts_as_soon_as_it_is_in_the_file_and_ends_when_it_is_taken_out(start, tmp_path):
    login = Login(tmp_path / "jwks.json", "RS256-old")
    async with start(url="memory://", accounts=login.issuer) as server:
        before = login.token("RS256-old")
        assert await status(server, before) == 200
        login.rotate("RS256-new")
        assert await status(server, before) == 401, (
            "a key that leaked is taken out, and nobody names a new one"
        )
        assert await status(server, login.token("RS256-new")) == 200
        good = login.path.read_text()
        login.path.write_text(good[:40])
        assert await status(server, login.token("RS256-new")) == 401
        login.path.unlink()
        assert await status(server, login.token("RS256-new")) == 401
        login.path.write_text(good)
        assert await status(server, login.token("RS256-new")) == 200


async def test_a_revoked_token_stays_refused_for_as_long_as_it_would_have_been_good(start, login, operator):
    async with start(url="memory://", accounts=login.issuer, token_lifetime_s=1) as server:
        for named in ({"jti": "of-a-lost-telephone"}, {}):
            token = login.token(**named, sub=f"user {len(named)}")
            assert await status(server, token) == 200
            if named:
                path = f"/api/tokens/{named['jti']}/revoke"
                await server.client.post(path, headers=operator)
            else:
                await server.client.post("/api/identity/revoke", headers=bearer(token))
            (ends,) = {r.data["until"] for r in await revoked(server)}
            assert ends.startswith("9999"), "an issuer says how long its tokens are good, and may say more"
            assert await status(server, token) == 401


async def test_a_revoked_token_without_an_id_is_refused_however_its_signature_is_written(start, login):
    async with start(url="memory://", accounts=login.issuer) as server:
        for name in ("ES256", "RS256"):
            token = login.token(name, sub=f"of {name}")
            await server.client.post("/api/identity/revoke", headers=bearer(token))
            spellings = [token, token + "=="]
            if name == "ES256":
                head, _, signature = token.rpartition(".")
                r, s = decode_dss_signature(
                    raw_to_der_signature(jwt.utils.base64url_decode(signature), CURVE)
                )
                order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
                other = der_to_raw_signature(encode_dss_signature(r, order - s), CURVE)
                spellings.append(f"{head}.{jwt.utils.base64url_encode(other).decode()}")
            assert [await status(server, one) for one in spellings] == [401] * len(spellings)


async def revoked(server):
    from echoic.memory.deployment_keys import REVOCATION
    from echoic.types import Scope

    return await server.memory._parts.store.scan(Scope("default", None), REVOCATION)


@pytest.mark.parametrize(
    "keys",
    [
        "",
        "[]",
        "{}",
        '{"keys": []}',
        '{"keys": [{"kty": "oct", "k": "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4", "kid": "a", "alg": "HS256"}]}',
    ],
)
async def test_a_file_without_a_key_to_verify_with_is_refused_at_the_start(tmp_path, keys):
    path = tmp_path / "jwks.json"
    path.write_text(keys)
    settings = ServerSettings(
        secret=SECRET, accounts=AccountIssuer(issuer=ISSUER, audience=AUDIENCE, jwks_file=path)
    )
    with pytest.raises(echoic.InvalidInput, match=r"jwks\.json holds no"):
        create_app(echoic.open("memory://", embedder="lexical"), settings)


async def test_keys_for_encryption_and_private_keys_verify_nothing(tmp_path):
    login = Login(tmp_path / "jwks.json", "RS256")
    settings = ServerSettings(secret=SECRET, accounts=login.issuer)
    private = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(login.keys["RS256"]))
    for unfit in (login.public("RS256", use="enc"), {**private, "kid": "RS256", "alg": "RS256"}):
        login.path.write_text(json.dumps({"keys": [unfit]}))
        with pytest.raises(echoic.InvalidInput, match="holds no key to verify with"):
            create_app(echoic.open("memory://", embedder="lexical"), settings)


async def test_an_issuer_and_an_audience_are_needed(tmp_path):
    for names in ({"issuer": "", "audience": AUDIENCE}, {"issuer": ISSUER, "audience": " "}):
        with pytest.raises(echoic.InvalidInput, match="of account tokens is empty"):
            AccountIssuer(**names, jwks_file=tmp_path)
