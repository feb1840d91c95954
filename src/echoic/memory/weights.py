"""Weights of the ranking that somebody fitted to their own questions, read from what `echoic tune` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from echoic.errors import InvalidInput, brief
from echoic.ranking.fusion import FUSIONS, Fusion, Weights, blend

FORMAT = "echoic.weights"
VERSION = 1


def fusion_from(name: str) -> Fusion:
    """The fusion that `name` names: one of `FUSIONS`, or the blend with the weights of a file.

    Args:
        name: "blend", "rrf", "text", "vector", or the path of a JSON file that `echoic tune` wrote.

    Raises:
        InvalidInput: there is no such fusion or file, or the file holds something else.
    """
    if name in FUSIONS:
        return FUSIONS[name]
    if not name.endswith(".json"):
        raise InvalidInput(
            f"unknown fusion {name!r}: use {', '.join(FUSIONS)}, or a .json file that `echoic tune` wrote"
        )
    try:
        given = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the weights in {brief(name)} cannot be read: {error}") from error
    if not isinstance(given, dict) or (given.get("format"), given.get("version")) != (FORMAT, VERSION):
        raise InvalidInput(
            f"{brief(name)} holds no weights of version {VERSION}: write it with `echoic tune`"
        )
    broad, close = (_weights(given.get(part), f"{part} of {brief(name)}") for part in ("broad", "close"))
    return Fusion(partial(blend, broad=broad, close=close), FUSIONS["blend"].finding)


def _weights(given: Any, what: str) -> Weights:
    names = {field.name for field in fields(Weights)}
    if not isinstance(given, Mapping) or set(given) != names:
        raise InvalidInput(f"{what} must name exactly the weights {', '.join(sorted(names))}")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
            raise InvalidInput(f"the weight {name} in {what} is no finite number: {brief(value)}")
    return Weights(**given)


__all__ = ["FORMAT", "VERSION", "fusion_from"]
