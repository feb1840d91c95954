"""Whatever arrives, the server answers as its schema says: every operation, from what OpenAPI says of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import echoic
import scale
from echoic.memory.user import UserMemory
from echoic.server import CellLimiter, Rate, create_app
from server.conftest import AGENT_KEY, OPERATOR_KEY, settings_of

pytestmark = pytest.mark.examples
ENDLESS = {"/api/events", "/api/health/events", "/api/watch"}
"""Answers as long as somebody listens."""
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(st.characters(), max_size=40)
    | st.sampled_from(
        ["", " ", "\0", "../..", "\ud800", "\u202e", "a" * 300, "1e999", "2026-02-30T99:00:00Z"]
    )
)
ANYTHING = st.recursive(
    VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@dataclass(frozen=True)
class Operation:
    path: str
    method: str
    says: dict[str, Any]

    @property
    def named(self) -> list[dict[str, Any]]:
        return self.says.get("parameters", [])


class Fuzzed:
    """A server, its schema, and somebody who may use it."""

    def __init__(
        self, client: httpx.AsyncClient, runner: asyncio.Runner, schema: dict[str, Any], token: str
    ) -> None:
        self.client, self.runner, self.schema, self.token = client, runner, schema, token
        self.operations = [
            Operation(path, method, says)
            for path, methods in schema["paths"].items()
            for method, says in methods.items()
            if path not in ENDLESS
        ]

    def of(self, schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
        """What a schema allows, and now and then anything else."""
        return st.one_of(self._allowed(schema, depth), self._allowed(schema, depth), ANYTHING)

    def _allowed(self, schema: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
        if "$ref" in schema:
            return self._allowed(
                self.schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]], depth
            )
        if depth > 4:
            return ANYTHING
        for many in ("anyOf", "oneOf", "allOf"):
            if many in schema:
                return st.one_of([self._allowed(one, depth + 1) for one in schema[many]])
        if "enum" in schema or "const" in schema:
            return st.sampled_from(schema.get("enum", [schema.get("const")]))
        match schema.get("type"):
            case "object":
                fields = {name: self.of(of, depth + 1) for name, of in schema.get("properties", {}).items()}
                must = {name: fields.pop(name) for name in schema.get("required", []) if name in fields}
                return st.fixed_dictionaries(must, optional=fields)
            case "array":
                return st.lists(self.of(schema.get("items", {}), depth + 1), max_size=3)
            case "string":
                return st.text(st.characters(), max_size=60) | st.sampled_from(
                    [
                        "call-1",
                        "pet",
                        "What is my pet called?",
                        "user",
                        "2026-03-01T10:00:00Z",
                        "Europe/Lisbon",
                    ]
                )
            case "integer":
                return st.integers(-2, 20) | st.integers()
            case "number":
                return st.floats(-1, 1000) | st.floats()
            case "boolean":
                return st.booleans()
            case "null":
                return st.none()
        return ANYTHING

    def requests(self) -> st.SearchStrategy[tuple[Operation, dict[str, Any], Any, str]]:
        def of(operation: Operation) -> st.SearchStrategy[Any]:
            parameters = st.fixed_dictionaries(
                {p["name"]: self.of(p["schema"]) for p in operation.named if p.get("required")},
                optional={p["name"]: self.of(p["schema"]) for p in operation.named if not p.get("required")},
            )
            content = operation.says.get("requestBody", {}).get("content", {})
            body = self.of(next(iter(content.values()))["schema"]) if content else st.none()
            return st.tuples(
                st.just(operation),
                parameters,
                body,
                st.sampled_from([self.token, self.token, OPERATOR_KEY, AGENT_KEY, "x"]),
            )

        return st.sampled_from(self.operations).flatmap(of)

    async def ask(
        self, operation: Operation, given: dict[str, Any], body: Any, bearer: str
    ) -> httpx.Response:
        places = {p["name"]: p["in"] for p in operation.named}
        path, query, headers = operation.path, [], [(b"authorization", f"Bearer {bearer}".encode())]
        for name, value in given.items():
            text = value if isinstance(value, str) else json.dumps(value)
            if places[name] == "path":
                path = path.replace(
                    f"{{{name}}}", quote(text.encode(errors="replace"), safe="") or "x"
                ).replace(f"{{{name}:path}}", quote(text.encode(errors="replace"), safe="") or "x")
            elif places[name] == "query":
                query.append((name, text.encode(errors="replace").decode()))
            else:
                with contextlib.suppress(UnicodeEncodeError):  # no header
                    headers.append((name.encode(), text.encode("latin-1").translate(None, b"\r\n\0").strip()))
        content = b"" if body is None else json.dumps(body).encode()
        if content:
            headers.append((b"content-type", b"application/json"))
        return await self.client.request(
            operation.method, path, params=query, headers=headers, content=content
        )


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Fuzzed]:
    memory = echoic.open(f"sqlite:///{tmp_path}/a.db", embedder="lexical")
    endless = Rate(requests=10**9, seconds=60)
    app = create_app(
        memory,
        settings_of(
            limiter=CellLimiter(
                user=endless, address=endless, operator=endless, agent=endless, refused=endless
            )
        ),
    )
    with asyncio.Runner() as runner, contextlib.ExitStack() as stack:
        lifespan = app.router.lifespan_context(app)
        runner.run(lifespan.__aenter__())
        stack.callback(lambda: runner.run(lifespan.__aexit__(None, None, None)))
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=30)
        stack.callback(lambda: runner.run(client.aclose()))
        told = runner.run(
            client.post("/v1/tokens", json={"user": "fuzz"}, headers={"Authorization": f"Bearer {AGENT_KEY}"})
        )
        schema = runner.run(client.get("/openapi.json")).json()
        yield Fuzzed(client, runner, schema, told.json()["token"])


def check(asked: Operation, answer: httpx.Response) -> None:
    where = f"{asked.method.upper()} {asked.path}: {answer.status_code} {answer.text[:300]!r}"
    assert answer.status_code < 500 or answer.status_code in {503, 507}, where
    assert str(answer.status_code) in asked.says["responses"] or answer.status_code == 404, where
    if answer.status_code >= 400 and asked.path != "/readyz":
        problem = answer.json()
        assert problem["success"] is False, where
        assert problem["code"], where
        assert len(problem["error"]) < 600, where


def ask_for_anything(fuzzed: Fuzzed, examples: int, phases: Sequence[Phase] = tuple(Phase)) -> Counter[str]:
    """Send so many requests, and check each answer; how many there were by path."""
    asked: Counter[str] = Counter()

    @seed(scale.SEED)
    @settings(
        max_examples=examples,
        phases=phases,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(fuzzed.requests())
    def ask(request: tuple[Operation, dict[str, Any], Any, str]) -> None:
        answer = fuzzed.runner.run(asyncio.wait_for(fuzzed.ask(*request), 20))
        asked[request[0].path] += 1
        check(request[0], answer)

    ask()
    return asked


def test_every_operation_answers_as_its_schema_says_whatever_it_is_sent(
    fuzzed: Fuzzed, tally: Callable[[str], None]
) -> None:
    asked = ask_for_anything(fuzzed, scale.many(scale.many(400), least=30))
    tally(f"{asked.total()} requests to {len(asked)} of {len({o.path for o in fuzzed.operations})} paths")


def test_a_planted_fault_is_found(fuzzed: Fuzzed, monkeypatch: pytest.MonkeyPatch) -> None:
    async def bare(_self: UserMemory, *_: object, **__: object) -> object:
        raise KeyError("planted")

    for verb in ("get", "recall", "remember", "conversations", "facts"):
        monkeypatch.setattr(UserMemory, verb, bare)
    # of all operations, requests to those where it is planted are too few to meet it with every seed
    fuzzed.operations = [each for each in fuzzed.operations if each.path == "/v1/memories"]
    with pytest.raises((AssertionError, ExceptionGroup), match="500"):
        ask_for_anything(fuzzed, 300, [Phase.generate])
