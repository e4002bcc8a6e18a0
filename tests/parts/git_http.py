"""Git's smart protocol over HTTP (clone, fetch, push): real git behind a WSGI application.

Who may do what is asked of a `Gate`; tokens are read the way GitHub takes them: HTTP Basic
with any user name and the token as password, or `Authorization: Bearer|token`.
"""

import base64
import binascii
import gzip
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
    """The access that a git client asks for. `token` is "" when it sent none."""

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


def git_http_app(root: Path, gate: Gate) -> WsgiApp:
    """Serves ROOT/OWNER/NAME.git as /OWNER/NAME.git (and, as GitHub does, as /OWNER/NAME)."""

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
        extra = decision.environment
        folder = root / f"{match['repository']}.git"
        return _serve_git(folder, match["rest"], environ, extra, start_response)

    return app


def _refuse(start_response: Callable[..., Any], refusal: Refusal) -> list[bytes]:
    body = refusal.message.encode()
    headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
    if refusal.status.startswith("401"):
        headers.append(("WWW-Authenticate", 'Basic realm="GitHub"'))
    start_response(refusal.status, headers)
    return [body]


def _serve_git(
    repository: Path,
    request: str,
    environ: Mapping[str, Any],
    extra: Mapping[str, str],
    start_response: Callable[..., Any],
) -> Iterable[bytes]:
    """What `git http-backend` does, without its two processes for each request: see
    https://git-scm.com/docs/http-protocol."""
    listing = request == "info/refs"
    service = environ["QUERY_STRING"].partition("service=")[2] if listing else request
    known = service in ("git-upload-pack", "git-receive-pack")
    if not known or not (repository / "HEAD").is_file():
        return _refuse(start_response, Refusal("404 Not Found", "Not Found"))
    mode = "--http-backend-info-refs" if listing else "--stateless-rpc"
    child = subprocess.Popen(
        ["git", service.removeprefix("git-"), mode, "."],
        cwd=repository,
        env=_git_environment(environ, extra),
        stdin=subprocess.DEVNULL if listing else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    feeder = None
    if child.stdin is not None:
        source = environ["wsgi.input"]
        if environ.get("HTTP_CONTENT_ENCODING") in ("gzip", "x-gzip"):
            source = gzip.GzipFile(fileobj=source)
        feeder = threading.Thread(target=_feed, args=(source, child.stdin), daemon=True)
        feeder.start()
    kind = "advertisement" if listing else "result"
    headers = [("Content-Type", f"application/x-{service}-{kind}"), ("Cache-Control", "no-cache")]
    start_response("200 OK", headers)
    announced = b""
    if listing and "version=2" not in environ.get("HTTP_GIT_PROTOCOL", ""):
        line = f"# service={service}\n"
        announced = f"{len(line) + 4:04x}{line}0000".encode()
    return _Body(child, child.stdout, feeder, announced)


def _git_environment(environ: Mapping[str, Any], extra: Mapping[str, str]) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_COMMITTER_NAME": "pusher",
        "GIT_COMMITTER_EMAIL": "pusher@example.org",
        "GIT_PROTOCOL": environ.get("HTTP_GIT_PROTOCOL", ""),
        **extra,
    }


def _feed(source: IO[bytes], sink: IO[bytes]) -> None:
    try:
        while chunk := source.read(1 << 16):
            sink.write(chunk)
        sink.close()
    except BrokenPipeError:
        pass  # Git has answered without reading all of it, as it may.


class _Body:
    """Git's output as it comes; `close` waits for its end, so that no child is left."""

    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        stream: IO[bytes],
        feeder: threading.Thread | None,
        announced: bytes,
    ) -> None:
        self._child = child
        self._stream = stream
        self._feeder = feeder
        self._announced = announced

    def __iter__(self) -> Iterator[bytes]:
        if self._announced:
            yield self._announced
        while chunk := self._stream.read1(1 << 16):  # type: ignore[attr-defined]
            yield chunk
        # The reference is moved before the client sees the end of the answer.
        self._child.wait()

    def close(self) -> None:
        self._stream.close()
        if self._feeder is not None:
            self._feeder.join(timeout=60)
        self._child.wait()
