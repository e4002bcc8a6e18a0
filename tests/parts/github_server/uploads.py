"""Files that the test GitHub serves outside its API.

Uploads redirect a person who is logged in to an address that is valid for minutes. There are those
addresses, logs of jobs, and files that misbehave while they are downloaded.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markdown_it import MarkdownIt

from tests.parts.git_http import token_of
from tests.parts.github_server.exchange import Answer, Exchange
from tests.parts.github_server.state import World

PAGES = "/user-attachments/assets/"
STORE = "/private-user-images/"
OWN_STORE = "/storage/user/1/files/"
"""Where an Enterprise Server keeps uploads that it serves itself."""

FILES = "/files/"
FULL = "application/vnd.github.full+json"


@dataclass(frozen=True)
class Served:
    """An answer that is no JSON. body: sent as it is, whatever the headers claim."""

    answer: Answer
    body: bytes = b""


@dataclass
class File:
    """Something to be fetched: an address to be led to, or bytes with headers that may lie."""

    body: bytes = b""
    location: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


def is_file(path: str) -> bool:
    return path.startswith((PAGES, STORE, OWN_STORE, FILES))


def serve(world: World, exchange: Exchange) -> Served:
    """The file of that path. The page of an upload wants a login."""
    path = exchange.path
    if path.startswith(PAGES):
        token = world.tokens.get(token_of(exchange.headers.get("authorization", "")))
        name = path.removeprefix(PAGES)
        if token is None or name not in world.files:
            return Served(Answer(404))
        return Served(
            Answer(302, None, {"Location": signed(world, exchange.site.server_url, name)})
        )
    if path.startswith((STORE, OWN_STORE)) and "jwt" not in exchange.query:
        return Served(Answer(404))
    found = world.files.get(path.rpartition("/")[2].removeprefix("1-").removesuffix(".png"))
    if found is None:
        return Served(Answer(404))
    if found.location:
        return Served(Answer(302, None, {"Location": found.location}))
    kind = {"Content-Type": "application/octet-stream", **found.headers}
    return Served(Answer(200, None, kind), found.body)


def signed(world: World, server_url: str, name: str) -> str:
    """The address of an upload that anybody can use."""
    store = STORE if world.files_host else OWN_STORE
    return f"{world.files_url(server_url)}{store}1-{name}.png?jwt=e30.e30.e30"


def with_html(world: World, exchange: Exchange, answer: Answer) -> Answer:
    """With the HTML of a text, where it is asked for: its uploads have other addresses there."""
    document: Any = answer.document
    wanted = exchange.headers.get("accept") == FULL
    if not wanted or not isinstance(document, dict) or "body" not in document:
        return answer
    html = MarkdownIt("commonmark").render(document["body"] or "")
    page = re.escape(f"{exchange.site.server_url}{PAGES}")
    html = re.sub(rf"{page}([\w-]+)", lambda m: signed(world, exchange.site.server_url, m[1]), html)
    return Answer(answer.status, {**document, "body_html": html}, answer.headers)
