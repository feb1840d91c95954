"""Where a server of ours listens, how its URL is shown, and how it is told to stop. Not what it serves."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from echoic.errors import InvalidInput

if TYPE_CHECKING:
    import uvicorn

    S = TypeVar("S", bound="uvicorn.Server")

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


def bound(host: str, port: int) -> socket.socket:
    """A socket that has the address, so that a port in use is known before anything is opened.

    Raises:
        InvalidInput: the port is taken, or the address is not this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(f"--host {host} is no address of this machine: {error.strerror}") from error
    except UnicodeError as error:  # a name with an empty part, or one that is too long
        raise InvalidInput(f"--host {host!r:.80} is no name of a host") from error
    # else a port stays taken for minutes after a restart; on Windows it would let two servers share one
    if socket.SO_REUSEADDR and not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        raise InvalidInput(
            f"port {port} of {host} cannot be used ({error.strerror}): is a server running there already? "
            "Take another with --port, or --port 0 for any free one"
        ) from error
    return listening


def url_of(host: str, port: int) -> str:
    """Where a browser of this machine finds what listens on `host` and `port`."""
    shown = "127.0.0.1" if is_wildcard(host) else host
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def is_wildcard(host: str) -> bool:
    """Whether `host` means every address of this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False


def announced(server: type[S], config: uvicorn.Config, announce: Callable[[], None]) -> S:
    """A server that says when it can be used, and takes being told to stop for an end like any other.

    Args:
        server: of which kind.
        config: what it serves, and how.
        announce: called once it can be used.
    """

    class Announced(server):  # type: ignore[misc, valid-type]  # a base that is an argument
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn's own raises the signal once more when all is closed
            before = {which: signal.signal(which, self.handle_exit) for which in STOPPING}
            try:
                yield
            finally:
                for which, handler in before.items():
                    signal.signal(which, handler)

    return Announced(config)


__all__ = ["STOPPING", "announced", "bound", "is_wildcard", "url_of"]
