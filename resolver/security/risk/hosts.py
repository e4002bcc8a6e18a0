"""Classifies network hosts: this machine, a cloud's metadata service, or another machine."""

import ipaddress
import re
from enum import Enum

_METADATA_NAMES = frozenset(
    {"metadata.google.internal", "metadata", "metadata.azure.internal", "instance-data"}
)
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "192.0.0.192",
        "168.63.129.16", "fd00:ec2::254", "fd20:ce::254",
    )
)  # fmt: skip
"""Addresses of the metadata services of cloud providers, which hand out credentials."""

_URL = re.compile(r"(?:[a-z][a-z0-9+.-]{0,20}:)?//([^/?#\s'\"]{1,300})", re.I)
_HOST = re.compile(r"(?:[^@/\s]{1,200}@)?(\[[0-9a-fA-F:.%]{2,60}\]|[^:/?#\s@\[\]]{1,253})")
_LOCAL_NAME = re.compile(
    r"(?:.*\.)?(?:localhost|local|test|internal\.test|example\.test)\.?$", re.I
)


_INSTALLERS = frozenset(
    {
        "sh.rustup.rs", "install.python-poetry.org", "deb.nodesource.com", "rpm.nodesource.com",
        "get.docker.com", "astral.sh", "get.pnpm.io", "bun.sh", "deno.land", "get.sdkman.io",
        "bootstrap.pypa.io", "install.julialang.org", "get-ghcup.haskell.org",
        "raw.githubusercontent.com/nvm-sh/nvm", "raw.githubusercontent.com/helm/helm",
        "raw.githubusercontent.com/golangci/golangci-lint",
    }
)  # fmt: skip
"""Hosts, or hosts with the first two folders of the path, of well-known installers."""


class NetworkHost(Enum):
    """Classes of hosts. The values are used in messages."""

    LOCAL = "this machine"
    METADATA = "the cloud's metadata service"
    ELSEWHERE = "another machine"
    UNKNOWN = "a machine that a variable names"


def network_host_of(text: str) -> str:
    """Return the host of a URL, or of an address without a scheme; "" if there is none."""
    match = _URL.match(text)
    authority = match[1] if match else text
    host = _HOST.match(authority[:600])
    return host[1].strip("[]").lower() if host else ""


def judge_host(text: str) -> NetworkHost:
    """Return the class of the host of a URL, or of a bare host."""
    host = network_host_of(text)
    if not host or "$" in host or "`" in host:
        return NetworkHost.UNKNOWN
    if host in _METADATA_NAMES:
        return NetworkHost.METADATA
    address = _address(host)
    if address is not None:
        if address in _METADATA:
            return NetworkHost.METADATA
        return (
            NetworkHost.LOCAL
            if address.is_loopback or address.is_unspecified
            else NetworkHost.ELSEWHERE
        )
    # a name without a dot is that of another container or service on the same network
    if "." not in host or _LOCAL_NAME.match(host):
        return NetworkHost.LOCAL
    return NetworkHost.ELSEWHERE


def is_installer(url: str) -> bool:
    """Return True if the URL is the documented origin of a well-known tool's installer.

    Such an installer is run without being read first; that is no more and no less risky than
    installing a package of the tool.
    """
    scheme, _, location = url.partition("://")
    host, *folders = location.partition("?")[0].split("/")
    is_known = host in _INSTALLERS or "/".join((host, *folders[:2])) in _INSTALLERS
    return scheme == "https" and is_known and ".." not in folders and "%" not in location


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address in any of the forms that programs accept: dotted, as one number, in
    hexadecimal or octal. None if the host is a name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _unusual_address(host)
    embedded = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return embedded or address


def _unusual_address(host: str) -> ipaddress.IPv4Address | None:
    """Parse the forms of `inet_aton`: https://man7.org/linux/man-pages/man3/inet_aton.3.html"""
    parts = host.split(".")
    if not 1 <= len(parts) <= 4:
        return None
    numbers: list[int] = []
    for part in parts:
        if not re.fullmatch(r"0x[0-9a-f]{1,8}|[0-9]{1,12}", part):
            return None
        is_octal = len(part) > 1 and part.startswith("0") and part.isdigit()
        base = 16 if part.startswith("0x") else 8 if is_octal and not set(part) & set("89") else 10
        numbers.append(int(part, base))
    value = numbers[-1]
    for index, number in enumerate(numbers[:-1]):
        value += number << (24 - 8 * index)
    return ipaddress.IPv4Address(value) if value < 2**32 else None
