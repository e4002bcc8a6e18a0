"""Decides where the connections of a run may go: names by the allow-list, addresses by their kind.

The host resolves the name, checks each address and connects to one that it checked. A name that
resolves differently a moment later (DNS rebinding) therefore has no effect. Connections are added
to the event stream in the thread of the run.
"""

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from resolver.config.allowed_hosts import AllowList
from resolver.events.base import ObservationBase
from resolver.events.lifecycle import Egress
from resolver.events.log import Event
from resolver.events.stream import EventStream

CONNECT_SECONDS: Final = 15.0
"""Time limit for making one connection, over all addresses of its host."""

MAX_ADDRESSES: Final = 4
"""Number of addresses of one name that are tried."""

MAX_CONNECTIONS: Final = 20_000
"""Limit of the connections of one run; further ones are refused."""

MAX_SEPARATE_EVENTS: Final = 100
"""Number of connections that get an event of their own between two calls of `EgressLog.take`."""

MAX_GROUPS: Final = 100
"""Number of groups (host, port, allowed, reason) into which further connections are combined;
connections beyond those groups are combined into one event."""

MAX_NAME_CHARACTERS: Final = 255
"""Limit of a host's name in events, in characters (RFC 1035 section 2.3.4)."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
"""Return the addresses of a host name and port. Raises OSError."""

_FORBIDDEN_NETWORKS: Final = tuple(map(ipaddress.ip_network, (
    # Unspecified, link-local with the metadata services of clouds, multicast, reserved, broadcast.
    "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4",
    "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
    "::/128", "fe80::/10", "fec0::/10", "ff00::/8", "fd00:ec2::/32", "fd20:ce::/32",
)))  # fmt: skip
"""Networks that are refused even if the operator declared the host as private."""

_PRIVATE_NETWORKS: Final = tuple(map(ipaddress.ip_network, (
    "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
    "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    # Teredo, ORCHID and other protocols; documentation; 6to4.
    "2001::/23", "2001:db8::/32", "3fff::/20", "2002::/16",
)))  # fmt: skip
"""Networks that are not public. Source: the IANA special-purpose address registries,
https://www.iana.org/assignments/iana-ipv4-special-registry and
https://www.iana.org/assignments/iana-ipv6-special-registry."""

_GLOBAL_V6: Final = ipaddress.IPv6Network("2000::/3")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class EgressRefusal(Exception):
    """Raised if a connection is not made.

    reason: why, in one phrase.
    status: HTTP status that the proxy answers with in the sandbox.
    allowed: True if the host may be reached, but could not be.
    hint: text that the sandbox receives in addition to the reason.
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
    """The hosts that a run may connect to, and the number of bytes that it may transfer.

    max_bytes: limit for all connections together, in both directions.
    resolve: resolves a host name to addresses.
    """

    allowed: AllowList
    max_bytes: int
    resolve: Resolve

    def dial(self, host: str, port: int) -> socket.socket:
        """Return a connection to an allowed host. Raises EgressRefusal."""
        try:
            rule = self.allowed.find(host, port)
        except ValueError as error:
            raise EgressRefusal(str(error), hint=f" (allowed: {self.allowed})") from error
        try:
            addresses = self.resolve(host.lower(), port)[:MAX_ADDRESSES]
        except (OSError, UnicodeError) as error:
            raise EgressRefusal(f"the name was not resolved: {error}", 502, allowed=True) from error
        if not addresses:
            raise EgressRefusal("the name has no address", 502, allowed=True)
        for address in addresses:
            problem = refusal_reason(address, rule.private)
            if problem or (not rule.private and _is_own_address(address)):
                raise EgressRefusal(f"the host's address {address} is {problem or 'this machine'}")
        return _connect(addresses, port)


def system_resolve(host: str, port: int) -> list[str]:
    """Return the addresses from the resolver of this machine, without duplicates, best first."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(info[4][0]) for info in infos))


def refusal_reason(text: str, private: bool = False) -> str | None:
    """Return why connecting to an address is forbidden, or None if it is allowed.

    private: True if the operator declared this host as private, so that it may be in a network that
        is not public.
    """
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return "no address"
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id:
            return "link-local"
        # An IPv6 address can stand for an IPv4 one (RFC 4291 section 2.5.5.2, NAT64: RFC 6052). The
        # address that is finally reached is judged.
        embedded = address.ipv4_mapped
        if address in _NAT64:
            embedded = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return refusal_reason(str(embedded), private)
    if any(address in network for network in _FORBIDDEN_NETWORKS):
        return "link-local, multicast, reserved or a cloud's metadata service"
    if private:
        return None
    if any(address in network for network in _PRIVATE_NETWORKS):
        return "not public"
    is_outside_global = isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_V6
    return "not public" if is_outside_global or not address.is_global else None


def _is_own_address(address: str) -> bool:
    """Return True if the address is one of this machine's own.

    Connecting a UDP socket makes the kernel choose a route and source address without sending a
    packet: udp(7).
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))
        except OSError:
            return False  # no route: the connection itself will fail
        return str(probe.getsockname()[0]) == address


def _connect(addresses: Sequence[str], port: int) -> socket.socket:
    deadline = time.monotonic() + CONNECT_SECONDS
    problem = ""
    for address in addresses:
        seconds_left = deadline - time.monotonic()
        if seconds_left <= 0:
            break
        try:
            return socket.create_connection((address, port), timeout=seconds_left)
        except OSError as error:
            problem = str(error)
    timed_out = time.monotonic() >= deadline or "timed out" in problem
    raise EgressRefusal(f"could not be reached: {problem}", 504 if timed_out else 502, allowed=True)


class EgressLog:
    """The connections of one run, held until `take` is called. Safe for use by several threads.

    max_bytes: limit for all connections together, in both directions.
    """

    def __init__(self, max_bytes: int) -> None:
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._started_count = 0
        self._connections: list[Egress] = []
        self._groups: dict[tuple[str, int, bool, str], Egress] = {}

    def begin(self) -> None:
        """Count a requested connection.

        Raises EgressRefusal if the run has reached one of its limits.
        """
        with self._lock:
            self._started_count += 1
            if self._started_count > MAX_CONNECTIONS:
                raise EgressRefusal(f"the run has used its {MAX_CONNECTIONS:,} connections", 429)
            if self._bytes >= self._max_bytes:
                raise EgressRefusal(self.bytes_used_up, 429)

    @property
    def bytes_used_up(self) -> str:
        """Message for a run that has used all its bytes."""
        return f"the run has used its {self._max_bytes:,} bytes"

    def count_bytes(self, count: int) -> bool:
        """Count transferred bytes of either direction. Return False if the limit is exceeded."""
        with self._lock:
            self._bytes += count
            return self._bytes <= self._max_bytes

    def note(self, connection: Egress) -> None:
        """Record a connection that ended or was refused."""
        with self._lock:
            if len(self._connections) < MAX_SEPARATE_EVENTS:
                self._connections.append(connection)
                return
            key = (connection.host, connection.port, connection.allowed, connection.reason)
            if key not in self._groups and len(self._groups) >= MAX_GROUPS:
                key = ("(others)", 0, connection.allowed, "")
            group = self._groups.get(key)
            if group is None:
                host, port, allowed, reason = key
                group = Egress(host=host, port=port, allowed=allowed, reason=reason, connections=0)
            self._groups[key] = group.model_copy(update={
                "connections": group.connections + 1,
                "bytes_sent": group.bytes_sent + connection.bytes_sent,
                "bytes_received": group.bytes_received + connection.bytes_received,
                "seconds": round(group.seconds + connection.seconds, 3),
            })  # fmt: skip

    def take(self) -> list[Egress]:
        """Return what ended since the last call, as events without a number.

        Their count is limited: after MAX_SEPARATE_EVENTS connections the further ones are combined.
        """
        with self._lock:
            connections = [*self._connections, *self._groups.values()]
            self._connections, self._groups = [], {}
        return connections


@contextmanager
def record_connections(stream: EventStream, take: Callable[[], list[Egress]]) -> Iterator[None]:
    """Add the events from `take` after each observation, and once more at the end of the block."""

    def add() -> None:
        for connection in take():
            stream.add(connection)

    def add_after_observation(event: Event) -> None:
        if isinstance(event, ObservationBase):
            add()

    stream.subscribe("egress", add_after_observation)
    try:
        yield
    finally:
        add()
