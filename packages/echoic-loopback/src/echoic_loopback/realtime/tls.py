"""A certificate for one run, and clients that trust it. For loopback only; nothing is written outside a
temporary folder."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LoopbackAuthority:
    """An authority that vouches for 127.0.0.1 and localhost, and lives as long as this process."""

    pem: bytes
    """Its certificate, for clients to trust."""
    server: ssl.SSLContext

    def client(self) -> ssl.SSLContext:
        """A context that trusts this authority alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.pem.decode("ascii"))
        return context

    @contextmanager
    def trusted(self) -> Iterator[Path]:
        """`SSL_CERT_FILE` names this authority: clients built inside trust it, and nothing else."""
        before = os.environ.get("SSL_CERT_FILE")
        with tempfile.TemporaryDirectory(prefix="loopback-tls-") as folder:
            path = Path(folder) / "authority.pem"
            path.write_bytes(self.pem)
            os.environ["SSL_CERT_FILE"] = str(path)
            try:
                yield path
            finally:
                if before is None:
                    del os.environ["SSL_CERT_FILE"]
                else:
                    os.environ["SSL_CERT_FILE"] = before


@lru_cache(maxsize=1)
def loopback_authority() -> LoopbackAuthority:
    """The authority of this process, made when first asked for. Needs `trustme`."""
    import trustme

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    return LoopbackAuthority(pem=authority.cert_pem.bytes(), server=context)


__all__ = ["LoopbackAuthority", "loopback_authority"]
