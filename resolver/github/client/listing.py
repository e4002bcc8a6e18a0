"""Lists of GitHub's REST API: each element with what the list says of it, at one request a page.

An element of a list of PyGithub's own is asked for once more as soon as its raw data, or an
attribute that the list does not have, is read: a thread of 100 comments would cost 101 requests.
Source: https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qs, urlsplit

from github.GithubObject import CompletableGithubObject, GithubObject
from github.Requester import Requester
from requests.utils import parse_header_links

PAGE = 100
"""Elements of one answer; GitHub gives no more."""

Element = TypeVar("Element", bound=GithubObject)


class Listing(Generic[Element]):
    """The list at `url`, whose elements are of one kind. Nothing is asked before it is iterated.

    query: the list's own parameters; those that are None are left out. Raises what
    `GitHubAccess.asking` turns into a ForgeError.
    """

    def __init__(self, requester: Requester, kind: type[Element], url: str, **query: Any) -> None:
        self._requester = requester
        self._kind = kind
        self._url = url
        self._query = {name: _written(v) for name, v in query.items() if v is not None}

    def __iter__(self) -> Iterator[Element]:
        """In the list's order; a page is asked for when it is reached."""
        url, query = self._url, {**self._query, "per_page": PAGE}
        while url:
            links, elements = self._get(url, query)
            yield from elements
            url, query = links.get("next", ""), {}

    def page(self, number: int) -> list[Element]:
        """The elements of one page, counted from 0."""
        return self._numbered(number)[1]

    def newest(self, limit: int) -> list[Element]:
        """The last `limit` of a list that has the oldest first, oldest first. One of a single page
        costs one request, any other the pages that hold them and the first one."""
        links, first = self._numbered(0)
        last = page_number(links["last"]) if "last" in links else 0
        found: list[Element] = []
        for number in range(last, 0, -1):
            if len(found) >= limit:
                break
            found = [*self.page(number), *found]
        if len(found) < limit:
            found = [*first, *found]
        return found[-limit:]

    def _numbered(self, number: int) -> tuple[Mapping[str, str], list[Element]]:
        more = {"page": number + 1} if number else {}
        return self._get(self._url, {**self._query, "per_page": PAGE, **more})

    def _get(self, url: str, query: dict[str, Any]) -> tuple[Mapping[str, str], list[Element]]:
        headers, rows = self._requester.requestJsonAndCheck("GET", url, query or None)
        # What is said to be complete is never asked for again: what the list lacks is None.
        is_completable = issubclass(self._kind, CompletableGithubObject)
        known: dict[str, Any] = {"completed": True} if is_completable else {}
        found = [self._kind(self._requester, headers, row, **known) for row in rows or ()]
        return links_of(headers), found


class RowsReadOnce(Generic[Element]):
    """A list for those who look through it one after another: each page is asked for once, when the
    first of them reaches it. For one thread, and for as long as it need not be newer."""

    def __init__(self, listing: Iterable[Element]) -> None:
        self._read: list[Element] = []
        self._rest = iter(listing)

    def __iter__(self) -> Iterator[Element]:
        for index in count():
            while index >= len(self._read):
                more = next(self._rest, None)
                if more is None:
                    return
                self._read.append(more)
            yield self._read[index]


def _written(value: Any) -> Any:
    """As the API takes it: a moment in UTC, in whole seconds."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return value


def links_of(headers: Mapping[str, Any]) -> dict[str, str]:
    """The addresses of other pages of an answer's list, by their relation: "next", "last"."""
    links = parse_header_links(str(headers.get("link") or ""))
    return {link["rel"]: link["url"] for link in links if "rel" in link}


def page_number(url: str) -> int:
    """The page, counted from 0, that an address of a list asks for."""
    return int(parse_qs(urlsplit(url).query)["page"][0]) - 1
