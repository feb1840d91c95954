"""Shared parts of the commands that run a server: the socket, the URL, stopping, and the secret."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import signal
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from echoic.cli.asyncio_runner import store_path
from echoic.cli.settings import Settings, variable_option
from echoic.errors import InvalidInput

if TYPE_CHECKING:
    import uvicorn

    from echoic.memory.guarded_store import Quota

    S = TypeVar("S", bound="uvicorn.Server")

proxies_option = variable_option(
    "trusted-proxies",
    metavar="ADDRESS,…",
    default="",
    callback=lambda _ctx, _option, value: tuple(filter(None, (one.strip() for one in value.split(",")))),
    help="Proxies, or their networks, whose X-Forwarded-For header is trusted: 10.0.0.0/8,::1.",
)


def listen_options(command: Any) -> Any:
    address = click.option(
        "--host",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="The address to listen on.",
    )
    port = click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8300,
        show_default=True,
        help="The port; 0 picks a free one.",
    )
    return address(port(command))


def quota_options(command: Any) -> Any:
    """Add the options for storage quotas to `command`; 0 means no limit."""
    for name, default, text in (
        ("max-deployment-mb", 4096, "Megabytes stored for all users together; 0 means no limit."),
        ("max-user-mb", 32, "Megabytes stored for one user; 0 means no limit."),
        ("max-user-memories", 10_000, "Memories of one user, earlier versions included; 0 means no limit."),
    ):
        command = click.option(
            f"--{name}", type=click.IntRange(0), default=default, show_default=True, metavar="N", help=text
        )(command)
    return command


def quota_of(given: Mapping[str, Any]) -> Quota:
    """The quota that the options of `quota_options` describe, by name among those `given`."""
    from echoic.memory.guarded_store import Quota

    return Quota(
        user_memories=given["max_user_memories"] or None,
        user_bytes=given["max_user_mb"] * 1_000_000 or None,
        deployment_bytes=given["max_deployment_mb"] * 1_000_000 or None,
    )


phone_trust_option = variable_option(
    "phone-trust",
    type=click.Choice(["a", "any"]),
    default="a",
    show_default=True,
    help="Which caller numbers are trusted: those with full carrier attestation (a), or any. A caller from "
    "an untrusted number is a stranger until they give a PIN or a code.",
)


STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


def bound(host: str, port: int) -> socket.socket:
    """A listening socket, so that a port in use is reported before anything is opened; raises
    `InvalidInput`.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(f"--host {host} is not an address of this machine: {error.strerror}") from error
    except UnicodeError as error:  # a name with an empty part, or one that is too long
        raise InvalidInput(f"--host {host!r:.80} is not a host name") from error
    # otherwise the port stays taken for minutes after a restart; on Windows two servers could share it
    if socket.SO_REUSEADDR and not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen()
    except OSError as error:
        listening.close()
        raise InvalidInput(
            f"port {port} of {host} cannot be used ({error.strerror}): is a server running there already? "
            "Choose another with --port; --port 0 picks a free one"
        ) from error
    return listening


def url_of(host: str, port: int) -> str:
    """The URL under which a browser on this machine reaches `host` and `port`."""
    shown = "127.0.0.1" if is_wildcard(host) else host
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"


def is_wildcard(host: str) -> bool:
    """Whether `host` means every address of this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False


def announced(server: type[S], config: uvicorn.Config, announce: Callable[[], None]) -> S:
    """A server of this class that calls `announce` once it is ready, and ends normally on a signal."""

    class Announced(server):  # type: ignore[misc, valid-type]  # a base that is an argument
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            announce()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # uvicorn raises the signal again after it has closed
            before = {which: signal.signal(which, self.handle_exit) for which in STOPPING}
            try:
                yield
            finally:
                for which, handler in before.items():
                    signal.signal(which, handler)

    return Announced(config)


SECRET = "ECHOIC_SECRET"  # noqa: S105 - the name of a variable
OPERATOR_KEY = "ECHOIC_OPERATOR_KEY"
AGENT_KEY = "ECHOIC_AGENT_KEY"


def given_secret() -> str | None:
    """The value of ECHOIC_SECRET; None if it is not set."""
    return os.environ.get(SECRET) or None


def operator_key() -> str | None:
    """The value of ECHOIC_OPERATOR_KEY; None disables the operator's routes."""
    return os.environ.get(OPERATOR_KEY) or None


def agent_keys() -> list[str]:
    """The keys in ECHOIC_AGENT_KEY, separated by commas."""
    return list(filter(None, os.environ.get(AGENT_KEY, "").split(",")))


def secret_file(settings: Settings) -> Path | None:
    """The file of a store's secret; None if the store is not a file on this machine."""
    path = store_path(settings)
    return None if path is None else path.with_name(f"{path.name}-secret")


def kept_secret(path: Path) -> str:
    """The secret in `path`, created if there is none. Two processes that start together get the same one.

    Raises:
        InvalidInput: the file cannot be read or created, other users can read it, or it is empty.
    """
    try:
        _make(path)
        if os.name != "nt" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InvalidInput(
                f"{path} can be read by other users, who could impersonate anyone: run `chmod 600 {path}`, "
                "or delete it to get a new one, which invalidates every identity"
            )
        secret = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the secret {path} cannot be read or created ({error}); set {SECRET}") from error
    if not secret:
        raise InvalidInput(f"the secret {path} is empty: delete it to get a new one")
    return secret


def _make(path: Path) -> None:
    """Create a secret in `path` atomically, unless there is one."""
    if path.exists():
        return
    scratch = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as stream:
            stream.write(f"{secrets.token_urlsafe(32)}\n")
            stream.flush()
            os.fsync(stream.fileno())
        _name(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)


def _name(scratch: Path, path: Path) -> None:
    try:
        os.link(scratch, path)  # unlike a rename, never replaces another process's secret
    except FileExistsError:
        return
    except OSError:  # the file system has no hard links
        scratch.replace(path)
