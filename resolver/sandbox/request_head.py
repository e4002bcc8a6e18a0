"""What a program asks of the proxy: the head of one HTTP request, read strictly.

Pure: bytes in, a Request out. What can be read in two ways is refused, so that the host is asked
about the very target that the forwarded request goes to. Source: RFC 9112.
"""

import re
from dataclasses import dataclass
from typing import Final

MAX_HEAD: Final = 64 * 1024
"""Bytes of a request's head."""

MAX_HEADERS: Final = 200

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_START: Final = re.compile(rf"({_TOKEN}) ([\x21-\x7e]+) (HTTP/1\.[01])")
_HEADER: Final = re.compile(rf"({_TOKEN}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9A-Za-z:.%]+\]|[^\[\]:@/?#\\]+)(?::(?P<port>\d{1,5}))?"
)
_TARGET: Final = re.compile(r"(?i:http)://(?P<authority>[^/?#]*)(?P<path>[^#]*)")
_LENGTH: Final = re.compile(r"\d{1,18}")

_HOP_BY_HOP: Final = frozenset({
    "host", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade",
})  # fmt: skip


class BadRequest(Exception):
    """The request can't be served. status: of the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class ProxyRequest:
    """One request. head: what goes to the target first; b"" for CONNECT.

    body: bytes that follow the head; None when it says itself where it ends (chunked, CONNECT).
    """

    host: str
    port: int
    tunnel: bool
    head: bytes = b""
    body: int | None = None


def read_head(head: bytes) -> ProxyRequest:
    """The request of a head, its empty line included. Raises BadRequest."""
    lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    start = _START.fullmatch(lines[0])
    if start is None:
        raise BadRequest(400, "not an HTTP/1 request line")
    headers = _headers(lines[1:])
    method, target, version = start.groups()
    if method.upper() == "CONNECT":
        if method != "CONNECT":
            raise BadRequest(400, "methods are in capitals")
        host, port = _authority(target, None)
        return ProxyRequest(host, port, tunnel=True)
    return _forwarded(method, target, version, headers)


def _forwarded(
    method: str, target: str, version: str, headers: list[tuple[str, str]]
) -> ProxyRequest:
    match = _TARGET.fullmatch(target)
    if match is None:
        raise BadRequest(400, "this is a proxy: it takes CONNECT and http:// URLs")
    host, port = _authority(match["authority"], 80)
    path = match["path"]
    if not path.startswith("/"):
        path = f"/{path}"
    if path == "/" and method == "OPTIONS" and not match["path"]:
        path = "*"
    body = _body(headers)
    named = {
        word.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for word in value.split(",")
    }
    dropped = _HOP_BY_HOP | (named - {"content-length", "transfer-encoding"})
    # The target decides: a Host header that says something else is not passed on.
    lines = [f"{method} {path} {version}", f"Host: {match['authority']}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers if name.lower() not in dropped]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return ProxyRequest(host, port, tunnel=False, head=head, body=body)


def _headers(lines: list[str]) -> list[tuple[str, str]]:
    if len(lines) > MAX_HEADERS:
        raise BadRequest(431, "too many header lines")
    found = []
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise BadRequest(400, "a header line is not of the form `name: value`")
        found.append((match[1], match[2].rstrip(" \t")))
    return found


def _authority(text: str, default: int | None) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        what = "has user information" if "@" in text else "is not a host and a port"
        raise BadRequest(400, f"the target {what}")
    port = int(match["port"]) if match["port"] else default
    if port is None or not 0 < port < 65536:
        raise BadRequest(400, "the target has no port")
    return match["host"].strip("[]"), port


def _body(headers: list[tuple[str, str]]) -> int | None:
    lengths = {value for name, value in headers if name.lower() == "content-length"}
    codings = [value for name, value in headers if name.lower() == "transfer-encoding"]
    if codings:
        if lengths or [value.lower() for value in codings] != ["chunked"]:
            raise BadRequest(400, "the request's body has no single length")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.fullmatch(next(iter(lengths))):
        raise BadRequest(400, "the request's body has no single length")
    return int(lengths.pop())
