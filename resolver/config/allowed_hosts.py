"""Which hosts a run may reach: the presets, and the grammar of the operator's own entries.

Pure: a name and a port in, yes or no out. Addresses are judged where the connection is made
(runtime/egress.py). docs/egress.md lists the presets; a test holds it against this module.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

WEB_PORTS: Final = frozenset({443, 80})
"""The ports of an entry that names none."""

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
"""Names that stand for several hosts, each on WEB_PORTS."""

_LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")
_ENTRY: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True)
class HostRule:
    """One host, or all below one (`below`), on some ports.

    private: its address may be one of the operator's own network, which is refused otherwise.
    """

    host: str
    ports: frozenset[int]
    below: bool = False
    private: bool = False

    def covers(self, host: str) -> bool:
        """Whether the rule speaks of this host, on whatever port."""
        if self.below:
            return host.endswith(f".{self.host}") and not is_address(host)
        return host == self.host


class AllowList:
    """What a run may reach. entries: as the operator wrote them, see `parse`."""

    def __init__(self, entries: tuple[str, ...], rules: tuple[HostRule, ...]) -> None:
        self.entries = entries
        self._rules = rules

    @classmethod
    def parse(cls, entries: Iterable[str]) -> "AllowList":
        """From preset names, `host`, `*.host`, `host:port` and `private:host:port`.

        Raises ValueError that says what is wrong with which entry.
        """
        written = tuple(entry.strip().lower() for entry in entries)
        if NONE in written and len(written) > 1:
            raise ValueError("`none` stands alone: it means that nothing may be reached")
        return cls(tuple(e for e in written if e != NONE), tuple(_rules(written)))

    def __bool__(self) -> bool:
        """Whether anything at all may be reached."""
        return bool(self._rules)

    def __str__(self) -> str:
        return ", ".join(self.entries) or NONE

    @property
    def described(self) -> str:
        """The entries for a reader who does not know the presets; "" when there is none."""
        parts = [
            f"{entry} ({', '.join(PRESETS[entry])})" if entry in PRESETS else entry
            for entry in self.entries
        ]
        return ", ".join(part.removeprefix(PRIVATE) for part in parts)

    def find(self, host: str, port: int) -> HostRule:
        """The rule that allows it. Raises ValueError that says why none does.

        host: as a program inside asked for it.
        """
        name = host.lower()
        if not is_address(name) and not _NAME.fullmatch(name):
            raise ValueError("not a plain host name")
        covering = [rule for rule in self._rules if rule.covers(name)]
        for rule in covering:
            if port in rule.ports:
                return rule
        if covering:
            known = ", ".join(str(p) for p in sorted({p for r in covering for p in r.ports}))
            raise ValueError(f"port {port} of this host is not on the allow-list, only {known}")
        if is_address(name):
            raise ValueError("addresses are refused: the allow-list names hosts")
        raise ValueError("the host is not on the allow-list")


def is_address(host: str) -> bool:
    """Whether something takes it for an IP address: dotted, decimal, octal, hexadecimal, v6."""
    if ":" in host or host.startswith("["):
        return True
    # A name whose last label is a number is an address. Source: https://url.spec.whatwg.org
    return _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is not None


def _rules(entries: tuple[str, ...]) -> Iterable[HostRule]:
    for entry in entries:
        if entry in PRESETS:
            yield from (HostRule(host, WEB_PORTS) for host in PRESETS[entry])
        else:
            yield _rule(entry)


def _rule(entry: str) -> HostRule:
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
    below = host.startswith("*.")
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
    return HostRule(name, frozenset({port}) if port else WEB_PORTS, below)


def _is_plain_address(host: str) -> bool:
    try:
        return "%" not in host and str(ipaddress.ip_address(host)) == host
    except ValueError:
        return False
