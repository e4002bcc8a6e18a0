"""Downloads a file that is not served by the API itself, with limits and from allowed hosts only.

Every redirect is checked before it is followed. The caller decides per address whether a token is
sent.
"""

import time
from collections.abc import Callable, Iterator
from urllib.parse import urljoin, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util import Retry

from resolver.github.client.failures import SERVER_ERROR_STATUSES

_MAX_REQUESTS = 4
"""Maximum number of requests for one download, redirects included."""

_CHUNK_BYTES = 64 * 1024
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


class DownloadRefusal(Exception):
    """The file was not fetched.

    The text says why, for a person, and quotes nothing of the answer.
    """


def download(
    url: str,
    max_bytes: int,
    timeout: float,
    token_for: Callable[[str], str | None],
    is_allowed: Callable[[str], bool],
    clock: Callable[[], float] = time.monotonic,
    attempts: int = 0,
    tail_bytes: int = 0,
) -> bytes:
    """Return the bytes of a file, or the end of them.

    Raises DownloadRefusal, requests.RequestException, or ValueError if a redirect leads to an
    invalid address.

    Args:
        url: Address of the file.
        max_bytes: Maximum number of bytes to read.
        timeout: Seconds to wait for an answer or for more data. The whole download may take four
            times as long.
        token_for: Returns the token to send to an address, if any.
        is_allowed: Returns whether a redirect to an address may be followed. `url` itself is not
            checked.
        clock: Returns monotonic seconds.
        attempts: How often the request to `url` is repeated after a failure of its host.
        tail_bytes: Keep only the end of the data, this many bytes. 0 keeps everything, and a file
            larger than `max_bytes` is refused.
    """
    deadline = clock() + 4 * timeout
    with requests.Session() as session:
        retry = Retry(
            attempts,
            status_forcelist=SERVER_ERROR_STATUSES,
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        session.mount(url, HTTPAdapter(max_retries=retry))
        for _ in range(_MAX_REQUESTS):
            token = token_for(url)
            headers = {"User-Agent": "resolver", "Accept-Encoding": "identity"}
            with session.get(
                url,
                headers={**headers, **({"Authorization": f"Bearer {token}"} if token else {})},
                auth=lambda request: request,  # otherwise requests sends credentials from ~/.netrc
                timeout=timeout,
                stream=True,
                allow_redirects=False,
            ) as response:
                if response.status_code not in _REDIRECT_STATUSES:
                    return _read_body(response, max_bytes, tail_bytes, lambda: clock() > deadline)
                target = urljoin(url, response.headers.get("Location", ""))
            # Cookies of one host are not sent to the next.
            session.cookies.clear()
            if not is_allowed(target):
                raise DownloadRefusal("it redirects to a host that nothing is fetched from")
            if urlsplit(target).scheme != "https" and urlsplit(url).scheme == "https":
                raise DownloadRefusal("it redirects from a safe address to an unsafe one")
            url = target
    raise DownloadRefusal("it redirects too many times")


def _read_body(
    response: requests.Response, max_bytes: int, tail_bytes: int, is_late: Callable[[], bool]
) -> bytes:
    """Read the answer's body within the limits."""
    if response.status_code != 200:
        raise DownloadRefusal(f"its host answered {response.status_code}")
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise DownloadRefusal("its host sent it compressed")
    content, read_bytes = bytearray(), 0
    for chunk in _chunks(response):
        read_bytes += len(chunk)
        content += chunk
        if read_bytes > max_bytes:
            if not tail_bytes:
                raise DownloadRefusal("it is too large")
            break
        if is_late():
            raise DownloadRefusal("its host is too slow")
        if tail_bytes:
            del content[:-tail_bytes]  # only the end is wanted
    return bytes(content)


def _chunks(response: requests.Response) -> Iterator[bytes]:
    """Yield the data as it arrives, at most `_CHUNK_BYTES` bytes at a time.

    `read1` returns what has arrived without waiting for a full chunk: otherwise a host that sends
    one byte now and then could delay the check of the deadline forever.
    """
    try:
        while chunk := response.raw.read1(_CHUNK_BYTES):
            yield chunk
    except HTTPError as error:
        raise requests.ConnectionError(str(error)) from error
