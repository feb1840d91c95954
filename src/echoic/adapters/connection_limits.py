"""How much one address or one identity may take of a server, so that there is always room for the others.

Counted in this process. An address is what can be told apart on the network: an IPv4 address, or the /64 of
an IPv6 one, which is what a single customer gets.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, fields
from typing import Final

from echoic.errors import InvalidInput

HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""What has room of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is held at once.

    Raises:
        InvalidInput: a number below 1, or a proxy that is no address or network.
    """

    connections: int = 896
    """Sockets in all. When they are used up, idle ones go first: those of the address that has most."""
    connections_per_address: int = 384
    """Likewise of one address; a trusted proxy has as many as it likes."""
    health_connections: int = 16
    """Sockets beyond `connections`, on which health is asked for and nothing else is answered."""
    requests_per_address: int = 128
    """Being answered, event streams included; more are refused with 429."""
    requests_per_identity: int = 32
    """Likewise."""
    streams: int = 128
    """Pages that are told of memory as it forms. One more ends the oldest of the address that has most."""
    streams_per_address: int = 64
    streams_per_identity: int = 8
    """One more ends the oldest of the same identity, as for a page that was left open elsewhere."""
    calls_per_address: int = 20
    """Live calls, and tickets for them; one that nobody has used yet makes room for the next."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks ("10.0.0.0/8") whose X-Forwarded-For and X-Forwarded-Proto are believed."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 1:
                raise InvalidInput(f"{field.name} must be at least 1, not {value!r}")
        for proxy in self.trusted_proxies:
            _network(proxy)

    def trusts(self, host: str) -> bool:
        """Whether `host`, the other end of a socket, is one of the proxies."""
        address = _address(host)
        return address is not None and any(address in _network(proxy) for proxy in self.trusted_proxies)


def address_of(host: str | None) -> str:
    """What `host` is counted as."""
    address = _address(host or "")
    if address is None:
        return host or "unknown"
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _network(proxy: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(proxy, strict=False)
    except ValueError as error:
        raise InvalidInput(
            f"trusted_proxies takes addresses and networks, as in '10.0.0.0/8', not {proxy!r:.80}"
        ) from error


__all__ = ["HEALTH_PATHS", "Limits", "address_of"]
