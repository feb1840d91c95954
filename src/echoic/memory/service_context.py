"""The shared state of one service and its handles. Created by the service alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from echoic.memory.assurance import Level, Visibility
from echoic.memory.consent import PendingTurns
from echoic.memory.hooks import Hooks, ToolUsed
from echoic.memory.recall import Recaller

if TYPE_CHECKING:
    from echoic.embedding.base import Embedder
    from echoic.memory.audit import AuditLog
    from echoic.memory.background import Background, Distiller
    from echoic.memory.compliance import Compliance
    from echoic.memory.guarded_store import Meter
    from echoic.memory.proposals import Judge
    from echoic.memory.sharing import Classifier
    from echoic.memory.telemetry import Telemetry
    from echoic.memory.write_filter import WriteFilter
    from echoic.stores.base import Store


GlobalWrites = Literal["auto", "propose"]
"""What happens to a caller's global memory.

- "propose": only its author sees it until an operator approves it.
- "auto": everyone sees it at once if it states nothing but the deployment's `global_kinds`; otherwise it
  is proposed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The state that the handles of one service share."""

    store: Store
    """Every write to it passes the write filter."""
    write_filter: WriteFilter
    embedder: Embedder
    recaller: Recaller
    distiller: Distiller
    background: Background
    classifier: Classifier | None
    hooks: Hooks
    telemetry: Telemetry
    global_kinds: Mapping[str, int]
    """The kinds of facts that become global without approval, and how many users must have said the same;
    empty if everything is proposed.
    """
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    assurance: Mapping[Level, Visibility]
    """What callers of each level may be told."""
    judge: Judge | None = None
    pending: PendingTurns = field(default_factory=PendingTurns)
    compliance: Compliance | None = None
    audit: AuditLog | None = None
    meter: Meter | None = None
    """Counts what `store` holds; None: nothing is limited."""

    def tell_tool_use(self, used: ToolUsed) -> None:
        """Call hooks with a model's use of a memory tool, with a marker in place of each secret."""
        if not self.hooks.wants(ToolUsed):
            return
        key = None if used.key is None else self.write_filter.text(used.scope, used.key)
        # a name may be all that shows that a value is secret: a PIN is four digits like others
        value = self.write_filter.value(used.scope, used.value, used.key or "")
        query = self.write_filter.value(used.scope, used.query)
        self.hooks.emit(replace(used, key=key, value=value, query=query))
