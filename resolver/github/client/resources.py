"""Reads resources of GitHub's REST and GraphQL APIs: lists, polled resources, queries, small files.

Lists take one request per page. PyGithub requests an element of its own lists again as soon as its
raw data, or an attribute that the list lacks, is read: a conversation of 100 comments would cost
101 requests. The lists here take each element as complete. Source:
https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api

A request for a polled resource carries the ETag of the last answer. As long as nothing has changed,
GitHub answers 304 and does not count the request against the rate limit. Source:
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api

Every request to the GraphQL API may be repeated: queries, and mutations that set a state.

Source for workflow runs: https://docs.github.com/en/rest/actions/workflow-runs#get-a-workflow-run
"""

import json
import logging
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

import github
import requests
from github.ContentFile import ContentFile
from github.GithubObject import CompletableGithubObject, GithubObject
from github.Repository import Repository
from github.Requester import Requester
from pydantic import AwareDatetime, ValidationError
from requests.adapters import HTTPAdapter
from requests.utils import parse_header_links

from resolver.errors import ForgeError
from resolver.github.client.access import MIN_LOGGED_WAIT_SECONDS, GitHubAccess
from resolver.github.client.answers import ApiAnswer
from resolver.github.client.failures import seconds_until_reset

PAGE_SIZE = 100
"""Elements per page, the maximum that GitHub allows."""

Element = TypeVar("Element", bound=GithubObject)


def read_pages(
    requester: Requester, url: str, query: Mapping[str, Any], max_pages: int = sys.maxsize
) -> Iterator[Any]:
    """Yield the pages of the list at `url` as parsed JSON. A page is requested when it is reached.

    Raises what `GitHubAccess.wrap_errors` converts into a ForgeError.

    Args:
        requester: PyGithub's requester.
        url: Address of the list.
        query: The list's own parameters. Those that are None are left out.
        max_pages: Maximum number of pages that are read.
    """
    next_url: str | None = url
    next_query = _page_query(query, 0)
    for _ in range(max_pages):
        if next_url is None:
            return
        headers, page = requester.requestJsonAndCheck("GET", next_url, next_query)
        yield page
        next_url, next_query = links_of(headers).get("next"), {}


def _page_query(query: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the parameters that request one page of a list, counted from 0."""
    given = {name: _format_parameter(value) for name, value in query.items() if value is not None}
    return {**given, "per_page": PAGE_SIZE, **({"page": number + 1} if number else {})}


class Listing(Generic[Element]):
    """The list at `url`, with elements of one type. No request is sent before it is iterated.

    Its methods raise what `GitHubAccess.wrap_errors` converts into a ForgeError.

    Args:
        requester: PyGithub's requester.
        kind: PyGithub's class for the elements.
        url: Address of the list.
        query: The list's own parameters. Those that are None are left out.
    """

    def __init__(self, requester: Requester, kind: type[Element], url: str, **query: Any) -> None:
        self._requester = requester
        self._kind = kind
        self._url = url
        self._query = query

    def __iter__(self) -> Iterator[Element]:
        """Yield the elements in the list's order. A page is requested when it is reached."""
        for rows in read_pages(self._requester, self._url, self._query):
            yield from self._elements(rows)

    def newest(self, limit: int) -> list[Element]:
        """Return the last `limit` elements of a list that is sorted oldest first, oldest first.

        A list of one page costs one request, any other the first page and the pages with these
        elements.
        """
        links, first = self._get_page(0)
        last = page_number(links["last"]) if "last" in links else 0
        elements: list[Element] = []
        for number in range(last, 0, -1):
            if len(elements) >= limit:
                break
            elements = [*self._get_page(number)[1], *elements]
        if len(elements) < limit:
            elements = [*first, *elements]
        return elements[-limit:]

    def _get_page(self, number: int) -> tuple[Mapping[str, str], list[Element]]:
        """Return the links and the elements of one page, counted from 0."""
        query = _page_query(self._query, number)
        headers, rows = self._requester.requestJsonAndCheck("GET", self._url, query)
        return links_of(headers), self._elements(rows)

    def _elements(self, rows: Any) -> list[Element]:
        # PyGithub never requests an element again that is marked as completed: attributes that the
        # list lacks are None.
        is_completable = issubclass(self._kind, CompletableGithubObject)
        attributes: dict[str, Any] = {"completed": True} if is_completable else {}
        return [self._kind(self._requester, {}, row, **attributes) for row in rows or ()]


class CachedRows(Generic[Element]):
    """Caches the elements of a list, so that several loops over it request each page only once.

    Not thread-safe. The elements are as old as the first request.
    """

    def __init__(self, listing: Iterable[Element]) -> None:
        self._cached: list[Element] = []
        self._remaining = iter(listing)

    def __iter__(self) -> Iterator[Element]:
        for index in count():
            while index >= len(self._cached):
                element = next(self._remaining, None)
                if element is None:
                    return
                self._cached.append(element)
            yield self._cached[index]


def _format_parameter(value: Any) -> Any:
    """Format a query parameter for the API: a moment in UTC, in whole seconds."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return value


def links_of(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return the addresses of a list's other pages by their relation, such as "next" and "last"."""
    links = parse_header_links(str(headers.get("link") or ""))
    return {link["rel"]: link["url"] for link in links if "rel" in link}


def page_number(url: str) -> int:
    """Return the page, counted from 0, that a list's address requests."""
    return int(parse_qs(urlsplit(url).query)["page"][0]) - 1


NOT_MODIFIED = 304

MAX_CACHED_ANSWERS = 50
"""Maximum number of answers that are kept. The one that was stored first is dropped first."""


@dataclass(frozen=True)
class PolledResponse:
    """An answer as parsed JSON. `changed` is False when it equals the previous answer."""

    data: Any
    changed: bool


class PolledReader:
    """Reads resources and remembers their answers for later requests. Not thread-safe."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._answers: dict[tuple[str, ...], tuple[str | None, Any]] = {}

    def get(self, path: str, query: dict[str, Any]) -> PolledResponse:
        """Return one page. Raises what `GitHubAccess.wrap_errors` converts into a
        ForgeError."""
        key = (path, *(f"{name}={value}" for name, value in sorted(query.items())))
        etag, data = self._answers.get(key, (None, None))
        condition = {"If-None-Match": etag} if etag else {}
        status, headers, body = self._requester.requestJson("GET", path, query, condition)
        if status == NOT_MODIFIED:
            return PolledResponse(data, changed=False)
        if status != 200:
            raise self._requester.createException(status, headers, json.loads(body or "{}"))
        new_data = json.loads(body)
        if len(self._answers) >= MAX_CACHED_ANSWERS and key not in self._answers:
            del self._answers[next(iter(self._answers))]
        if headers.get("etag"):
            self._answers[key] = (headers["etag"], new_data)
        return PolledResponse(new_data, changed=True)


RATE_LIMIT_ERROR = "RATE_LIMITED"
"""Type of the error that reports a rate limit, in an answer with status 200.

Source: https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
"""

STATUSES = {"FORBIDDEN": 403, "INSUFFICIENT_SCOPES": 403, "NOT_FOUND": 404}
"""The status that the REST API has for these types of errors."""

logger = logging.getLogger("resolver.github")


def _status_of(errors: Collection[Any]) -> int:
    """Return the status of the REST API that fits the errors of a query.

    An error without a type is a failure of GitHub itself, such as a time-out; one with an unknown
    type, or a code of the query's validation, is about the request.
    """
    first = next((error for error in errors if isinstance(error, dict)), {})
    if "type" in first:
        return STATUSES.get(str(first["type"]), 422)
    return 422 if first.get("extensions") else 502


def _concerns_one_item(error: Any) -> bool:
    """Return True if an error concerns only one item of a list.

    The answer has null for such an item, for example an issue of another repository that the token
    can't see.
    """
    path = error.get("path") if isinstance(error, dict) else None
    return isinstance(path, list) and any(isinstance(step, int) for step in path)


def _concerns_field(error: Any, kinds: Collection[str], fields: Collection[str]) -> bool:
    """Return True if an error of one of these types is about one of these fields."""
    path = error.get("path") if isinstance(error, dict) else None
    return (
        isinstance(path, list) and bool(path) and path[-1] in fields and error.get("type") in kinds
    )


def query_graphql(
    access: GitHubAccess,
    query: str,
    variables: dict[str, Any],
    nullable_fields: Collection[str] = (),
    optional_fields: Collection[str] = (),
) -> dict[str, Any]:
    """Return the `data` of the answer to a query.

    Lists in it contain null for items that the token can't see. A rate limit is waited for as in
    the REST API, for no longer than the access allows. Raises what
    `GitHubAccess.wrap_errors` converts into a ForgeError.

    Args:
        access: The address of GitHub and the token.
        query: The GraphQL query.
        variables: Its variables.
        nullable_fields: Fields that are null when the object they ask for does not exist, instead
            of an error.
        optional_fields: Fields that are null when the token may not read them, too.
    """
    for attempt in range(access.attempts + 1):
        answer = _post_query(access, query, variables)
        body = answer.json()
        if answer.status_code != 200:
            raise github.GithubException(answer.status_code, body, dict(answer.headers))
        # Errors of a query are reported in an answer with status 200.
        errors = body.get("errors") or ()
        if not any(
            isinstance(error, dict) and error.get("type") == RATE_LIMIT_ERROR for error in errors
        ):
            break
        min_wait = access.retries.first_wait_seconds * 2**attempt
        wait = max(min_wait, seconds_until_reset(answer.headers))
        if attempt == access.attempts or wait > access.max_wait_seconds:
            error_data = {"message": "rate limit"}
            raise github.RateLimitExceededException(403, error_data, dict(answer.headers))
        if wait >= MIN_LOGGED_WAIT_SECONDS:
            logger.warning("GitHub's rate limit; trying again in %.0f seconds", wait)
        access.retries.sleep(wait)
    if not all(
        _concerns_one_item(error)
        or _concerns_field(error, {"NOT_FOUND"}, nullable_fields)
        or _concerns_field(error, {"NOT_FOUND", "FORBIDDEN"}, optional_fields)
        for error in errors
    ):
        messages = "; ".join(str(error.get("message", "")) for error in body["errors"])
        status = _status_of(errors)
        raise github.GithubException(status, {"message": messages}, dict(answer.headers))
    data: dict[str, Any] = body["data"]
    return data


def query_repository(
    access: GitHubAccess,
    repository: str,
    query: str,
    nullable_fields: Collection[str] = (),
    **variables: Any,
) -> dict[str, Any]:
    """Return the repository OWNER/NAME in the answer to a query, which has `$owner` and `$name`.

    `variables` are the query's other ones. The rest is as in `query_graphql`.
    """
    owner, _, name = repository.partition("/")
    variables = {"owner": owner, "name": name, **variables}
    data: dict[str, Any] = query_graphql(access, query, variables, nullable_fields)["repository"]
    return data


def _post_query(access: GitHubAccess, query: str, variables: dict[str, Any]) -> requests.Response:
    """Send the query. A POST without side effects is repeated like a GET."""
    retry = access.retry(harmless=True)
    with requests.Session() as session:
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(max_retries=retry))
        return session.post(
            access.graphql_url,
            json={"query": query, "variables": variables},
            headers={"Authorization": f"Bearer {access.token}", "User-Agent": "resolver"},
            auth=lambda request: request,  # otherwise ~/.netrc replaces the header
            timeout=access.timeout,
            allow_redirects=False,
        )


MAX_FILE_BYTES = 64_000
"""Maximum size of one file in bytes. Larger files are skipped."""


def markdown_files(repository: Repository, folder: str, max_files: int) -> dict[str, bytes]:
    """Return the Markdown files of a folder and the SKILL.md of each of its subfolders, by path.

    The result is empty when the folder does not exist. `max_files` is the maximum number of files;
    each costs one request.
    """
    files: dict[str, bytes] = {}
    for entry in list_repository_folder(repository, folder):
        if len(files) == max_files:
            break
        file = (
            get_repository_file(repository, f"{entry.path}/SKILL.md")
            if entry.type == "dir"
            else entry
        )
        if file is None or file.type != "file" or not file.path.lower().endswith(".md"):
            continue
        if file.size <= MAX_FILE_BYTES:
            files[file.path] = file.decoded_content
    return files


def list_repository_folder(repository: Repository, folder: str) -> Iterator[ContentFile]:
    """Yield the entries of a folder; none when it does not exist."""
    try:
        contents = repository.get_contents(folder.rstrip("/"))
    except github.UnknownObjectException:
        return
    yield from contents if isinstance(contents, list) else ()


def get_repository_file(repository: Repository, path: str) -> ContentFile | None:
    """Return a file, or None when it does not exist."""
    try:
        file = repository.get_contents(path)
    except github.UnknownObjectException:
        return None
    return file if isinstance(file, ContentFile) else None


class _Run(ApiAnswer):
    """A workflow run."""

    created_at: AwareDatetime


def requested_at(access: GitHubAccess, repository: Repository, run: str) -> datetime | None:
    """Return the time of the event that started a workflow run, or None when it can't be read.

    The time is the same for every attempt of the run. The job itself begins later: it may wait for
    a runner and for other jobs. `run` is the value of GITHUB_RUN_ID.
    """
    if not run.isdecimal():
        return None
    path = f"{repository.url}/actions/runs/{run}"
    try:
        with access.wrap_errors("read when the workflow was started", "actions: read"):
            _, answer = repository.requester.requestJsonAndCheck("GET", path)
            return _Run.model_validate(answer).created_at
    except (ForgeError, ValidationError) as error:
        logger.info("the time of the request is not known: %s", error)
        return None
