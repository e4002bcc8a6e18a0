"""The hosts that a run may reach: the presets, and the grammar of the setting `egress`.

This module decides by host name and port only and does no I/O. The addresses that a name resolves
to are checked where the connection is made (runtime/egress.py). docs/how-to/egress.md lists the
presets; a test compares that list with this module.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

WEB_PORTS: Final = frozenset({443, 80})
"""Ports that an entry without a port stands for."""

NONE: Final = "none"
PRIVATE: Final = "private:"

PRESETS: Final[dict[str, tuple[str, ...]]] = {
    NONE: (),
    "packages": (
        # Python, Node
        "pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com",
        # Rust, Go, Ruby, PHP
        "index.crates.io", "static.crates.io", "crates.io", "proxy.golang.org", "sum.golang.org",
        "rubygems.org", "index.rubygems.org", "repo.packagist.org",
        # Java, .NET
        "repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org",
        "plugins-artifacts.gradle.org", "api.nuget.org",
        # Debian, Ubuntu, Alpine
        "deb.debian.org", "security.debian.org", "archive.ubuntu.com", "security.ubuntu.com",
        "ports.ubuntu.com", "dl-cdn.alpinelinux.org",
    ),
    "github": (
        "github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com",
        "objects.githubusercontent.com", "release-assets.githubusercontent.com",
        "github-releases.githubusercontent.com", "media.githubusercontent.com",
    ),
}  # fmt: skip
"""Preset names and the hosts they stand for, each on WEB_PORTS."""

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")
_ENTRY: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class HostRule:
    """A rule that allows one host, or all its subdomains, on a set of ports.

    below: the rule covers the subdomains of `host`, and not `host` itself.
    private: the host may have an address in a private network; such addresses are refused
    otherwise.
    """

    host: str
    ports: frozenset[int]
    below: bool = False
    private: bool = False

    def covers(self, host: str) -> bool:
        """Return True if the rule applies to `host`, on any port."""
        if self.below:
            return host.endswith(f".{self.host}") and not is_address(host)
        return host == self.host


class AllowList:
    """The hosts and ports that a run may reach.

    entries: the entries as the operator wrote them, see `parse`.
    rules: the parsed entries.
    """

    def __init__(self, entries: tuple[str, ...], rules: tuple[HostRule, ...]) -> None:
        self.entries = entries
        self._rules = rules

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "AllowList":
        """Parse entries: preset names, `host`, `*.host`, `host:port` and `private:host:port`.

        Raises ValueError that names the first invalid entry and its fault.
        """
        normalized = tuple(entry.strip().lower() for entry in entries)
        if NONE in normalized and len(normalized) > 1:
            raise ValueError("`none` stands alone: it means that nothing may be reached")
        return cls(tuple(e for e in normalized if e != NONE), tuple(_parse_rules(normalized)))

    def __bool__(self) -> bool:
        """Return True if at least one host may be reached."""
        return bool(self._rules)

    def __str__(self) -> str:
        return ", ".join(self.entries) or NONE

    @property
    def described(self) -> str:
        """The entries, with the hosts of each preset spelled out; "" if there are no entries."""
        parts = [
            f"{entry} ({', '.join(PRESETS[entry])})" if entry in PRESETS else entry
            for entry in self.entries
        ]
        return ", ".join(part.removeprefix(PRIVATE) for part in parts)

    def find(self, host: str, port: int) -> HostRule:
        """Return the rule that allows a connection to `host` and `port`.

        host: the host as the program in the sandbox requested it.

        Raises ValueError with the reason if no rule allows the connection.
        """
        name = host.lower()
        if not is_address(name) and not _NAME.fullmatch(name):
            raise ValueError("not a plain host name")
        covering = [rule for rule in self._rules if rule.covers(name)]
        for rule in covering:
            if port in rule.ports:
                return rule
        if covering:
            allowed_ports = ", ".join(
                str(p) for p in sorted({p for r in covering for p in r.ports})
            )
            raise ValueError(
                f"port {port} of this host is not on the allow-list, only {allowed_ports}"
            )
        if is_address(name):
            raise ValueError("addresses are refused: the allow-list names hosts")
        raise ValueError("the host is not on the allow-list")


def is_address(host: str) -> bool:
    """Return True if some program could parse `host` as an IP address.

    This includes IPv6 and the decimal, octal and hexadecimal notations of IPv4, so that none of
    them is taken for a name.
    """
    if ":" in host or host.startswith("["):
        return True
    # A host whose last label is a number is parsed as an IPv4 address:
    # https://url.spec.whatwg.org/#ends-in-a-number-checker
    return _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None


def _parse_rules(entries: tuple[str, ...]) -> Iterable[HostRule]:
    for entry in entries:
        if entry in PRESETS:
            yield from (HostRule(host, WEB_PORTS) for host in PRESETS[entry])
        else:
            yield _parse_rule(entry)


def _parse_rule(entry: str) -> HostRule:
    """Return the rule of an entry that is not a preset. Raises ValueError if it is invalid.

    Addresses are allowed only as `private:ADDRESS:PORT` and only in their canonical notation, so
    that an entry and a request can't mean the same address in different notations.
    """
    private = entry.startswith(PRIVATE)
    match = _ENTRY.fullmatch(entry.removeprefix(PRIVATE))
    if match is None:
        raise ValueError(f"{entry!r} is neither a host nor one of {', '.join(PRESETS)}")
    host, port = match["host"], int(match["port"]) if match["port"] else None
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"{entry!r}: there is no port {port}")
    if private:
        if port is None:
            raise ValueError(f"{entry!r}: a private host is named with its port")
        host = host[1:-1] if host.startswith("[") else host
        if not _NAME.fullmatch(host) and not _is_plain_address(host):
            raise ValueError(f"{entry!r} does not name one host")
        if is_address(host) and not _is_plain_address(host):
            raise ValueError(f"{entry!r}: write the address as four numbers, or as IPv6")
        return HostRule(host, frozenset({port}), private=True)
    is_wildcard = host.startswith("*.")
    name = host.removeprefix("*.")
    if is_address(name):
        raise ValueError(f"{entry!r} is an address: only `private:ADDRESS:PORT` may name one")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{entry!r} is neither a host nor one of {', '.join(PRESETS)}")
    if "." not in name:
        raise ValueError(
            f"{entry!r} is neither one of {', '.join(PRESETS)} nor a full host name; "
            "a host of your own network is `private:HOST:PORT`"
        )
    return HostRule(name, frozenset({port}) if port else WEB_PORTS, is_wildcard)


def _is_plain_address(host: str) -> bool:
    try:
        return "%" not in host and str(ipaddress.ip_address(host)) == host
    except ValueError:
        return False
