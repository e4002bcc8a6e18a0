"""Checks that the first bytes of a tunnel name the host that the tunnel was allowed for.

Many sites share an address: a TLS ClientHello or a Host header that names another of them would
reach a host that is not on the allow-list. The encrypted part is not inspected.
Sources: RFC 8446 (sections 4.1.2 and 5.1), RFC 6066 (section 3), RFC 9112 (section 3.2).
"""

import re
from typing import Final

MOST: Final = 64 * 1024
"""Largest size of a ClientHello or of a request's head, in bytes."""

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
_REQUEST: Final = re.compile(rb"[A-Z]{1,32} \S+ HTTP/1\.[01]\r?\n")
_MAYBE_REQUEST: Final = re.compile(rb"[A-Z]{1,32}(?: |\Z)")
_HOST: Final = re.compile(rb"\r?\nhost[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)


def check_first_bytes(said: bytes, host: str, port: int) -> str | None:
    """Return "" if the bytes fit the host, the reason if not, None if more bytes are needed.

    A protocol that is neither TLS nor HTTP/1 is accepted.
    """
    if not said:
        return None
    if said[0] == _HANDSHAKE:
        return _judge_hello(said, host)
    if _MAYBE_REQUEST.match(said):
        return _judge_request(said, host, port)
    return ""


def _judge_request(said: bytes, host: str, port: int) -> str | None:
    line, found, _ = said.partition(b"\n")
    if found and not _REQUEST.fullmatch(line + b"\n"):
        return ""
    end = said.find(b"\r\n\r\n")
    if end < 0:
        return None if len(said) < MOST else "the head of its HTTP request has no end"
    fitting = {
        host.lower(),
        f"{host.lower()}:{port}",
        f"[{host.lower()}]",
        f"[{host.lower()}]:{port}",
    }
    for name in _HOST.findall(said[: end + 2]):
        named = name.decode("latin-1").strip().lower()
        if named not in fitting:
            return f"its HTTP request names another host, {named[:100]!r}"
    return ""


def _judge_hello(said: bytes, host: str) -> str | None:
    try:
        hello = _hello(said)
        name = None if hello is None else _server_name(hello)
    except (IndexError, ValueError):
        return "its TLS hello can't be read"
    if hello is None:
        return None if len(said) < MOST else "its TLS hello has no end"
    if name is not None and name.lower() != host.lower():
        return f"its TLS hello names another host, {name[:100]!r}"
    return ""


def _hello(said: bytes) -> bytes | None:
    """Return the body of the ClientHello, assembled from its records; None while it is incomplete.

    Raises ValueError if the bytes are no ClientHello.
    """
    message = b""
    while len(said) >= 5:
        if said[0] != _HANDSHAKE:
            raise ValueError
        length = int.from_bytes(said[3:5])
        message += said[5 : 5 + length]
        said = said[5 + length :]
        if message and message[0] != _CLIENT_HELLO:
            raise ValueError
        if len(message) >= 4 and len(message) >= 4 + int.from_bytes(message[1:4]):
            return message[4 : 4 + int.from_bytes(message[1:4])]
    return None


def _server_name(hello: bytes) -> str | None:
    """Return the name in the server_name extension, or None if there is none. Raises ValueError."""
    rest = _Bytes(hello)
    rest.take(2 + 32)  # legacy_version, random
    for size in (1, 2, 1):  # legacy_session_id, cipher_suites, legacy_compression_methods
        rest.vector(size)
    if not rest.left:
        return None
    extensions = _Bytes(rest.vector(2))
    while extensions.left:
        kind = extensions.number(2)
        content = _Bytes(extensions.vector(2))
        if kind == _SERVER_NAME:
            names = _Bytes(content.vector(2))
            if names.number(1) != 0:
                raise ValueError
            return names.vector(2).decode("ascii")
    return None


class _Bytes:
    """Reads pieces from the front of a byte string; raises ValueError if it is too short."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, count: int) -> bytes:
        if count > len(self.left):
            raise ValueError
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> bytes:
        return self.take(self.number(size))
