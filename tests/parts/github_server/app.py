"""The whole of the test GitHub as one WSGI application: REST, GraphQL and git on one port.

Every request is recorded, ordered faults happen first, and the world is locked while an
endpoint works, so that concurrent clients see one thing after the other.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from http import HTTPStatus
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from tests.parts.git_http import REQUEST_PATH, git_http_app
from tests.parts.github_server import uploads
from tests.parts.github_server.access import GitGate, caller_of
from tests.parts.github_server.exchange import (
    DOCS,
    GRAPHQL,
    REST,
    Answer,
    ApiError,
    Exchange,
    Faults,
    Site,
    not_found,
)
from tests.parts.github_server.graphql import graphql
from tests.parts.github_server.routing import answer_call
from tests.parts.github_server.state import World
from tests.parts.wsgi import ConnectionCut

for module in Path(__file__).parent.glob("routes_*.py"):
    import_module(f"{__package__}.{module.stem}")  # its endpoints register themselves

StartResponse = Callable[..., Any]


class GitHubApp:
    """The application; `requests` grows with each request, in the order they came in."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.faults = Faults()
        self.requests: list[Exchange] = []
        self._numbers = count(1)
        self._git = git_http_app(world.root, GitGate(world))

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        exchange = self._recorded(environ)
        fault = self.faults.take(exchange.method, exchange.path)
        if fault is None:
            return self._carried_out(exchange, environ, start_response)
        exchange.fault = fault.cut or fault.answer is not None
        if fault.hold is not None:
            answer = self._carried_out(exchange, environ, start_response) if fault.after else None
            fault.hold.reached.set()
            fault.hold.released.wait(60)
            if answer is not None:
                return answer
        if not exchange.fault:
            return self._carried_out(exchange, environ, start_response)
        if fault.after:  # what was asked is done, and the answer thrown away
            body = self._carried_out(exchange, environ, lambda *_: None)
            for _ in body:
                pass
            getattr(body, "close", bool)()
        exchange.answer = fault.answer
        if fault.answer is None:
            raise ConnectionCut
        return self._sent(exchange, fault.answer, fault.body, start_response)

    def _recorded(self, environ: dict[str, Any]) -> Exchange:
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        kind = "other"
        if path == GRAPHQL:
            kind = "graphql"
        elif path.startswith(f"{REST}/"):
            kind, path = "rest", self._present_path(path.removeprefix(REST))
        elif uploads.is_file(path):
            kind = "file"
        elif REQUEST_PATH.fullmatch(path):
            kind = "git"
        headers = {
            name[5:].replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        if environ.get("CONTENT_TYPE"):
            headers["content-type"] = environ["CONTENT_TYPE"]
        exchange = Exchange(
            kind=kind,
            method=environ["REQUEST_METHOD"],
            path=path,
            query=dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)),
            headers=headers,
            body=b"" if kind == "git" else environ["wsgi.input"].read(),
            site=Site(f"http://{headers.get('host', environ['SERVER_NAME'])}"),
            number=next(self._numbers),
        )
        self.requests.append(exchange)
        return exchange

    def _carried_out(
        self, exchange: Exchange, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        redirect = self._redirect(exchange)
        if redirect is not None:
            exchange.answer, exchange.fault = redirect, True  # which is not described
            return self._sent(exchange, redirect, None, start_response)
        if exchange.kind == "git":
            with self.world.lock:
                for repository in self.world.repositories.values():
                    for pull in repository.pulls:
                        pull.tips()

            def start(status: str, headers: list[tuple[str, str]]) -> Any:
                exchange.answer = Answer(int(status[:3]), None, dict(headers))
                return start_response(status, headers)

            return self._git(environ, start)
        if exchange.kind == "file":
            served = uploads.serve(self.world, exchange)
            exchange.answer = served.answer
            return self._sent(exchange, served.answer, served.body, start_response)
        exchange.crashed = True
        exchange.answer = _unless_known(exchange, self._answer(exchange))
        exchange.crashed = False
        return self._sent(exchange, exchange.answer, None, start_response)

    def _present_path(self, path: str) -> str:
        """Return the path of a request under its repository's present name, not under its id."""
        by_id = re.fullmatch(r"/repositories/(\d+)(/.*)?", path)
        if by_id is None:
            return path
        with self.world.lock:
            found = (r for r in self.world.repositories.values() if r.id == int(by_id[1]))
            return next((f"/repos/{r.full_name}{by_id[2] or ''}" for r in found), path)

    def _redirect(self, exchange: Exchange) -> Answer | None:
        """Return the answer to a request under a repository's earlier name, None for any other."""
        path = exchange.path
        named = re.fullmatch(r"(?:/repos)?/([^/]+/[^/]+?)(?:\.git)?(/.*)?", path)
        with self.world.lock:
            moved = self.world.moved.get(named[1].lower()) if named else None
            if named is None or moved is None or exchange.kind not in {"rest", "git"}:
                return None
            rest = named[2] or ""
            url = f"{exchange.site.api_url}/repositories/{moved.id}{rest}"
            if exchange.kind == "git":
                url = f"{exchange.site.server_url}/{moved.full_name}.git{rest}"
        query = urlencode(exchange.query)
        location = f"{url}?{query}" if query else url
        status = 301 if exchange.method == "GET" else 307
        document = {"message": "Moved Permanently", "url": location, "documentation_url": DOCS}
        return Answer(status, document, {"Location": location})

    def _answer(self, exchange: Exchange) -> Answer:
        with self.world.lock:
            try:
                caller = caller_of(self.world, exchange.headers)
                if exchange.kind == "graphql" and exchange.method == "POST":
                    return graphql(self.world, caller, exchange)
                if exchange.kind != "rest":
                    raise not_found()
                answer = answer_call(self.world, caller, exchange)
                answer = uploads.with_html(self.world, exchange, answer)
                if caller.token is None or caller.token.scopes is None:
                    return answer
                scopes = {"X-OAuth-Scopes": ", ".join(caller.token.scopes)}
                return replace(answer, headers={**answer.headers, **scopes})
            except ApiError as error:
                return error.answer

    def _sent(
        self,
        exchange: Exchange,
        answer: Answer,
        raw: bytes | None,
        start_response: StartResponse,
    ) -> Iterable[bytes]:
        body = raw or b""
        if raw is None and answer.document is not None:
            body = json.dumps(answer.document).encode()
        reset = int(time.time()) + 3600
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Content-Length": str(len(body)),
            "X-GitHub-Request-Id": f"TEST:{exchange.number}",
            "X-RateLimit-Limit": "5000",
            "X-RateLimit-Remaining": str(max(5000 - exchange.number, 1)),
            "X-RateLimit-Reset": str(reset),
            "X-RateLimit-Resource": "core",
            **answer.headers,
        }
        if answer.status in {204, 304}:
            del headers["Content-Length"], headers["Content-Type"]
        reason = HTTPStatus(answer.status).phrase
        start_response(f"{answer.status} {reason}", list(headers.items()))
        return [body]


def _unless_known(exchange: Exchange, answer: Answer) -> Answer:
    """With an ETag, as each answer to a GET has one; 304 when the client has that answer."""
    if exchange.kind != "rest" or exchange.method != "GET" or answer.status != 200:
        return answer
    tag = f'W/"{hashlib.sha256(json.dumps(answer.document).encode()).hexdigest()}"'
    if exchange.headers.get("if-none-match") == tag:
        return Answer(304, None, {"ETag": tag})
    return Answer(200, answer.document, {**answer.headers, "ETag": tag})
