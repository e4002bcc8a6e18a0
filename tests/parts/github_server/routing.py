"""The table of REST endpoints, and what each of them gets: a call whose sender may make it.

An endpoint is registered with the permissions of which a token needs one: to read for GET, else to
write. It returns what is shown: a list is shown in pages, objects as their documents.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from tests.parts.github_server.access import Caller, has_permission, has_role, reaches, role
from tests.parts.github_server.documents import Document, render
from tests.parts.github_server.exchange import (
    Answer,
    ApiError,
    Exchange,
    Site,
    not_found,
    template_pattern,
)
from tests.parts.github_server.stage import Stage
from tests.parts.github_server.state import (
    Account,
    App,
    Comment,
    Issue,
    Repository,
    Review,
    ReviewComment,
    Token,
    World,
)


@dataclass(frozen=True)
class Call:
    """A request for an endpoint. `at` are the values of the path template.

    What the path names is looked up when it is asked for. Raises ApiError 404 when there is no such
    thing, or the caller can't see it.
    """

    world: World
    caller: Caller
    exchange: Exchange
    at: Mapping[str, str]

    @property
    def site(self) -> Site:
        return self.exchange.site

    @property
    def query(self) -> Mapping[str, str]:
        return self.exchange.query

    @property
    def stage(self) -> Stage:
        return Stage(self.world)

    @property
    def sent(self) -> dict[str, Any]:
        """What was sent. Its fields and their types are not looked at: a request that is not as
        GitHub describes it breaks this server, or is found at the end of the test."""
        return self.exchange.json or {}

    @property
    def token(self) -> Token:
        if self.caller.token is None:
            raise ApiError(401, "Requires authentication")
        return self.caller.token

    @property
    def account(self) -> Account:
        return self.token.account

    @property
    def app(self) -> App:
        if self.caller.app is None:
            raise ApiError(401, "A JSON web token could not be decoded")
        return self.caller.app

    def number(self, name: str) -> int:
        """A number of the path."""
        if not self.at[name].isdecimal():
            raise not_found()
        return int(self.at[name])

    def pick(self, rows: Any, name: str) -> Any:
        """The row whose id is this number of the path."""
        id = self.number(name)
        for row in rows:
            if row.id == id:
                return row
        raise not_found()

    @cached_property
    def repository(self) -> Repository:
        found = self.world.repositories.get(f"{self.at['owner']}/{self.at['repo']}".lower())
        if found is None or role(self.caller.token, found) == "none":
            raise not_found()
        return found

    @cached_property
    def issue(self) -> Issue:
        name = "issue_number" if "issue_number" in self.at else "pull_number"
        found = self.repository.issues.get(self.number(name))
        if found is None or (name == "pull_number" and found.pull is None):
            raise not_found()
        return found

    @property
    def comment(self) -> Comment:
        found: Comment = self.pick(self.repository.texts("comments"), "comment_id")
        return found

    @property
    def review_comment(self) -> ReviewComment:
        found: ReviewComment = self.pick(self.repository.texts("review_comments"), "comment_id")
        return found

    @property
    def reviews(self) -> list[Review]:
        """Those that the caller sees: a draft is its author's."""
        me = self.caller.token.account if self.caller.token else None
        return [r for r in self.issue.reviews if r.state != "PENDING" or r.author is me]

    @property
    def review(self) -> Review:
        found: Review = self.pick(self.reviews, "review_id")
        return found

    # Permissions

    def has_role(self, least: str) -> bool:
        return has_role(self.caller.token, self.repository, least)

    def check_access(self, permissions: Sequence[str], least_role: str) -> None:
        """Raises ApiError unless one of the permissions allows the call."""
        if not permissions:
            return
        if "issue_number" in self.at and not self.issue.pull:
            # A pull request's conversation can be written with the permission for either.
            permissions = [name for name in permissions if name != "pull_requests"]
        level = "read" if self.exchange.method == "GET" else "write"
        if level == "read" and (self.caller.token is None or not self.repository.private):
            return
        allowed = any(has_permission(self.token, name, level) for name in permissions)
        if level == "write":
            unreached = self.token.is_installation and not reaches(self.token, self.repository)
            allowed = allowed and not unreached
        if not allowed:
            kind = "integration" if self.token.is_installation else "personal access token"
            raise ApiError(403, f"Resource not accessible by {kind}")
        if level == "write" and self.repository.archived:
            raise ApiError(403, "Repository was archived so is read-only.")
        if not self.has_role(least_role):
            raise ApiError(403, "Must have admin rights to Repository.")

    # Pages

    def page(self, rows: Sequence[Any]) -> tuple[Sequence[Any], dict[str, str]]:
        """The rows of the page that was asked for, with GitHub's Link header."""
        size = min(max(self._asked("per_page", 30), 1), 100)
        page = max(self._asked("page", 1), 1)
        last = max((len(rows) + size - 1) // size, 1)
        targets: dict[str, int] = {}
        if page > 1:
            targets |= {"prev": min(page - 1, last), "first": 1}
        if page < last:
            targets |= {"next": page + 1, "last": last}
        links = [self._link(name, "page", number) for name, number in targets.items()]
        headers = {"Link": ", ".join(links)} if links else {}
        return rows[(page - 1) * size : page * size], headers

    def page_after(self, rows: Sequence[Document], parameter: str) -> Answer:
        """The page behind the row whose id the parameter names, in lists without numbered pages."""
        ids = [str(row["id"]) for row in rows]
        cursor = self.query.get(parameter)
        start = ids.index(cursor) + 1 if cursor in ids else 0
        shown = rows[start : start + min(self._asked("per_page", 30), 100)]
        is_last = not shown or shown[-1] is rows[-1]
        links = {} if is_last else {"Link": self._link("next", parameter, shown[-1]["id"])}
        return Answer(200, list(shown), links)

    def _asked(self, name: str, default: int) -> int:
        value = self.query.get(name, "")
        return int(value) if value.isdecimal() else default

    def _link(self, name: str, parameter: str, value: int) -> str:
        query = urlencode({**self.query, parameter: str(value)})
        return f'<{self.site.api_url}{self.exchange.path}?{query}>; rel="{name}"'


Endpoint = Callable[[Call], Any]
REPO = "/repos/{owner}/{repo}"
_SUCCESS = {"GET": HTTPStatus.OK, "POST": HTTPStatus.CREATED, "PATCH": HTTPStatus.OK}


@dataclass(frozen=True)
class Route:
    method: str
    template: str
    pattern: re.Pattern[str]
    endpoint: Endpoint
    permissions: tuple[str, ...]
    least_role: str


_ROUTES: list[Route] = []


def route(operation: str, *permissions: str, role: str = "read") -> Callable[[Endpoint], Endpoint]:
    """operation: "GET /user", or "GET issues/{issue_number}" for what is below a repository.

    role: the least that a caller needs in the repository.
    """
    method, _, path = operation.partition(" ")
    template = path if path.startswith("/") else f"{REPO}/{path}".rstrip("/")

    def register(endpoint: Endpoint) -> Endpoint:
        pattern = template_pattern(template)
        _ROUTES.append(Route(method, template, pattern, endpoint, permissions, role))
        # The special before the general.
        _ROUTES.sort(key=lambda known: (known.template.count("{"), -len(known.template)))
        return endpoint

    return register


def answer_call(world: World, caller: Caller, exchange: Exchange) -> Answer:
    """The answer of the endpoint. Raises ApiError."""
    for known in _ROUTES:
        match = known.pattern.fullmatch(exchange.path)
        if match and known.method == exchange.method:
            call = Call(world, caller, exchange, match.groupdict())
            call.check_access(known.permissions, known.least_role)
            return _as_answer(call, known.endpoint(call))
    raise not_found()


def _as_answer(call: Call, shown: Any) -> Answer:
    headers: Mapping[str, str] = {}
    status: int = _SUCCESS.get(call.exchange.method, HTTPStatus.OK)
    if isinstance(shown, Answer):
        status, headers, shown = shown.status, shown.headers, shown.document
    elif isinstance(shown, list):
        shown, headers = call.page(shown)
    document: Document | None = None if shown is None else render(call.site, shown)
    return Answer(status, document, headers)
