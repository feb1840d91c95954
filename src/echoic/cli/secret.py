"""The secret that signs identities, and the operator's key: from the environment, or made beside the store.

Whoever reads the secret can be anybody, so its file is for its owner alone.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from echoic.cli.running import store_path
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput

SECRET = "ECHOIC_SECRET"  # noqa: S105 - the name of a variable
OPERATOR_KEY = "ECHOIC_OPERATOR_KEY"


def given_secret() -> str | None:
    """What ECHOIC_SECRET holds; None where it is not set."""
    return os.environ.get(SECRET) or None


def operator_key() -> str | None:
    """What ECHOIC_OPERATOR_KEY holds; None: there are no operator's routes."""
    return os.environ.get(OPERATOR_KEY) or None


def secret_file(settings: Settings) -> Path | None:
    """Where the secret of a store lies; None where the store is no file of this machine."""
    path = store_path(settings)
    return None if path is None else path.with_name(f"{path.name}-secret")


def kept_secret(path: Path) -> str:
    """The secret in `path`, made now if there is none. Two processes that begin at once get the same.

    Raises:
        InvalidInput: it cannot be read or made, others may read it, or it is empty.
    """
    try:
        _make(path)
        if os.name != "nt" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InvalidInput(
                f"{path} may be read by others, who could then pass for anybody: run `chmod 600 {path}`, or "
                "delete it to have a new one made, which ends every identity given out"
            )
        secret = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the secret {path} cannot be read or made ({error}); set {SECRET}") from error
    if not secret:
        raise InvalidInput(f"the secret {path} is empty: delete it to have a new one made")
    return secret


def _make(path: Path) -> None:
    """A new secret in `path`, whole before it bears its name; nothing if one is there."""
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
    except OSError:  # a file system without links
        scratch.replace(path)


__all__ = ["OPERATOR_KEY", "SECRET", "given_secret", "kept_secret", "operator_key", "secret_file"]
