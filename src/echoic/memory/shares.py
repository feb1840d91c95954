"""Which deployments may read what is global in which others, as the operator set it. Reading only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from echoic.errors import InvalidInput, brief
from echoic.types import Memory, Scope


class Shares:
    """What each deployment reads besides its own: the global scopes of deployments named for it.

    Nothing by default. A share is not passed on: who reads a deployment does not read what that one reads.

    Args:
        given: by deployment, the ones whose global scope it reads, in the order in which they are asked.

    Raises:
        InvalidInput: a name is no deployment's, one is named twice, or a deployment is to read itself.
    """

    def __init__(self, given: Mapping[str, Sequence[str]] | None = None) -> None:
        self._scopes = {reader: _scopes(reader, named) for reader, named in (given or {}).items()}

    def of(self, scope: Scope) -> tuple[Scope, ...]:
        """The global scopes of other deployments that whoever asks in `scope` reads."""
        return self._scopes.get(scope.deployment, ())

    def places(self, scope: Scope) -> tuple[Scope, ...]:
        """Everything that is searched for `scope`: its own, what is global there, what is shared."""
        everyone = scope.everyone
        return (scope, everyone, *self._scopes.get(scope.deployment, ()))


def unsigned(memory: Memory) -> Memory:
    """`memory` as another deployment gets it: without who said it and in which turns."""
    return replace(memory, author=None, source=())


def shares_from(text: str) -> dict[str, tuple[str, ...]]:
    """What `Shares` takes, read from a setting: "acme=kb,more; shop=kb" lets acme read kb and more, shop kb.

    Names in which "=", "," or ";" stand cannot be written so; they can be given to `Shares` as they are.

    Raises:
        InvalidInput: it is not of that form, or names a reader twice.
    """
    given: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        reader, equals, named = (piece.strip() for piece in part.partition("="))
        if not equals or "=" in named:
            raise InvalidInput(
                f"shares must be READER=NAME,NAME;READER=NAME, not {brief(text)}: see {brief(part)}"
            )
        if reader in given:
            raise InvalidInput(
                f"shares name the reader {brief(reader)} twice: put what it reads behind one '='"
            )
        given[reader] = tuple(name.strip() for name in named.split(","))
    return given


def _scopes(reader: str, named: Sequence[str]) -> tuple[Scope, ...]:
    own = Scope(reader, None)
    if isinstance(named, str):
        raise InvalidInput(f"what {brief(reader)} reads must be several names, not one text: write (name,)")
    scopes = tuple(Scope(name, None) for name in named)
    if own in scopes:
        raise InvalidInput(f"deployment {brief(reader)} reads what is global in it anyway: leave it out")
    if len(set(scopes)) < len(scopes):
        raise InvalidInput(f"what {brief(reader)} reads names a deployment twice")
    return scopes
