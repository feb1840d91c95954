"""The driver's errors as ours, once. What a server says of a document is never repeated: it may quote it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dns.exception import DNSException
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    ConnectionFailure,
    DocumentTooLarge,
    ExecutionTimeout,
    InvalidOperation,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.server_description import ServerDescription
from pymongo.topology_description import TopologyDescription

from echoic.errors import EchoicError, InvalidInput, NotOpen, StoreFull, StoreUnavailable

_NO_SPACE = {14031}
_NOT_ALLOWED = {13, 18, 8000}
"""Unauthorized, AuthenticationFailed, and Atlas' own for both."""
_TOO_LARGE = {10334, 17419, 17420}
_TOO_LARGE_MESSAGE = "a record is larger or deeper than a MongoDB document may be, 16 MB: split it"


@contextmanager
def told(where: str) -> Iterator[None]:
    """Raise what the driver raises as ours.

    Args:
        where: which server and database, without user and password.

    Raises:
        StoreUnavailable: it could not be reached, or refused; likewise `StoreFull`.
        NotOpen: the client was closed meanwhile.
        InvalidInput: a record is larger than a document may be.
    """
    try:
        yield
    except EchoicError:
        raise
    except (PyMongoError, RecursionError) as error:
        # not chained: the text of a server's error may hold what was to be written
        raise ours(error, where) from None


def ours(error: BaseException, where: str) -> EchoicError:
    """The error of ours that says what `error` says."""
    if isinstance(error, OperationFailure) and not isinstance(error, ExecutionTimeout):
        return _refused(error, where)
    if isinstance(error, (DocumentTooLarge, RecursionError)):
        return InvalidInput(_TOO_LARGE_MESSAGE)
    if isinstance(error, InvalidOperation):
        return NotOpen(f"the store on {where} was closed")
    if isinstance(error, ConfigurationError):
        return InvalidInput(f"the MongoDB URL cannot be used ({type(error).__name__}): check its options")
    nobody = isinstance(error, ServerSelectionTimeoutError)
    late = isinstance(error, (ExecutionTimeout, NetworkTimeout)) or getattr(error, "timeout", False)
    what = (
        "did not answer in time" if late and not nobody else f"could not be reached ({type(error).__name__})"
    )
    return StoreUnavailable(f"MongoDB on {where} {what}. Retry.")


def not_found(
    error: PyMongoError, tried: TopologyDescription, now: TopologyDescription
) -> EchoicError | None:
    """What to say where no server of a URL could be asked: which they are, and why; None: something else.

    Args:
        error: what the driver raised.
        tried: the servers of the URL.
        now: what became of them.
    """
    servers = tried.server_descriptions()
    if isinstance(error.__cause__, DNSException):  # mongodb+srv: the servers stand in the DNS
        why = {host: f"{type(error.__cause__).__name__}: {error.__cause__}" for host, _ in servers}
    elif isinstance(error, ConnectionFailure):
        left = now.server_descriptions()
        why = {_address(one): _why(left.get(address)) for address, one in (servers | left).items()}
    else:
        return None
    told = ", ".join(f"{address} ({reason})" for address, reason in why.items())
    return StoreUnavailable(f"MongoDB could not be reached: {told}. Is it running, and is the URL right?")


def _address(server: ServerDescription) -> str:
    host, port = server.address
    return host if port is None else f"{host}:{port}"  # a socket has no port


def _why(server: ServerDescription | None) -> str:
    if server is None:
        return "not of the replica set that the URL names"
    if server.error is None:
        return (
            "no answer" if server.server_type_name == "Unknown" else f"no primary: {server.server_type_name}"
        )
    # what failed on our side of the line begins with the address; what a server said is not repeated
    address, _, failed = str(server.error).partition(": ")
    return failed.partition(" (configured")[0] if address == _address(server) else type(server.error).__name__


def _refused(error: OperationFailure, where: str) -> EchoicError:
    code, name = _code_of(error)
    if error.timeout:
        return StoreUnavailable(f"MongoDB on {where} did not answer in time. Retry.")
    if code in _NO_SPACE or "space quota" in str(error):
        return StoreFull(f"MongoDB on {where} has no space left: writes resume once there is some")
    if code in _NOT_ALLOWED:
        return StoreUnavailable(
            f"MongoDB on {where} does not allow it (code {code}): check user and password, and grant the "
            "role readWrite on the database"
        )
    if code in _TOO_LARGE:
        return InvalidInput(_TOO_LARGE_MESSAGE)
    return StoreUnavailable(f"MongoDB on {where} refused: code {code} {name}. Retry.")


def _code_of(error: OperationFailure) -> tuple[int | None, str]:
    details = error.details or {}
    if isinstance(error, BulkWriteError):
        first = (details.get("writeErrors") or details.get("writeConcernErrors") or [{}])[0]
        return first.get("code"), str(first.get("codeName", ""))
    return error.code, str(details.get("codeName", ""))


def is_duplicate(error: PyMongoError) -> bool:
    """Whether another document has the same unique entry: somebody else was first."""
    return isinstance(error, OperationFailure) and _code_of(error)[0] == 11000


__all__ = ["is_duplicate", "not_found", "ours", "told"]
