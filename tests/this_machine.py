"""No test talks to anything but this machine."""

from __future__ import annotations

import socket

import pytest

_connect = socket.socket.connect


@pytest.fixture(autouse=True)
def only_this_machine():
    # not by the fixture: it would be undone after what watches for blocking calls, and bring that back for good
    def connect(self, address):
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
        if host not in {"127.0.0.1", "::1", "localhost"}:
            raise AssertionError(f"a test tried to reach {address!r}")
        return _connect(self, address)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(socket.socket, "connect", connect)
        yield
