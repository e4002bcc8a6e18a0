"""A request and its answer, GitHub's errors, pages with Link headers, and ordered faults."""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from tests.parts.github_server.state import Account, App, Token, World

DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True)
class Site:
    """The server's address as this client wrote it: all URLs in its answers start with it."""

    server_url: str

    @property
    def api_url(self) -> str:
        return f"{self.server_url}/api/v3"


@dataclass(frozen=True)
class Answer:
    """`document` None means no body."""

    status: int
    document: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Exchange:
    """One recorded request. `path` is what follows /api/v3, or the whole path elsewhere.

    kind: "rest", "graphql", "git" or "other". Bodies of git requests are not kept.
    answer: None while it is being made, and where the connection was cut.
    fault: True when an ordered fault made the answer.
    crashed: True when this server itself broke over it: a mistake here, not of the client.
    """

    kind: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    site: Site
    answer: Answer | None = None
    fault: bool = False
    crashed: bool = False
    number: int = 0

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def answer_document(self) -> Mapping[str, Any]:
        """The answer's document; {} where it is no object."""
        document = self.answer.document if self.answer else None
        return document if isinstance(document, dict) else {}

    @property
    def status(self) -> int | None:
        return self.answer.status if self.answer else None


class ApiError(Exception):
    """An answer that says no, in GitHub's words."""

    def __init__(
        self,
        status: int,
        message: str,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        document: dict[str, Any] = {"message": message}
        if errors:
            document["errors"] = list(errors)
        document |= {"documentation_url": DOCS, "status": str(status)}
        self.answer = Answer(status, document, headers or {})


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def invalid(resource: str, field: str, code: str = "invalid", message: str = "") -> ApiError:
    """422, with one error. Code "custom" carries a message instead of a field."""
    error = {"resource": resource, "code": code}
    error |= {"message": message} if code == "custom" else {"field": field}
    if code == "unprocessable":
        error["message"] = message
    return ApiError(422, "Validation Failed", [error])


@dataclass(frozen=True)
class Caller:
    """The sender of a request: nobody, the holder of a token, or an App with its signed key."""

    token: Token | None = None
    app: App | None = None

    @property
    def account(self) -> Account | None:
        return self.token.account if self.token else None


@dataclass(frozen=True)
class Call:
    """A request for an endpoint. `at` are the values of the path template."""

    world: World
    site: Site
    caller: Caller
    exchange: Exchange
    at: Mapping[str, str]

    @property
    def query(self) -> Mapping[str, str]:
        return self.exchange.query

    def sent(self) -> Any:
        """The JSON that was sent, {} when nothing was. Raises ApiError 400 when it is none."""
        try:
            return self.exchange.json if self.exchange.body else {}
        except ValueError:
            raise ApiError(400, "Problems parsing JSON") from None

    def body(self) -> dict[str, Any]:
        """The JSON object that was sent. Raises ApiError 400 when it is none."""
        sent = self.sent()
        if not isinstance(sent, dict):
            raise ApiError(400, "Body should be a JSON object")
        return sent

    def number(self, name: str) -> int:
        """A number of the path. Raises ApiError 404 when it is none."""
        if not self.at[name].isdecimal():
            raise not_found()
        return int(self.at[name])

    def page(self, rows: Sequence[Any], document: Callable[[Any], Any]) -> Answer:
        """One page of `rows` as documents, with GitHub's Link header."""
        size = min(max(self._asked("per_page", 30), 1), 100)
        page = max(self._asked("page", 1), 1)
        last = max((len(rows) + size - 1) // size, 1)
        targets: dict[str, int] = {}
        if page > 1:
            targets |= {"prev": min(page - 1, last), "first": 1}
        if page < last:
            targets |= {"next": page + 1, "last": last}
        links = ", ".join(
            f'<{self._page_url(number)}>; rel="{name}"' for name, number in targets.items()
        )
        shown = [document(row) for row in rows[(page - 1) * size : page * size]]
        return Answer(200, shown, {"Link": links} if links else {})

    def _asked(self, name: str, default: int) -> int:
        value = self.query.get(name, "")
        return int(value) if value.isdecimal() else default

    def _page_url(self, number: int) -> str:
        query = {**self.query, "page": str(number)}
        return f"{self.site.api_url}{self.exchange.path}?{urlencode(query)}"


Endpoint = Callable[[Call], Answer]


class Routes:
    """Endpoints by method and by path template as GitHub's description writes them."""

    def __init__(self) -> None:
        self._table: list[tuple[str, str, re.Pattern[str], Endpoint]] = []

    def add(self, operation: str) -> Callable[[Endpoint], Endpoint]:
        """operation: "GET /repos/{owner}/{repo}"."""

        def register(endpoint: Endpoint) -> Endpoint:
            method, _, template = operation.partition(" ")
            self._table.append((method, template, template_pattern(template), endpoint))
            # The special before the general.
            self._table.sort(key=lambda row: (row[1].count("{"), -len(row[1])))
            return endpoint

        return register

    def find(self, method: str, path: str) -> tuple[Endpoint, dict[str, str]] | None:
        for candidate, _, pattern, endpoint in self._table:
            match = pattern.fullmatch(path)
            if match and candidate == method:
                return endpoint, match.groupdict()
        return None


ROUTES = Routes()
REPO = "/repos/{owner}/{repo}"


# These may hold slashes: branch names, file paths.
MANY_SEGMENTS = ("ref", "branch", "basehead", "tree_sha")


def template_pattern(template: str) -> re.Pattern[str]:
    """A path template as a pattern with a group for each parameter."""
    parts = re.split(r"\{(\w+)\}", template)
    pattern = ""
    for index, part in enumerate(parts):
        if index % 2 == 0:
            pattern += re.escape(part)
        elif part == "path":  # "" is the repository's top folder
            pattern += "(?P<path>.*)"
        else:
            pattern += f"(?P<{part}>{'.+' if part in MANY_SEGMENTS else '[^/]+'})"
    return re.compile(pattern)


@dataclass(frozen=True)
class Hold:
    """A request that is answered when the test wants. reached: it has come."""

    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


@dataclass
class Fault:
    """A fault for the next matching requests, instead of or after their answer.

    path: a pattern searched in the path. cut: close the connection without a word.
    hold: the request is answered when the test wants.
    after: the request is carried out first, and only its answer is lost or held.
    """

    method: str
    path: re.Pattern[str]
    answer: Answer | None = None
    body: bytes | None = None
    cut: bool = False
    hold: Hold | None = None
    after: bool = False
    times: int = 1


class Faults:
    """The queue of ordered faults."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[Fault] = []

    def order(self, fault: Fault) -> None:
        with self._lock:
            self._queue.append(fault)

    def forget(self) -> None:
        """None of those that are left happens."""
        with self._lock:
            self._queue.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The first that fits, used up by one."""
        with self._lock:
            for fault in self._queue:
                if fault.method in ("*", method) and fault.path.search(path):
                    fault.times -= 1
                    if fault.times == 0:
                        self._queue.remove(fault)
                    return fault
        return None

    def waiting(self) -> int:
        """Number of faults that have not happened yet."""
        with self._lock:
            return sum(fault.times for fault in self._queue)
