"""Fetching a file that lies beside the API: bounded, and only from where it may lie.

Every hop is judged before it is made; a token is shown to nobody but whom the caller names.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

_HOPS = 4
_CHUNK = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class DownloadRefusal(Exception):
    """It was not fetched; the text says why, for a person, and quotes nothing of the answer."""


@dataclass(frozen=True)
class Download:
    """most: bytes that are read. timeout: seconds without an answer; all of it may take four times
    as long. end: bytes of the end of what was read that are kept at least; 0 for all, and then
    what is longer than `most` is refused."""

    most: int
    timeout: float
    end: int = 0


def download(
    url: str,
    want: Download,
    token_for: Callable[[str], str],
    allows: Callable[[str], bool],
    clock: Callable[[], float] = time.monotonic,
    retry: Retry | None = None,
) -> bytes:
    """The file's bytes, or the end of them. Raises Refusal, requests.RequestException, and
    ValueError where it leads to what is no address.

    token_for: the token that the address is shown, "" for none. allows: whether an address may
    be asked; the first one is not judged. retry: how often that one is.
    """
    deadline = clock() + 4 * want.timeout
    with requests.Session() as session:
        if retry is not None:
            session.mount(url, HTTPAdapter(max_retries=retry))
        for _ in range(_HOPS):
            token = token_for(url)
            headers = {"User-Agent": "resolver", "Accept-Encoding": "identity"}
            with session.get(
                url,
                headers={**headers, **({"Authorization": f"Bearer {token}"} if token else {})},
                auth=lambda request: request,  # so that no ~/.netrc says who we are
                timeout=want.timeout,
                stream=True,
                allow_redirects=False,
            ) as answer:
                if answer.status_code not in _REDIRECTS:
                    return _body(answer, want, deadline, clock)
                target = urljoin(url, answer.headers.get("Location", ""))
            session.cookies.clear()
            if not allows(target):
                raise DownloadRefusal("it leads to a host that nothing is fetched from")
            if urlsplit(target).scheme != "https" and urlsplit(url).scheme == "https":
                raise DownloadRefusal("it leads from a safe address to an unsafe one")
            url = target
    raise DownloadRefusal("it leads on and on")


def _body(
    answer: requests.Response, want: Download, deadline: float, clock: Callable[[], float]
) -> bytes:
    if answer.status_code != 200:
        raise DownloadRefusal(f"its host answered {answer.status_code}")
    if answer.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise DownloadRefusal("its host sent it compressed")
    claimed = answer.headers.get("Content-Length", "")
    if not want.end and claimed.isdecimal() and int(claimed) > want.most:
        raise DownloadRefusal("it is too large")
    chunks: deque[bytes] = deque()
    held = read = 0
    for chunk in _chunks(answer):
        read, held = read + len(chunk), held + len(chunk)
        chunks.append(chunk)
        if read > want.most:
            if not want.end:
                raise DownloadRefusal("it is too large")
            break
        if clock() > deadline:
            raise DownloadRefusal("its host is too slow")
        while want.end and held - len(chunks[0]) >= want.end:
            held -= len(chunks.popleft())
    return b"".join(chunks)


def _chunks(answer: requests.Response) -> Iterator[bytes]:
    """What has come by now, at most `_CHUNK` bytes a time: a host that sends a byte now and then
    must not keep the deadline from being looked at."""
    try:
        while chunk := answer.raw.read1(_CHUNK):
            yield chunk
    except HTTPError as error:
        raise requests.ConnectionError(str(error)) from error
