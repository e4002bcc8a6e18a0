"""Where a run's connections may go: names by the allow-list, addresses by what they are.

The name is resolved here, each of its addresses is judged, and the connection is made to one that
was judged: a name that changes its mind in between (DNS rebinding) changes nothing.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from resolver.config.allowed_hosts import AllowList
from resolver.events.lifecycle import Egress

CONNECT_SECONDS: Final = 15.0
"""How long one connection may take to be made, over all addresses of its host."""

MOST_ADDRESSES: Final = 4
"""Addresses of one name that are tried."""

MOST_CONNECTIONS: Final = 20_000
"""Connections of one run; a run that asks for more gets no further one."""

EACH: Final = 100
"""Connections between two looks at the ledger that are told one by one."""

MOST_KINDS: Final = 100
"""Kinds of further connections that are told apart then; the rest is told as one."""

LONGEST_NAME: Final = 255

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host. Raises OSError."""

_NEVER: Final = tuple(map(ipaddress.ip_network, (
    # unspecified, link-local with the clouds' metadata, multicast, reserved and broadcast
    "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
    "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
    "::/128", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::/32", "fd20:ce::/32",
)))  # fmt: skip
"""Refused even where the operator named a private host."""

_NOT_PUBLIC: Final = tuple(map(ipaddress.ip_network, (
    "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
    "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    # Teredo, ORCHID and other protocols; documentation; 6to4
    "2001::/23", "2001:db8::/32", "3fff::/20", "2002::/16",
)))  # fmt: skip
"""Source: the IANA registries of special-purpose addresses."""

_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class EgressRefusal(Exception):
    """A connection that is not made. allowed: the host may be reached, but could not be.

    status: the HTTP status that a program inside is told. hint: what it is told beside the reason.
    """

    def __init__(
        self, reason: str, status: int = 403, allowed: bool = False, hint: str = ""
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.allowed = allowed
        self.hint = hint


@dataclass(frozen=True)
class EgressPolicy:
    """What a run may reach, and how much it may carry.

    max_bytes: of all connections together, both ways. resolve: names to addresses.
    """

    allowed: AllowList
    max_bytes: int
    resolve: Resolve

    def dial(self, host: str, port: int) -> socket.socket:
        """A connection to an allowed host. Raises Refusal."""
        try:
            rule = self.allowed.find(host, port)
        except ValueError as error:
            raise EgressRefusal(str(error), hint=f" (allowed: {self.allowed})") from error
        try:
            addresses = self.resolve(host.lower(), port)[:MOST_ADDRESSES]
        except (OSError, UnicodeError) as error:
            raise EgressRefusal(f"the name was not resolved: {error}", 502, allowed=True) from error
        if not addresses:
            raise EgressRefusal("the name has no address", 502, allowed=True)
        for address in addresses:
            problem = refusal_reason(address, rule.private)
            if problem or (not rule.private and _is_own(address)):
                raise EgressRefusal(f"the host's address {address} is {problem or 'this machine'}")
        return _connect(addresses, port)


def system_resolve(host: str, port: int) -> list[str]:
    """The addresses that this machine's resolver knows, each once, best first."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in found))


def refusal_reason(text: str, private: bool = False) -> str:
    """What forbids connecting to an address; "" when nothing does.

    private: the operator named this host, so that it may be in a network of theirs.
    """
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return "no address"
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id:
            return "link-local"
        inner = address.ipv4_mapped
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return refusal_reason(str(inner), private)
    if any(address in network for network in _NEVER):
        return "link-local, multicast, reserved or a cloud's metadata service"
    if private:
        return ""
    if any(address in network for network in _NOT_PUBLIC):
        return "not public"
    outside = isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_V6
    return "not public" if outside or not address.is_global else ""


def _is_own(address: str) -> bool:
    """Whether it is one of this machine's own addresses. Nothing is sent to find that out."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))
        except OSError:
            return False  # no way there, as the connection will find out
        return str(probe.getsockname()[0]) == address


def _connect(addresses: Sequence[str], port: int) -> socket.socket:
    deadline = time.monotonic() + CONNECT_SECONDS
    problem = ""
    for address in addresses:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            return socket.create_connection((address, port), timeout=left)
        except OSError as error:
            problem = str(error)
    late = time.monotonic() >= deadline or "timed out" in problem
    raise EgressRefusal(f"could not be reached: {problem}", 504 if late else 502, allowed=True)


class EgressLog:
    """The connections of one run, until somebody takes them. Safe for several threads."""

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._begun = 0
        self._each: list[Egress] = []
        self._more: dict[tuple[str, int, bool, str], Egress] = {}

    def begin(self) -> None:
        """Count a connection that is asked for. Raises Refusal when the run may have no more."""
        with self._lock:
            self._begun += 1
            if self._begun > MOST_CONNECTIONS:
                raise EgressRefusal(f"the run has used its {MOST_CONNECTIONS:,} connections", 429)
            if self._bytes >= self._max_bytes:
                raise EgressRefusal(self.spent, 429)

    @property
    def spent(self) -> str:
        """The words for a run that has carried all it may."""
        return f"the run has used its {self._max_bytes:,} bytes"

    def carry(self, count: int) -> bool:
        """Count bytes, either way; False when they are too many."""
        with self._lock:
            self._bytes += count
            return self._bytes <= self._max_bytes

    def note(self, connection: Egress) -> None:
        """Keep a connection that ended or was refused."""
        with self._lock:
            if len(self._each) < EACH:
                self._each.append(connection)
                return
            key = (connection.host, connection.port, connection.allowed, connection.reason)
            if key not in self._more and len(self._more) >= MOST_KINDS:
                key = ("(others)", 0, connection.allowed, "")
            before = self._more.get(key)
            if before is None:
                host, port, allowed, reason = key
                before = Egress(host=host, port=port, allowed=allowed, reason=reason, connections=0)
            self._more[key] = before.model_copy(update={
                "connections": before.connections + 1,
                "bytes_sent": before.bytes_sent + connection.bytes_sent,
                "bytes_received": before.bytes_received + connection.bytes_received,
                "seconds": round(before.seconds + connection.seconds, 3),
            })  # fmt: skip

    def take(self) -> list[Egress]:
        """What ended since the last call, as unnumbered events, bounded in number."""
        with self._lock:
            taken = [*self._each, *self._more.values()]
            self._each, self._more = [], {}
        return taken
