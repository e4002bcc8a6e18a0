"""A request and its answer, GitHub's errors, and faults that a test orders."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

DOCS = "https://docs.github.com/rest"
REST, GRAPHQL = "/api/v3", "/api/graphql"

# These may hold slashes: branch names, file paths.
MANY_SEGMENTS = ("ref", "branch", "basehead", "tree_sha")


@dataclass(frozen=True)
class Site:
    """The server's address as this client wrote it: all URLs in its answers start with it."""

    server_url: str

    @property
    def api_url(self) -> str:
        return f"{self.server_url}{REST}"


@dataclass(frozen=True)
class Answer:
    """`document` None means no body."""

    status: int
    document: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Exchange:
    """One recorded request. `path` is what follows /api/v3, or the whole path elsewhere.

    kind: "rest", "graphql", "git", "file" or "other". Bodies of git requests are not kept.
    answer: None while it is being made, and where the connection was cut.
    fault: True when an ordered fault, or a redirect, made the answer.
    crashed: True when this server itself broke over it: a mistake here, not of the client.
    """

    kind: str
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    site: Site
    number: int
    answer: Answer | None = None
    fault: bool = False
    crashed: bool = False

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

    def __init__(self, status: int, message: str, errors: Sequence[Any] = ()) -> None:
        super().__init__(message)
        document: dict[str, Any] = {"message": message}
        if errors:
            document["errors"] = list(errors)
        document |= {"documentation_url": DOCS, "status": str(status)}
        self.answer = Answer(status, document)


def not_found() -> ApiError:
    return ApiError(404, "Not Found")


def invalid(resource: str, field: str, code: str = "invalid", message: str = "") -> ApiError:
    """422, with one error. Code "custom" carries a message instead of a field."""
    error = {"resource": resource, "code": code}
    error |= {"message": message} if code == "custom" else {"field": field}
    if code == "unprocessable":
        error["message"] = message
    return ApiError(422, "Validation Failed", [error])


def template_pattern(template: str) -> re.Pattern[str]:
    """A path template as a pattern with a group for each parameter."""

    def group(parameter: re.Match[str]) -> str:
        name = parameter[1]
        if name == "path":  # "" is the repository's top folder
            return "(?P<path>.*)"
        return f"(?P<{name}>{'.+' if name in MANY_SEGMENTS else '[^/]+'})"

    return re.compile(re.sub(r"\\\{(\w+)\\\}", group, re.escape(template)))


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
