from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from echoic.embedding import Embedder, LexicalEmbedder, embedder_from
from echoic.embedding.hosted_model import HostedEmbedder
from echoic.embedding.local import LocalEmbedder
from echoic.embedding.remote import VoyageEmbedder
from echoic.errors import InvalidInput


@pytest.mark.parametrize(
    ("name", "kind", "model", "dimensions"),
    [
        ("local", LocalEmbedder, "local:all-MiniLM-L6-v2:fp32", 384),
        ("local:fp32", LocalEmbedder, "local:all-MiniLM-L6-v2:fp32", 384),
        ("local:int8", LocalEmbedder, "local:all-MiniLM-L6-v2:int8", 384),
        ("lexical", LexicalEmbedder, "lexical:2", 768),
        ("voyageai:voyage-3.5-lite", VoyageEmbedder, "voyageai:voyage-3.5-lite", 1024),
        ("openai:text-embedding-3-small", HostedEmbedder, "openai:text-embedding-3-small", 1536),
        ("google-gla:gemini-embedding-001", HostedEmbedder, "google:gemini-embedding-001", 3072),
        ("cohere:embed-v4.0", HostedEmbedder, "cohere:embed-v4.0", 1536),
    ],
)
def test_a_name_gives_its_embedder_and_so_does_what_a_store_records(
    name: str, kind: type, model: str, dimensions: int
) -> None:
    embedder = embedder_from(name)
    assert type(embedder) is kind
    assert isinstance(embedder, Embedder)
    assert (embedder.spec.model, embedder.spec.dimensions) == (model, dimensions)
    assert embedder_from(embedder.spec.model).spec == embedder.spec


@pytest.mark.parametrize(
    ("name", "options", "dimensions"),
    [
        ("lexical", {"dimensions": 512}, 512),
        ("voyageai:voyage-4", {"dimensions": 256, "api_key": "k", "timeout_s": 2.0}, 256),
        ("openai:text-embedding-3-large", {"dimensions": 1024, "attempts": 1, "backoff_s": 0.1}, 1024),
        ("local", {"model_dir": Path("/models"), "cache_dir": Path("/cache"), "threads": 2}, 384),
    ],
)
def test_options_reach_the_embedder(name: str, options: dict[str, Any], dimensions: int) -> None:
    assert embedder_from(name, **options).spec.dimensions == dimensions


@pytest.mark.parametrize(
    ("name", "plain", "dimensions"),
    [
        ("openai:my-model?dimensions=768", "openai:my-model", 768),
        ("openai:my-model?dimensions=768&base_url=http://127.0.0.1:1/v1", "openai:my-model", 768),
        ("voyageai:voyage-4?dimensions=256", "voyageai:voyage-4", 256),
        ("lexical?dimensions=512", "lexical:2", 512),
    ],
)
def test_a_name_may_carry_what_a_program_that_takes_only_a_name_must_say(
    name: str, plain: str, dimensions: int
) -> None:
    spec = embedder_from(name).spec
    assert (spec.model, spec.dimensions) == (plain, dimensions)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("openai:my-model", r'"openai:my-model\?dimensions=768"'),
        ("openai:my-model?", "nothing follows the question mark"),
        ("openai:my-model?dimensions=many", "whole number, not 'many'"),
        ("openai:my-model?dimensions=0", "at least 1"),
        ("openai:my-model?dimensions=", "each once"),
        ("openai:my-model?dimensions=1&dimensions=2", "each once"),
        ("openai:my-model?api_key=k", "a name may contain dimensions, base_url"),
        ("local?dimensions=3", "does not take dimensions"),
        ("nobody:model?dimensions=3", "unknown embedder"),
    ],
)
def test_what_a_name_cannot_carry_is_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        embedder_from(name)


def test_what_is_carried_and_passed_as_well_is_refused() -> None:
    with pytest.raises(InvalidInput, match="pass it once"):
        embedder_from("openai:my-model?dimensions=768", dimensions=512)


@pytest.mark.parametrize(
    "name", ["", "locale", "local:fp16", "lexical:99", "voyageai:", "nobody:model", "openai"]
)
def test_an_unknown_name_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(
        InvalidInput,
        match='known are "local", "local:int8", "local:<folder or hub id>", "lexical", "voyageai:',
    ) as raised:
        embedder_from(name)
    assert repr(name) in str(raised.value)


@pytest.mark.parametrize(
    ("name", "options", "foreign"),
    [
        ("lexical", {"api_key": "k"}, "does not take api_key; it takes dimensions"),
        ("local", {"dimensions": 128, "base_url": "http://h"}, "does not take base_url or dimensions"),
        ("openai:text-embedding-3-small", {"threads": 2}, "does not take threads"),
    ],
)
def test_an_option_that_does_not_belong_is_refused(name: str, options: dict[str, Any], foreign: str) -> None:
    with pytest.raises(InvalidInput, match=foreign):
        embedder_from(name, **options)


def test_an_embedder_is_handed_back_as_it_is_and_nothing_else_is_taken_for_one() -> None:
    embedder = LexicalEmbedder()
    assert embedder_from(embedder) is embedder
    with pytest.raises(InvalidInput, match="set dimensions on it"):
        embedder_from(embedder, dimensions=512)
    with pytest.raises(InvalidInput, match="not int"):
        embedder_from(7)  # type: ignore[arg-type]


def test_importing_and_naming_embedders_loads_no_heavy_package() -> None:
    program = (
        "import sys\n"
        "from echoic.embedding import embedder_from\n"
        "for name in ('local', 'lexical', 'voyageai:voyage-4', 'openai:text-embedding-3-small'):\n"
        "    embedder_from(name)\n"
        "heavy = {'onnxruntime', 'onnx', 'tokenizers', 'safetensors', 'huggingface_hub', 'pydantic_ai', "
        "'httpx2', 'openai'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
