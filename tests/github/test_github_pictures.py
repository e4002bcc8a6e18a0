"""Tests of fetching pictures only from where uploads are stored."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from resolver.github.client.downloads import DownloadRefusal, download
from resolver.github.context.pictures import MAX_BYTES, PictureHosts
from resolver.github.github_forge import GitHubForge
from resolver.models.issue_context import Picture
from resolver.models.run import Task
from tests.github.test_github_reading import NAME, ask, forge_for, issue
from tests.github.test_image_head import png
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.github_server.uploads import FILES, File
from tests.parts.wsgi import serve

__all__ = ["issue"]

PNG = png(8, 6) + bytes(100)


Read = Callable[..., Task]


@pytest.fixture(autouse=True)
def files_host(github: GitHubServer) -> None:
    github.world.files_host = f"localhost:{github.port}"


@pytest.fixture
def read(github: GitHubServer, issue: Issue) -> Read:
    """Sets the issue's text, asks, and reads."""

    def reading(body: str) -> Task:
        github.edit_issue(issue, body=body)
        return forge(github).read(ask(github, issue))

    return reading


def forge(github: GitHubServer, token: str = "") -> GitHubForge:
    """One that knows where the test server keeps its files."""
    return GitHubForge(forge_for(github, token)._access, NAME, (github.world.files_host,))


def url(github: GitHubServer, file: bytes | File) -> str:
    return f"{github.server_url}{github.upload(file)}"


def asked_for(github: GitHubServer) -> list[Any]:
    return [request for request in github.requests if request.kind == "file"]


def only(task: Task) -> Picture:
    [picture] = task.pictures
    return picture


def test_an_upload_is_fetched_from_the_signed_address(github: GitHubServer, read: Read) -> None:
    task = read(f"look:\n\n![the screen]({url(github, PNG)})")
    picture = only(task)
    assert task.body == "look:\n\n[picture 1]"
    assert (picture.kind, picture.width, picture.height) == ("png", 8, 6)
    assert (picture.alt, picture.author, picture.why_not) == ("the screen", "mallory", "")
    assert picture.data.startswith("data:image/png;base64,iVBOR")
    [request] = asked_for(github)
    assert "jwt" in request.query
    assert "authorization" not in request.headers


@pytest.mark.attack
def test_the_token_is_sent_only_to_github(github: GitHubServer, issue: Issue, read: Read) -> None:
    """A picture's address redirects to another host: the token is not sent there."""
    shown = url(github, PNG)
    github.edit_issue(issue, body=f"![a]({shown})")
    trigger = ask(github, issue, "@agent fix it")
    github.edit_issue(issue, body="gone by now")
    assert only(forge(github).read(trigger)).kind == "png"
    first, second = asked_for(github)
    assert first.headers["authorization"].startswith("Bearer ")
    assert (second.headers["host"], "authorization" in second.headers) == (
        f"localhost:{github.port}",
        False,
    )


SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.mark.parametrize(
    ("file", "why"),
    [
        (File(SVG, headers={"Content-Type": "image/png"}), "not a PNG, JPEG, GIF or WebP"),
        (File(PNG + bytes(MAX_BYTES)), "too large"),
        (File(png(60_000, 60_000)), "60000 by 60000 pixels"),
        (File(png(7_000, 7_000)), "7000 by 7000 pixels"),
        (File(PNG, headers={"Content-Encoding": "gzip"}), "compressed"),
        (File(location="http://169.254.169.254/latest/meta-data/"), "nothing is fetched from"),
    ],
)
def test_pictures_of_other_hosts_are_not_fetched_and_reported(
    github: GitHubServer, read: Read, file: File, why: str
) -> None:
    picture = only(read(f"![x]({url(github, file)})"))
    assert picture.data == ""
    assert why in picture.why_not


@pytest.mark.attack
def test_other_addresses_are_never_requested(github: GitHubServer, read: Read) -> None:
    """A picture's address leads to the machine or a private network: it is never requested."""
    task = read("![x](<http://127.0.0.1/x.png>)")
    assert [picture.why_not for picture in task.pictures] == ["only uploads to GitHub are fetched"]
    assert asked_for(github) == []
    assert "![" not in task.body


def test_the_number_and_total_size_of_pictures_are_limited(
    github: GitHubServer, read: Read
) -> None:
    large = png(8, 6) + bytes(MAX_BYTES - 1000)
    task = read(" ".join(f"![x]({url(github, large)})" for _ in range(6)))
    assert [bool(picture.data) for picture in task.pictures] == [True] * 2 + [False] * 4
    assert task.pictures[2].why_not == "it is too large"
    assert task.pictures[5].why_not == "at most 4 are"


RAW = f"https://raw.githubusercontent.com/o/n/{'a' * 40}"


@pytest.mark.attack
@pytest.mark.parametrize(
    ("own", "leads", "addresses"),
    [
        (
            True,
            True,
            """https://github.com/user-attachments/assets/0a-b https://github.com/o/n/assets/12/0a-b
            https://user-images.githubusercontent.com/1/2.png https://files.example:8443/x""",
        ),
        (
            False,
            True,
            f"""{RAW}/x.png https://objects.githubusercontent.com/x
            https://github-production-user-asset-6210df.s3.amazonaws.com/1/2""",
        ),
        (
            False,
            False,
            f"""https://evil.s3.amazonaws.com/1/2 http://user-images.githubusercontent.com/1/2.png
            http://github.com/user-attachments/assets/x http://a@127.0.0.1/ http://[::1]/
            https://github.com:444/user-attachments/assets/x https://evil.example/a.png
            https://github.com\\@evil.example/user-attachments/assets/x https://[bad/x
            https://github.com.evil.example/user-attachments/assets/x http://localhost:1/x
            https://user-images.githubusercontent.com@evil.example/a.png //evil.example/a.png
            https://evilgithubusercontent.com/x {RAW}/../main/x.png {RAW}/%2E./main/x.png
            https://github.com/../../assets/1/x data:image/png;base64,iVBORw0KGgo=
            ftp://127.0.0.1/a.png file:///etc/passwd /user-attachments/assets/x""",
        ),
    ],
)
def test_pictures_are_fetched_from_the_hosts_of_uploads_alone(
    own: bool, leads: bool, addresses: str
) -> None:
    """A picture's address resembles that of an upload, or has another scheme: it is another."""
    hosts = PictureHosts("https://github.com", ("files.example:8443",))
    for address in addresses.split():
        assert (hosts.holds_upload(address), hosts.may_lead_to(address)) == (own, leads), address


@contextmanager
def dripping(stop: threading.Event) -> Iterator[str]:
    """A host whose answer never ends."""

    def app(_: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", [("Content-Type", "image/png")])
        while not stop.wait(0.01):
            yield b"x" * 1024

    with serve(app) as address:
        yield f"http://127.0.0.1:{address.port}/"
        stop.set()


@pytest.mark.attack
def test_an_endless_response_is_abandoned(github: GitHubServer) -> None:
    """A picture never ends: the download is abandoned."""
    ticks = iter(range(10_000))
    with dripping(threading.Event()) as address, pytest.raises(DownloadRefusal, match="too slow"):
        download(address, 10**9, 1.0, lambda _: "", lambda _: True, clock=lambda: next(ticks))


def test_endless_redirects_are_abandoned(github: GitHubServer) -> None:
    loop = f"{github.server_url}{FILES}loop"
    github.add_file("loop", File(location=loop))
    with pytest.raises(DownloadRefusal, match="too many times"):
        download(loop, 10, 5.0, lambda _: "", lambda _: True)
