"""Commands that fail on demand, by the server's own fail point, so that the same tests run on a real one.

https://github.com/mongodb/mongo/wiki/The-%22failCommand%22-fail-point
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from echoic_loopback.mongodb.refusals import BAD_VALUE, RETRYABLE, TRANSIENT, Refusal, unknown_fields

_DATA = {"failCommands", "errorCode", "errorLabels", "closeConnection", "blockConnection", "blockTimeMS"}
_RETRYABLE_CODES = {6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}


class Dropped(Exception):
    """The connection is to be closed instead of an answer."""


class FailPoint:
    """`failCommand`: which commands fail, how often, and how."""

    def __init__(self) -> None:
        self._left: float = 0
        self._data: Mapping[str, Any] = {}

    def configure(self, command: Mapping[str, Any]) -> None:
        """Take the settings of a `configureFailPoint` command.

        Raises:
            Refusal: it is another fail point, or its settings are not known.
        """
        if command["configureFailPoint"] != "failCommand":
            raise Refusal(BAD_VALUE, f"unable to find fail point: {command['configureFailPoint']}")
        mode, data = command["mode"], command.get("data", {})
        unknown_fields(list(data), _DATA, "configureFailPoint.data")
        if isinstance(mode, Mapping) and set(mode) == {"times"}:
            self._left = int(mode["times"])
        elif mode in {"alwaysOn", "off"}:
            self._left = float("inf") if mode == "alwaysOn" else 0
        else:
            raise Refusal(BAD_VALUE, f"unknown fail point mode: {mode}")
        self._data = data

    async def strike(self, name: str, command: Mapping[str, Any]) -> None:
        """Fail `command` if it is to fail.

        Raises:
            Refusal: with the code and labels that were asked for.
            Dropped: the connection is to be closed.
        """
        if self._left <= 0 or name not in self._data.get("failCommands", ()):
            return
        self._left -= 1
        if self._data.get("blockConnection"):
            await asyncio.sleep(self._data.get("blockTimeMS", 0) / 1000)
        if self._data.get("closeConnection"):
            raise Dropped
        if "errorCode" in self._data:
            code = int(self._data["errorCode"])
            labels = self._data.get("errorLabels", _labels(code, command))
            raise Refusal(code, "Failing command via 'failCommand' failpoint", labels=labels)


def _labels(code: int, command: Mapping[str, Any]) -> list[str]:
    """What a server itself says of an error: whether the write or the transaction may be tried again."""
    if "autocommit" in command:
        return [TRANSIENT] if code in {112, 251} or code in _RETRYABLE_CODES else []
    return [RETRYABLE] if "txnNumber" in command and code in _RETRYABLE_CODES else []


__all__ = ["Dropped", "FailPoint"]
