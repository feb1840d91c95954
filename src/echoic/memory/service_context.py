"""What the handles of one service share. Made by the service alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from echoic.errors import InvalidInput, brief
from echoic.memory.assurance import TABLE, Level, Sensitivity
from echoic.memory.hooks import Hooks, ToolUsed
from echoic.types import Memory, Scope

if TYPE_CHECKING:
    from echoic.embedding.base import Embedder
    from echoic.memory.audit import AuditLog
    from echoic.memory.background import Background
    from echoic.memory.compliance import Compliance
    from echoic.memory.distil import Distiller
    from echoic.memory.door import Door
    from echoic.memory.global_review import Judge
    from echoic.memory.recall import Recaller
    from echoic.memory.sharing import Classifier
    from echoic.memory.telemetry import Telemetry
    from echoic.stores.base import Store


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


GlobalWrites = Literal["auto", "propose"]
"""What a caller's global memory does. propose: its author sees it, until an operator approved it. auto: all
see it at once if it states nothing but the deployment's `global_kinds`; what states more is proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the handles of one service share."""

    store: Store
    """Everything that is written to it passes `door`."""
    door: Door
    embedder: Embedder
    recaller: Recaller
    distiller: Distiller
    background: Background
    classifier: Classifier | None
    hooks: Hooks
    telemetry: Telemetry
    global_kinds: frozenset[str]
    """What is global by itself; none where everything is proposed."""
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    shares: Shares = field(default_factory=Shares)
    assurance: Mapping[Level, Sensitivity] = field(default_factory=lambda: TABLE)
    """The most that somebody of each level is told."""
    judge: Judge | None = None
    compliance: Compliance | None = None
    audit: AuditLog | None = None

    def tell_tool_use(self, used: ToolUsed) -> None:
        """Tell hooks that a model used a tool of memory, with a marker in place of each secret."""
        if not self.hooks.wants(ToolUsed):
            return
        key = None if used.key is None else self.door.key(used.scope, used.key)
        # the name alone may tell that a value is secret: a PIN is four digits like others
        value = self.door.value(used.scope, used.value, used.key or "")
        query = self.door.value(used.scope, used.query)
        self.hooks.emit(replace(used, key=key, value=value, query=query))
