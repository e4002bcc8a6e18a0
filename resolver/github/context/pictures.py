"""Fetches the pictures in the texts of an issue, but only those uploaded to GitHub.

A picture on another host may have been replaced since the requester saw it, and fetching it would
tell the host's owner that Resolver read the issue. SVG is not supported, because it can contain
scripts. Source:
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/attaching-files

The type and size of a picture are read from its header, without decoding it.
"""

import base64
import io
import re
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal
from urllib.parse import unquote, urlsplit

import github
import imagesize
import requests
from github.Requester import Requester

from resolver.github.client.access import GitHubAccess
from resolver.github.client.downloads import DownloadRefusal, download
from resolver.github.text.links import MAX_ALT_CHARACTERS, PictureLink
from resolver.github.text.markdown import shorten_text
from resolver.models.issue_context import Picture

Kind = Literal["png", "jpeg", "gif", "webp"]

_SIGNATURES: Mapping[Kind, re.Pattern[bytes]] = {
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8[79]a"),
    "webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


@dataclass(frozen=True)
class ImageHead:
    """The type of a picture, and its width and height in pixels according to the file."""

    kind: Kind
    width: int
    height: int


def image_head(data: bytes) -> ImageHead | None:
    """Return type and size, None for anything but a PNG, JPEG, GIF or WebP with a size."""
    kind = next((kind for kind, start in _SIGNATURES.items() if start.match(data)), None)
    if kind is None:
        return None
    try:
        width, height = imagesize.get(io.BytesIO(data), exif_rotation=False)
    except (ValueError, struct.error, IndexError):
        return None
    return ImageHead(kind, width, height) if width > 0 and height > 0 else None


MAX_PICTURES = 4
"""Default number of pictures that are fetched."""

MAX_BYTES = 2 * 1024 * 1024
"""Maximum size of a picture in bytes, chosen for the limits of model providers and of the log."""

MAX_TOTAL_BYTES = 4 * 1024 * 1024
"""Maximum size of all pictures of a task in bytes."""

MAX_SIDE = 8_000
"""Maximum width and height in pixels."""
MAX_PIXELS = 40_000_000
"""Maximum of width times height: a small file may decompress to a huge picture."""

TIMEOUT_SECONDS = 15.0
"""Timeout for a picture in seconds."""

_MEDIA_TYPE_WITH_HTML = "application/vnd.github.full+json"
"""Media type for texts with their HTML, in which the URLs of uploads work without a login."""

_UPLOAD = re.compile(
    r"/user-attachments/assets/[\w-]{1,100}|/[\w.-]+/[\w.-]+/assets/\d+/[\w.-]{1,200}"
    r"|/(?:storage/)?user/\d+/files/[\w.-]{1,200}"
)
_UPLOAD_HOSTS = frozenset(
    {"user-images.githubusercontent.com", "private-user-images.githubusercontent.com"}
)
_UPLOAD_STORE_HOST = re.compile(r"github-production-user-asset-[0-9a-f]{1,20}\.s3\.amazonaws\.com")
_IDENTITY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class PictureHosts:
    """The hosts that pictures are fetched from.

    server_url: URL of the GitHub server.
    trusted_hosts: other hosts that the operator trusts, with their port if it is not the default.
    """

    server_url: str
    trusted_hosts: tuple[str, ...] = ()

    def is_own(self, url: str) -> bool:
        """Return True if the URL is one of the GitHub server itself."""
        server, parsed = urlsplit(self.server_url), urlsplit(url)
        return (server.scheme, server.netloc.casefold()) == (
            parsed.scheme,
            parsed.netloc.casefold(),
        )

    def holds_upload(self, url: str) -> bool:
        """Return True if the URL is that of an upload, whose content can't be replaced.

        All URLs on the operator's hosts count as such.
        """
        parts = _parts(url)
        if parts is None:
            return False
        host, path = parts
        if self.is_own(url):
            return bool(_UPLOAD.fullmatch(path))
        if host in self.trusted_hosts:
            return True
        is_upload_host = (
            host in _UPLOAD_HOSTS or host == f"media.{urlsplit(self.server_url).hostname}"
        )
        return is_upload_host and urlsplit(url).scheme == "https"

    def may_lead_to(self, url: str) -> bool:
        """Return True if the URL of an upload may redirect to this URL."""
        parts = _parts(url)
        if parts is None or self.holds_upload(url):
            return parts is not None
        host, _ = parts
        is_store = host.endswith(".githubusercontent.com") or bool(
            _UPLOAD_STORE_HOST.fullmatch(host)
        )
        return host in self.trusted_hosts or (is_store and urlsplit(url).scheme == "https")


def _parts(url: str) -> tuple[str, str] | None:
    """Return host (with its port) and path, None if it is not a plain HTTP(S) URL."""
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in {"http", "https"} and bool(parts.hostname)
        if not is_plain or parts.username is not None or "\\" in url or parts.port == 0:
            return None
        # `..` could lead from a URL with a commit id to one whose content can be replaced.
        if {".", ".."} & set(unquote(parts.path).split("/")):
            return None
    except ValueError:
        return None
    return parts.netloc.casefold(), parts.path


@dataclass
class PictureReader:
    """Fetches pictures.

    requester: asks the API for the HTML of the texts that contain the pictures.
    """

    access: GitHubAccess
    requester: Requester
    hosts: PictureHosts
    clock: Callable[[], float] = time.monotonic
    _pages: dict[str, list[str]] = field(default_factory=dict)

    def read(self, links: Sequence[PictureLink]) -> tuple[Picture, ...]:
        """Return all pictures in order, of which some have been fetched.

        Those of the first text are fetched first, then the newest of the others.
        """
        uploads = [link for link in links if self.hosts.holds_upload(link.url)]
        first_text = uploads[0].api_path if uploads else ""
        chosen = [link for link in uploads if link.api_path == first_text]
        chosen += [link for link in reversed(uploads) if link.api_path != first_text]
        fetched: dict[int, Picture] = {}
        remaining_bytes = MAX_TOTAL_BYTES
        for link in chosen[:MAX_PICTURES]:
            picture = self._picture(link, min(remaining_bytes, MAX_BYTES))
            fetched[link.number] = picture
            remaining_bytes -= len(picture.data) * 3 // 4
        return tuple(fetched.get(link.number) or self._left_out(link) for link in links)

    def _left_out(self, link: PictureLink) -> Picture:
        is_upload = self.hosts.holds_upload(link.url)
        return _picture(
            link,
            f"at most {MAX_PICTURES} are" if is_upload else "only uploads to GitHub are fetched",
        )

    def _picture(self, link: PictureLink, max_bytes: int) -> Picture:
        try:
            data = download(
                self._signed_url(link),
                max_bytes,
                TIMEOUT_SECONDS,
                token_for=lambda url: self.access.token if self.hosts.is_own(url) else None,
                is_allowed=self.hosts.may_lead_to,
                clock=self.clock,
            )
        except DownloadRefusal as error:
            return _picture(link, str(error))
        except (requests.RequestException, ValueError) as error:
            return _picture(link, f"its host did not answer ({type(error).__name__})")
        head = image_head(data)
        if head is None:
            return _picture(link, "it is not a PNG, JPEG, GIF or WebP image")
        if max(head.width, head.height) > MAX_SIDE or head.width * head.height > MAX_PIXELS:
            return _picture(link, f"it is {head.width} by {head.height} pixels")
        encoded = base64.b64encode(data).decode()
        return _picture(link).model_copy(
            update={
                "kind": head.kind,
                "width": head.width,
                "height": head.height,
                "data": f"data:image/{head.kind};base64,{encoded}",
            }
        )

    def _signed_url(self, link: PictureLink) -> str:
        """Return the URL that the HTML of the text has for the picture.

        It contains a token that is valid for some minutes, so it works without a login.
        """
        identity = _IDENTITY.search(link.url)
        if identity is None or not self.hosts.is_own(link.url):
            return link.url
        if link.api_path not in self._pages:
            self._pages[link.api_path] = self._fetch_image_urls(link.api_path)
        signed_urls = (
            url for url in self._pages[link.api_path] if identity[0] in urlsplit(url).path
        )
        return next((url for url in signed_urls if self.hosts.may_lead_to(url)), link.url)

    def _fetch_image_urls(self, api_path: str) -> list[str]:
        try:
            _, answer = self.requester.requestJsonAndCheck(
                "GET", api_path, headers={"Accept": _MEDIA_TYPE_WITH_HTML}
            )
        except github.GithubException:
            return []
        parser = _ImageUrlParser()
        parser.feed(str(answer.get("body_html") or ""))
        return parser.found


class _ImageUrlParser(HTMLParser):
    """Collects the URLs of the pictures of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.found.extend(value for name, value in attrs if name == "src" and value)


def _picture(link: PictureLink, reason: str = "") -> Picture:
    parts = _parts(link.url)
    return Picture(
        number=link.number,
        where=link.text_name,
        author=link.author,
        alt=shorten_text(link.alt, MAX_ALT_CHARACTERS),
        host=shorten_text(parts[0], 100) if parts else "",
        why_not=reason,
    )
