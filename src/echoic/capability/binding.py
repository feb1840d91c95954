"""Who the caller is, from the dependencies of a run. Nobody gets in by being left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from echoic.errors import NotAllowed

Named = str | Callable[[Any], str | None]
"""The path of an attribute of the dependencies ("user_id", "caller.id"), or a function of them."""


def caller_of(deps: Any, named: Named) -> str:
    """The user a run is for.

    Raises:
        NotAllowed: the dependencies name nobody; the run must not begin.
    """
    user = named(deps) if callable(named) else _attribute(deps, named)
    if not isinstance(user, str) or not user.strip():
        where = "the function given" if callable(named) else f"deps.{named}"
        raise NotAllowed(
            f"no user is named for this run: {where} gave {type(user).__name__}. "
            "Pass deps that say who is being served; nobody's memory is not everybody's."
        )
    return user


def _attribute(deps: Any, path: str) -> Any:
    for name in path.split("."):
        deps = deps.get(name) if isinstance(deps, dict) else getattr(deps, name, None)
    return deps
