"""Reads resources of GitHub's REST and GraphQL APIs: lists, polled resources, queries, small files,
the time of a workflow run.

Lists take one request per page. PyGithub requests an element of its own lists again as soon as its
raw data, or an attribute that the list lacks, is read: a conversation of 100 comments would cost
101 requests. The lists here take each element as complete. Source:
https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api

A request for a polled resource carries the ETag of the last answer. As long as nothing has changed,
GitHub answers 304 and does not count the request against the rate limit. Source:
https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

import json
import logging
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from datetime import UTC, datetime
from itertools import tee
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

import github
from github.ContentFile import ContentFile
from github.GithubObject import CompletableGithubObject, GithubObject
from github.Repository import Repository
from github.Requester import Requester
from requests.utils import parse_header_links

from resolver.errors import ForgeError, UsageError
from resolver.github.client.access import GitHubAccess

logger = logging.getLogger("resolver.github")

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
    next_query = _page_query(query)
    for _ in range(max_pages):
        if next_url is None:
            return
        headers, page = requester.requestJsonAndCheck("GET", next_url, next_query)
        yield page
        next_url, next_query = _links_of(headers).get("next"), {}


def _page_query(query: Mapping[str, Any], **page: int) -> dict[str, Any]:
    """Return the parameters of one page of a list. Moments are in UTC, in whole seconds."""
    given = {name: value for name, value in query.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, datetime):
            given[name] = f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {**given, "per_page": PAGE_SIZE, **page}


def _links_of(headers: Mapping[str, Any]) -> dict[str, str]:
    """Return the addresses of a list's other pages by their relation, such as "next" and "last"."""
    links = parse_header_links(str(headers.get("link") or ""))
    return {link["rel"]: link["url"] for link in links if "rel" in link}


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
        headers, first = self._read_page(1)
        last_url = _links_of(headers).get("last")
        number = int(parse_qs(urlsplit(last_url).query)["page"][0]) if last_url else 1
        rows: list[Any] = []
        while number > 1 and len(rows) < limit:
            rows = [*self._read_page(number)[1], *rows]
            number -= 1
        if len(rows) < limit:
            rows = [*first, *rows]
        return self._elements(rows[-limit:])

    def _read_page(self, number: int) -> tuple[Mapping[str, str], list[Any]]:
        """Return the headers and the rows of one page, counted from 1."""
        query = _page_query(self._query, page=number)
        headers, rows = self._requester.requestJsonAndCheck("GET", self._url, query)
        return headers, rows or []

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
        [self._unread] = tee(listing, 1)

    def __iter__(self) -> Iterator[Element]:
        return copy(self._unread)  # shares what was read


class PolledReader:
    """Reads resources and remembers the last answer of each page. Not thread-safe."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._answers: dict[tuple[str, Any], tuple[dict[str, Any], str | None, Any]] = {}

    def get(self, path: str, query: dict[str, Any]) -> Any:
        """Return one page as parsed JSON. Raises what `GitHubAccess.wrap_errors` converts into a
        ForgeError."""
        key = (path, query.get("page"))
        last_query, etag, data = self._answers.get(key, (None, None, None))
        condition = {"If-None-Match": etag} if etag and last_query == query else {}
        status, headers, body = self._requester.requestJson("GET", path, query, condition)
        if status == 304:
            return data
        if status != 200:
            raise github.GithubException(status, body, headers)
        new_data = json.loads(body)
        self._answers[key] = (query, headers.get("etag"), new_data)
        return new_data


_STATUSES = {
    "FORBIDDEN": 403,
    "INSUFFICIENT_SCOPES": 403,
    "NOT_FOUND": 404,
    "RATE_LIMIT": 429,
    "RATE_LIMITED": 429,
}
"""The status that the REST API has for these types of errors.

Source: https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
"""


def query_graphql(
    access: GitHubAccess,
    query: str,
    variables: dict[str, Any],
    nullable_fields: Collection[str] = (),
    optional_fields: Collection[str] = (),
) -> dict[str, Any]:
    """Return the `data` of the answer to a query.

    Lists in it contain null for items that the token can't see. Raises what
    `GitHubAccess.wrap_errors` converts into a ForgeError.

    Args:
        access: The address of GitHub and the token.
        query: The GraphQL query.
        variables: Its variables.
        nullable_fields: Fields that are null when the object they ask for does not exist, instead
            of an error.
        optional_fields: Fields that are null when the token may not read them, too.
    """
    document = {"query": query, "variables": variables}
    if urlsplit(access.graphql_url).netloc != urlsplit(access.api_url).netloc:
        raise UsageError(
            "GITHUB_GRAPHQL_URL and GITHUB_API_URL are on two hosts", "give those of one GitHub"
        )
    status, headers, text = access.requester().requestJson(
        "POST", access.graphql_url, input=document
    )
    if status != 200:
        raise github.GithubException(status, text, headers)
    body = json.loads(text)
    # Errors of a query are reported in an answer with status 200.
    tolerated = {("NOT_FOUND", field) for field in (*nullable_fields, *optional_fields)}
    tolerated |= {("FORBIDDEN", field) for field in optional_fields}
    errors = [error for error in body.get("errors") or () if not _is_tolerated(error, tolerated)]
    if errors:
        messages = "; ".join(str(error.get("message", "")) for error in errors)
        raise github.GithubException(_status_of(errors[0]), {"message": messages}, headers)
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


def _is_tolerated(error: Mapping[str, Any], tolerated: Collection[tuple[str, str]]) -> bool:
    """Return True if an error leaves an answer of use.

    tolerated: the types of errors, with the names of the fields that may have them.

    It may concern a single item of a list, which is null then: for example an issue of another
    repository that the token can't see.
    """
    path = error.get("path") or [None]
    concerns_item = any(isinstance(step, int) for step in path)
    return concerns_item or (error.get("type"), path[-1]) in tolerated


def _status_of(error: Mapping[str, Any]) -> int:
    """Return the status of the REST API that fits an error of a query.

    A secondary rate limit is named by the message alone. Any other error without a type is a
    failure of GitHub itself, such as a time-out; one with an unknown type, or a code of the query's
    validation, is about the request.
    """
    if Requester.isRateLimitError(str(error.get("message", ""))):
        return 429
    if "type" in error:
        return _STATUSES.get(str(error["type"]), 422)
    return 422 if error.get("extensions") else 502


MAX_FILE_BYTES = 64_000
"""Maximum size of one file in bytes. Larger files are skipped."""


def markdown_files(repository: Repository, folder: str, max_files: int) -> dict[str, bytes]:
    """Return the Markdown files of a folder and the SKILL.md of each of its subfolders, by path.

    The result is empty when the folder does not exist. `max_files` is the maximum number of files;
    each costs one request.
    """
    entries = _get_contents(repository, folder.rstrip("/"))
    files: dict[str, bytes] = {}
    for entry in entries if isinstance(entries, list) else ():
        if len(files) == max_files:
            break
        is_folder = entry.type == "dir"
        file = get_repository_file(repository, f"{entry.path}/SKILL.md") if is_folder else entry
        if file is None or file.type != "file" or not file.path.lower().endswith(".md"):
            continue
        if file.size <= MAX_FILE_BYTES:
            files[file.path] = file.decoded_content
    return files


def get_repository_file(repository: Repository, path: str) -> ContentFile | None:
    """Return a file, or None when it does not exist."""
    file = _get_contents(repository, path)
    return file if isinstance(file, ContentFile) else None


def _get_contents(repository: Repository, path: str) -> list[ContentFile] | ContentFile | None:
    try:
        return repository.get_contents(path)
    except github.UnknownObjectException:
        return None


def read_request_time(access: GitHubAccess, repository: Repository, run: str) -> datetime | None:
    """Return when a workflow run was requested, None if the token may not read that.

    The time is the same for every attempt of the run. The job itself begins later: it may wait for
    a runner and for other jobs. `run` is the value of GITHUB_RUN_ID.
    """
    if not run.isdecimal():
        return None
    try:
        with access.wrap_errors("read when the workflow was started", "actions: read"):
            return repository.get_workflow_run(int(run)).created_at
    except ForgeError as error:
        logger.info("the time of the request is not known: %s", error)
        return None
