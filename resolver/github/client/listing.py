"""Read lists of GitHub's REST API at one request per page.

PyGithub requests an element of its own lists again as soon as its raw data, or an attribute that
the list lacks, is read: a conversation of 100 comments would cost 101 requests. The lists here take
each element as complete. Source:
https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api
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
"""Elements per page, the maximum that GitHub allows."""

Element = TypeVar("Element", bound=GithubObject)


class Listing(Generic[Element]):
    """The list at `url`, with elements of one type. No request is sent before it is iterated.

    Its methods raise what `GitHubAccess.asking` converts into a ForgeError.

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
        self._query = {name: _written(v) for name, v in query.items() if v is not None}

    def __iter__(self) -> Iterator[Element]:
        """Yield the elements in the list's order. A page is requested when it is reached."""
        url, query = self._url, {**self._query, "per_page": PAGE}
        while url:
            links, elements = self._get(url, query)
            yield from elements
            url, query = links.get("next", ""), {}

    def page(self, number: int) -> list[Element]:
        """Return the elements of one page, counted from 0."""
        return self._numbered(number)[1]

    def newest(self, limit: int) -> list[Element]:
        """Return the last `limit` elements of a list that is sorted oldest first, oldest first.

        A list of one page costs one request, any other the first page and the pages with these
        elements.
        """
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
        """Return the links and the elements of one page, counted from 0."""
        more = {"page": number + 1} if number else {}
        return self._get(self._url, {**self._query, "per_page": PAGE, **more})

    def _get(self, url: str, query: dict[str, Any]) -> tuple[Mapping[str, str], list[Element]]:
        """Return the links and the elements of the page at an address."""
        headers, rows = self._requester.requestJsonAndCheck("GET", url, query or None)
        # PyGithub never requests an element again that is marked as completed: attributes that the
        # list lacks are None.
        is_completable = issubclass(self._kind, CompletableGithubObject)
        known: dict[str, Any] = {"completed": True} if is_completable else {}
        found = [self._kind(self._requester, headers, row, **known) for row in rows or ()]
        return links_of(headers), found


class RowsReadOnce(Generic[Element]):
    """Caches the elements of a list, so that several loops over it request each page only once.

    Not thread-safe. The elements are as old as the first request.
    """

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
