"""Commands as the driver sent them, held against files of what they are to be. To write the files anew:

ECHOIC_WRITE_GOLDEN=1 python -m pytest tests/stores/test_mongodb_search.py -k golden
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bson import json_util
from pymongo import monitoring

FOLDER = Path(__file__).parent / "golden"
_PASSING = {"lsid", "$db", "$clusterTime", "$readPreference", "txnNumber", "maxTimeMS", "cursor"}


class Sent(monitoring.CommandListener):
    """The commands of all clients, while it is recording."""

    def __init__(self) -> None:
        self.recording = False
        self.commands: list[tuple[str, str]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if not self.recording:
            return
        kept = {name: value for name, value in event.command.items() if name not in _PASSING}
        self.commands.append((event.command_name, json_util.dumps(kept)))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass

    def named(self, *names: str) -> list[Any]:
        """The commands of these names, in order."""
        return [json.loads(text) for name, text in self.commands if name in names]


sent = Sent()
monitoring.register(sent)


def compare(name: str, found: Mapping[str, Any] | list[Any]) -> None:
    """Hold `found` against the file `name`, fields in order: BSON's order has a meaning."""
    path = FOLDER / f"{name}.json"
    shown = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("ECHOIC_WRITE_GOLDEN"):
        path.write_text(shown)
    assert shown == path.read_text(), (
        f"{path.name} says otherwise; if this is meant, write it anew and read it"
    )
