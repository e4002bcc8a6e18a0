"""The test GitHub: REST, GraphQL and git on one real socket, stateful, and checked.

    def test_something(github):
        github.create_repository("octo/demo", files={"README.md": "hello"})
        issue = github.create_issue("octo/demo", "It breaks", "Please help", author="alice")
        token = github.token_for("octo", "octo/demo")

Unchanged clients work through `github.api_url` (GITHUB_API_URL), `github.graphql_url` and
`github.server_url` (GITHUB_SERVER_URL; git clones from there too). Each request and answer of
a test is validated against GitHub's own description when the test is over.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.parts.github_server import description, documents
from tests.parts.github_server.app import GitHubApp
from tests.parts.github_server.exchange import DOCS, Answer, Exchange, Fault, Hold, Site
from tests.parts.github_server.stage import Stage
from tests.parts.github_server.state import Comment, Issue, World
from tests.parts.published import GRAPHQL_SCHEMA, OPENAPI, require
from tests.parts.wsgi import serve

MESSAGES = {
    403: "You have exceeded a secondary rate limit. Please wait a few minutes.",
    429: "API rate limit exceeded",
    500: "Server Error",
}


class GitHubServer(Stage):
    """A running test GitHub: what `Stage` sets, the requests it got, faults, and payloads."""

    def __init__(self, port: int, app: GitHubApp) -> None:
        super().__init__(app.world)
        self.port = port
        self.app = app
        self._validated = 0

    @property
    def server_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def api_url(self) -> str:
        return f"{self.server_url}/api/v3"

    @property
    def graphql_url(self) -> str:
        return f"{self.server_url}/api/graphql"

    @property
    def addresses(self) -> dict[str, str]:
        """The variables with which a run finds this server."""
        return {
            "GITHUB_API_URL": self.api_url,
            "GITHUB_SERVER_URL": self.server_url,
            "GITHUB_GRAPHQL_URL": self.graphql_url,
        }

    def server_url_at(self, host: str) -> str:
        """The same server for a client that reaches this machine as `host`."""
        return f"http://{host}:{self.port}"

    @property
    def requests(self) -> list[Exchange]:
        """All requests so far, in order."""
        return self.app.requests

    def writes(self) -> list[Exchange]:
        """Requests that change something: all REST ones but GET, and pushes."""
        return [
            request
            for request in self.requests
            if (request.kind == "rest" and request.method != "GET")
            or (request.kind == "git" and request.path.endswith("/git-receive-pack"))
        ]

    def event_issue_comment(self, comment: Comment) -> dict[str, Any]:
        """The event of a comment, on an issue or in a pull request's conversation."""
        about = {"action": "created", "issue": comment.issue, "comment": comment}
        return self.document({**about, "repository": comment.repository, "sender": comment.author})

    def document(self, given: Any) -> dict[str, Any]:
        """What the REST API shows of something."""
        with self.world.lock:
            document: dict[str, Any] = documents.render(Site(self.server_url), given)
            return document

    def document_of_pull(self, pull: Issue) -> dict[str, Any]:
        """What lists of the REST API show of a pull request."""
        return self.document(documents.pull(Site(self.server_url), pull))

    # Trouble

    def fail_next(
        self,
        method: str,
        path_regex: str,
        status: int = 500,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        times: int = 1,
        after: bool = False,
    ) -> None:
        """The next matching requests get this answer.

        method: "*" is any. path_regex: searched in the path after /api/v3 (git: in the whole).
        body: text or bytes as they are, anything else as JSON; GitHub's own words when None.
        after: the request is carried out, and only then answered with this.
        """
        words = {"message": MESSAGES.get(status, "Error"), "documentation_url": DOCS}
        raw = body if isinstance(body, str | bytes) else json.dumps(body or words)
        self.app.faults.order(
            Fault(
                method,
                re.compile(path_regex),
                answer=Answer(status, None, headers or {}),
                body=raw.encode() if isinstance(raw, str) else raw,
                after=after,
                times=times,
            )
        )

    def cut_next(self, method: str, path_regex: str, times: int = 1, after: bool = False) -> None:
        """The next matching requests find the connection closed. after: they were done."""
        fault = Fault(method, re.compile(path_regex), cut=True, after=after, times=times)
        self.app.faults.order(fault)

    def hold_next(
        self, method: str, path_regex: str, *, after: bool = False, lost: bool = False
    ) -> Hold:
        """The next matching request is answered rightly when the test releases it.

        after: it is carried out at once, and only its answer is held. lost: it is not answered, and
        without `after` not carried out either.
        """
        hold = Hold()
        path = re.compile(path_regex)
        self.app.faults.order(Fault(method, path, hold=hold, after=after, cut=lost))
        return hold

    # Validation

    def validate_everything(self) -> None:
        """Raises AssertionError for requests or answers that GitHub's description forbids, of those
        since the last call."""
        known = description.load(require(OPENAPI))
        fresh, self._validated = self.requests[self._validated :], len(self.requests)
        problems = [
            problem
            for exchange in fresh
            if exchange.kind in ("rest", "other")
            for problem in known.problems(exchange)
        ]
        problems += [
            f"GraphQL: {error['message']}"
            for exchange in fresh
            if exchange.kind == "graphql" and not exchange.fault
            for error in exchange.answer_document.get("errors", ())
            if "type" not in error
        ]
        assert not problems, "not as GitHub describes it:\n" + "\n".join(problems)


@contextmanager
def github_server(root: Path, bind: str = "127.0.0.1") -> Iterator[GitHubServer]:
    """Runs a test GitHub whose repositories are below `root`. Validates nothing by itself.

    bind: "0.0.0.0" lets containers on the engine's bridge reach it (see `server_url_at`).
    """
    app = GitHubApp(World(root))
    with serve(app, bind) as address:
        yield GitHubServer(address.port, app)


@pytest.fixture
def github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHubServer]:
    """A test GitHub with nothing in it; what the test did is validated when it is over."""
    require(GRAPHQL_SCHEMA)
    with github_server(tmp_path_factory.mktemp("github")) as server:
        yield server
        server.validate_everything()
