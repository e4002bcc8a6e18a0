"""Git's smart protocol over HTTP (clone, fetch, push): the real `git http-backend` as WSGI.

Who may do what is asked of a `Gate`; tokens are read the way GitHub takes them: HTTP Basic
with any user name and the token as password, or `Authorization: Bearer|token`.
"""

import base64
import binascii
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.parts.wsgi import WsgiApp

REQUEST_PATH = re.compile(
    r"/(?P<repository>[^/]+/[^/]+?)(?:\.git)?"
    r"/(?P<rest>info/refs|git-upload-pack|git-receive-pack)"
)


@dataclass(frozen=True)
class GitAccess:
    """What a git client wants. `token` is "" when it sent none."""

    repository: str
    push: bool
    token: str


@dataclass(frozen=True)
class Refusal:
    """The answer when the gate says no; git prints `message` behind "remote: "."""

    status: str
    message: str


@dataclass(frozen=True)
class Grant:
    """The gate says yes. `environment` is what the repository's hooks get to see."""

    environment: Mapping[str, str] = field(default_factory=dict)


Gate = Callable[[GitAccess], Grant | Refusal]


def token_of(authorization: str) -> str:
    """The token in an Authorization header, "" when there is none or it can't be read."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return value.strip() if kind.lower() in ("bearer", "token") else ""


def token_gate(write: Iterable[str], read: Iterable[str] | None = None) -> Gate:
    """A gate over fixed sets of tokens. `read=None` lets anybody read."""
    writers = frozenset(write)
    readers = None if read is None else frozenset(read) | writers

    def gate(access: GitAccess) -> Grant | Refusal:
        allowed = writers if access.push else readers
        if allowed is None or access.token in allowed:
            return Grant()
        return Refusal("401 Unauthorized", "Invalid username or token.")

    return gate


def git_http_app(root: Path, gate: Gate, *, filters: bool = True) -> WsgiApp:
    """Serves ROOT/OWNER/NAME.git as /OWNER/NAME.git (and, as GitHub does, as /OWNER/NAME).

    filters: whether a client may ask for a partial clone, as it may on GitHub.
    """

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        match = REQUEST_PATH.fullmatch(environ["PATH_INFO"])
        if match is None:
            return _refuse(start_response, Refusal("404 Not Found", "Not Found"))
        service = environ.get("QUERY_STRING", "") + match["rest"]
        access = GitAccess(
            repository=match["repository"],
            push="git-receive-pack" in service,
            token=token_of(environ.get("HTTP_AUTHORIZATION", "")),
        )
        decision = gate(access)
        if isinstance(decision, Refusal):
            return _refuse(start_response, decision)
        path = f"/{match['repository']}.git/{match['rest']}"
        extra = {"GIT_CONFIG_VALUE_2": str(filters).lower(), **decision.environment}
        return _backend(root, path, environ, extra, start_response)

    return app


def _refuse(start_response: Callable[..., Any], refusal: Refusal) -> list[bytes]:
    body = refusal.message.encode()
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    if refusal.status.startswith("401"):
        headers.append(("WWW-Authenticate", 'Basic realm="GitHub"'))
    start_response(refusal.status, headers)
    return [body]


def _backend_environment(
    root: Path, path: str, environ: Mapping[str, Any], extra: Mapping[str, str]
) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        # The gate has decided already; http-backend would ask for REMOTE_USER otherwise.
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "http.receivepack",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_CONFIG_KEY_1": "safe.directory",
        "GIT_CONFIG_VALUE_1": "*",
        "GIT_CONFIG_KEY_2": "uploadpack.allowFilter",
        "PATH_INFO": path,
        "QUERY_STRING": environ.get("QUERY_STRING", ""),
        "REQUEST_METHOD": environ["REQUEST_METHOD"],
        "CONTENT_TYPE": environ.get("CONTENT_TYPE", ""),
        "CONTENT_LENGTH": environ.get("CONTENT_LENGTH", ""),
        "HTTP_CONTENT_ENCODING": environ.get("HTTP_CONTENT_ENCODING", ""),
        "GIT_PROTOCOL": environ.get("HTTP_GIT_PROTOCOL", ""),
        "REMOTE_ADDR": environ.get("REMOTE_ADDR", ""),
        **extra,
    }


def _backend(
    root: Path,
    path: str,
    environ: Mapping[str, Any],
    extra: Mapping[str, str],
    start_response: Callable[..., Any],
) -> Iterable[bytes]:
    child = subprocess.Popen(
        ["git", "http-backend"],
        env=_backend_environment(root, path, environ, extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdin is not None and child.stdout is not None
    feeder = threading.Thread(target=_feed, args=(environ["wsgi.input"], child.stdin), daemon=True)
    feeder.start()
    status, headers = _cgi_head(child.stdout)
    start_response(status, headers)
    return _Body(child, child.stdout, feeder)


def _feed(source: IO[bytes], sink: IO[bytes]) -> None:
    try:
        while chunk := source.read(1 << 16):
            sink.write(chunk)
        sink.close()
    except BrokenPipeError:
        pass  # The backend has answered without reading all of it, as it may.


def _cgi_head(stream: IO[bytes]) -> tuple[str, list[tuple[str, str]]]:
    status, headers = "200 OK", []
    for line in iter(stream.readline, b"\r\n"):
        if not line:
            return "500 Internal Server Error", [("Content-Length", "0")]
        name, _, value = line.decode("latin-1").strip().partition(": ")
        if name == "Status":
            status = value
        else:
            headers.append((name, value))
    return status, headers


class _Body:
    """The backend's output as it comes; `close` waits for its end, so that no child is left."""

    def __init__(
        self, child: "subprocess.Popen[bytes]", stream: IO[bytes], feeder: threading.Thread
    ) -> None:
        self._child = child
        self._stream = stream
        self._feeder = feeder

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._stream.read1(1 << 16):  # type: ignore[attr-defined]
            yield chunk
        # The reference is moved before the client sees the end of the answer.
        self._child.wait()

    def close(self) -> None:
        self._stream.close()
        self._feeder.join(timeout=10)
        self._child.wait()
