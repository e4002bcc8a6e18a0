"""Parses the head of an HTTP request to the proxy strictly.

It is pure: bytes in, ProxyRequest out. A request that can be read in two ways is refused, so that
the host is asked about exactly the target that the forwarded request goes to. Source: RFC 9112,
https://www.rfc-editor.org/rfc/rfc9112
"""

import re
from typing import Final, NamedTuple

MAX_HEAD_BYTES: Final = 64 * 1024
"""Maximum size of a request's head in bytes."""

MAX_HEADERS: Final = 200
"""Maximum number of header lines."""

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE: Final = re.compile(rf"({_TOKEN}) ([\x21-\x7e]+) (HTTP/1\.[01])")
_HEADER: Final = re.compile(rf"({_TOKEN}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_AUTHORITY: Final = re.compile(
    r"(?P<host>\[[0-9A-Za-z:.%]+\]|[^\[\]:@/?#\\]+)(?::(?P<port>\d{1,5}))?"
)
_TARGET: Final = re.compile(r"(?i:http)://(?P<authority>[^/?#]*)(?P<path>[^#]*)")
_LENGTH: Final = re.compile(r"\d{1,18}")

_HOP_BY_HOP: Final = frozenset({
    "host", "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade",
})  # fmt: skip
"""Header fields that concern the connection to the proxy, or that the proxy writes itself.

They are not forwarded; see https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1
"""


class BadRequest(Exception):
    """Raised if a request can't be served.

    status: HTTP status of the response.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class ProxyRequest(NamedTuple):
    """A request to the proxy.

    tunnel: True for CONNECT.
    head: bytes to send to the target first; b"" for CONNECT.
    body: number of bytes that follow the head; None if the body marks its own end (chunked,
        CONNECT).
    """

    host: str
    port: int
    tunnel: bool
    head: bytes = b""
    body: int | None = None


def read_head(head: bytes) -> ProxyRequest:
    """Return the request with this head, which includes the empty line. Raises BadRequest."""
    lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    start = _REQUEST_LINE.fullmatch(lines[0])
    if start is None:
        raise BadRequest(400, "not an HTTP/1 request line")
    headers = _headers(lines[1:])
    method, target, version = start.groups()
    if method.upper() == "CONNECT":
        if method != "CONNECT":
            raise BadRequest(400, "methods are in capitals")
        host, port = _authority(target, None)
        return ProxyRequest(host, port, tunnel=True)
    return _plain_request(method, target, version, headers)


def _plain_request(
    method: str, target: str, version: str, headers: list[tuple[str, str]]
) -> ProxyRequest:
    """Return a plain HTTP request, with the target in origin form and without hop-by-hop fields.

    See https://www.rfc-editor.org/rfc/rfc9112#section-3.2
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise BadRequest(400, "this is a proxy: it accepts CONNECT and http:// URLs")
    host, port = _authority(match["authority"], 80)
    path = match["path"]
    if not path.startswith("/"):
        path = f"/{path}"
    if path == "/" and method == "OPTIONS" and not match["path"]:
        path = "*"
    body = _body_length(headers)
    connection_fields = {
        field.strip().lower()
        for name, value in headers
        if name.lower() == "connection"
        for field in value.split(",")
    }
    dropped_fields = _HOP_BY_HOP | (connection_fields - {"content-length", "transfer-encoding"})
    # The request target counts: a Host header that names another host is not forwarded.
    lines = [f"{method} {path} {version}", f"Host: {match['authority']}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers if name.lower() not in dropped_fields]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1")
    return ProxyRequest(host, port, tunnel=False, head=head, body=body)


def _headers(lines: list[str]) -> list[tuple[str, str]]:
    if len(lines) > MAX_HEADERS:
        raise BadRequest(431, "too many header lines")
    headers = []
    for line in lines:
        match = _HEADER.fullmatch(line)
        if match is None:
            raise BadRequest(400, "a header line is not of the form `name: value`")
        headers.append((match[1], match[2].rstrip(" \t")))
    return headers


def _authority(text: str, default_port: int | None) -> tuple[str, int]:
    """Return host and port of a target. Raises BadRequest.

    default_port: the port if the target names none; None if it has to.
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        problem = "has user information" if "@" in text else "is not a host and a port"
        raise BadRequest(400, f"the target {problem}")
    port = int(match["port"]) if match["port"] else default_port
    if port is None or not 0 < port < 65536:
        raise BadRequest(400, "the target has no port")
    return match["host"].strip("[]"), port


def _body_length(headers: list[tuple[str, str]]) -> int | None:
    """Return the length of the body; None if it is chunked.

    A request with both lengths, or with several, is a request smuggling attempt or an error. See
    https://www.rfc-editor.org/rfc/rfc9112#section-6.3
    """
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
