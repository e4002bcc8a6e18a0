"""Tests of the page of a run: its readers, and its content during the run and after it."""

import http.client
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore
from playwright.sync_api import Browser

from resolver.config.server_variables import read_server_variables
from resolver.config.settings import load_settings
from resolver.entrypoints.webhook.page_links import page_key, page_url
from resolver.entrypoints.webhook.run_pages import (
    RunPages,
    add_run_pages,
)
from resolver.entrypoints.webhook.webhook import create_webhook_app
from resolver.errors import UsageError
from resolver.events.base import EventBase
from resolver.storage.earlier_runs import OUTCOME
from resolver.storage.run_store import RunStore
from resolver.trace.html import render_update
from resolver.trace.steps import build_view
from tests.parts.stored_runs import write_run
from tests.trace.sample import HOSTILE, hostile, realistic
from tests.webhook.serving import ServedApp

SECRET = "webhook-canary-51c7e9d3f0a28b46"
NOWHERE = RunStore(MemoryStore())
IDS = "(steps) => steps.map((step) => step.id)"
RUN = "20260304-093000-0a1b2c"
ids = st.from_regex(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}", fullmatch=True)


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.body = answer.read().decode()
        self.headers = {n.lower(): v for n, v in answer.getheaders() if n.lower() != "date"}


def get(port: int, path: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        return Answer(connection.getresponse())
    finally:
        connection.close()


class Served(ServedApp):
    """The application with the pages of a store, on a socket."""

    def __init__(self) -> None:
        self.objects = MemoryStore()
        self.store = RunStore(self.objects)
        pages = RunPages(self.store, SECRET, follow_seconds=0.02)
        app = create_webhook_app(SECRET, lambda *_: "")
        add_run_pages(app, pages)
        super().__init__(app)

    def write(self, events: Iterable[EventBase], ended: bool = False, outcome: str = "{}") -> None:
        write_run(self.store, RUN, events, {OUTCOME: outcome} if ended else {})

    def path(self, run: str = RUN) -> str:
        return page_url("http://x", SECRET, run).removeprefix("http://x")

    def page(self, run: str = RUN) -> Answer:
        return get(self.port, self.path(run))


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


@pytest.mark.attack
@given(ids, ids, st.text(min_size=1), st.text(min_size=1))
def test_a_key_opens_its_own_run_alone(run: str, other: str, secret: str, word: str) -> None:
    """Somebody uses the key of a run's page for the page of another: it opens its own run only."""
    try:
        pages = RunPages(NOWHERE, secret)
        key = page_key(secret, run)
    except UnicodeEncodeError:
        return  # no secret that a variable of the environment can hold
    assert re.fullmatch(r"[0-9a-f]{64}", key) and pages.is_page_key(run, key)
    assert pages.is_page_key(other, key) == (other == run)
    assert not pages.is_page_key(run, word) and not pages.is_page_key(run, key[:-1])
    assert not RunPages(NOWHERE, secret + "x").is_page_key(run, key)


@pytest.mark.attack
@given(st.text() | st.from_regex(r"\.\.(/|\\).*") | ids.map(lambda id: f"{id}\n"))
def test_what_is_no_run_s_id_is_never_opened(word: str) -> None:
    """The address of a run's page contains a path: no file is opened for it."""
    form = re.fullmatch(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}", word, re.ASCII) is not None
    assert RunPages(NOWHERE, SECRET).is_page_key(word, page_key(SECRET, word)) == form


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://r.example.org/", "https://r.example.org"),
        ("http://127.0.0.1:8000/resolver", "http://127.0.0.1:8000/resolver"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        *((url, "") for url in (
            "resolver.example.org", "ftp://x", "https://", "https://u:p@x", "https://x?a",
            "https://x/ y", "javascript:alert(1)", "https://x)y", "https://x/#a",
        )),
    ],
)  # fmt: skip
def test_a_public_address_is_one_and_is_taken_without_its_last_slash(url: str, kept: str) -> None:
    if kept:
        assert read_server_variables({"RESOLVER_PUBLIC_URL": url}).public_url == kept
        assert page_url(kept, SECRET, RUN).startswith(f"{kept}/runs/{RUN}?key=")
    else:
        with pytest.raises(UsageError, match="RESOLVER_PUBLIC_URL"):
            read_server_variables({"RESOLVER_PUBLIC_URL": url})
    with pytest.raises(UsageError):
        load_settings({}, {}, {"public_url": url})


def test_the_page_shows_what_the_log_says_so_far(served: Served) -> None:
    served.write([])
    assert "The run has started" in served.page().body
    served.write(realistic()[:8])
    served.objects.put(f"{RUN}/log/00000099-00000008", b'{"kind": "nonsense"\n')
    page = served.page()
    assert page.status == 200 and "parse_date crashes on two-digit years" in page.body
    assert '<meta http-equiv="refresh" content="10">' in page.body
    assert "The run is in progress" in page.body
    assert "1 line of the log could not be read and is omitted." in page.body
    assert "All runs" not in page.body  # a list that needs a login which there is not
    served.write(realistic(), ended=True)
    page = served.page()
    assert 'http-equiv="refresh"' not in page.body and "in progress" not in page.body
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    served.store.remove(RUN.__eq__)
    served.write([], ended=True)
    assert "ended before its first step" in served.page().body


@pytest.mark.parametrize("url", ["https://github.example/octo/calc/pull/9", "javascript:alert(1)"])
def test_the_page_of_a_finished_run_begins_with_its_pull_request(served: Served, url: str) -> None:
    pull = {"title": "Fix <it>", "body": "", "number": 9, "url": url}
    served.write(realistic(), True, json.dumps({"run": RUN, "pull_request": pull}))
    shown = "Pull request #9: Fix &lt;it&gt;</a>" in served.page().body.partition('id="status"')[0]
    assert shown == url.startswith("https")


def test_nothing_may_keep_it_find_it_frame_it_or_run_in_it(served: Served) -> None:
    served.write(realistic())
    headers = served.page().headers
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; "
        r"script-src 'sha256-[A-Za-z0-9+/]{43}=' 'sha256-[A-Za-z0-9+/]{43}='; img-src data:; "
        r"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        headers["content-security-policy"],
    )
    assert headers["x-robots-tag"] == "noindex, nofollow"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.attack
def test_a_wrong_key_no_key_and_no_such_run_are_answered_alike(served: Served) -> None:
    """Somebody guesses the address of a run's page: every wrong guess gets the same answer."""
    served.write(realistic())
    unknown = "20260304-093000-ffffff"
    served.objects.put("notes/log/00000000-00000000", b"{}")
    answers = [
        get(served.port, path)
        for path in (
            f"/runs/{RUN}",
            f"/runs/{RUN}?key=",
            f"/runs/{RUN}?key={page_key(SECRET, unknown)}",
            f"/runs/{RUN}?key={quote('é€')}",
            f"{served.path()}&key=x",
            f"/runs/{RUN}/events?key=x",
            served.path(unknown),
            served.path("notes"),
            f"/runs/%2e%2e?key={page_key(SECRET, '..')}",
            f"/runs/..%2f..%2fetc?key={page_key(SECRET, '../../etc')}",
            f"/runs/{RUN}%00?key={page_key(SECRET, RUN + chr(0))}",
            f"/runs/{RUN}%0a?key={page_key(SECRET, RUN + chr(10))}",
        )
    ]
    assert {(answer.status, answer.body) for answer in answers} == {(404, '{"detail":"Not Found"}')}
    assert len({json.dumps(answer.headers) for answer in answers}) == 1


@pytest.mark.attack
def test_hostile_text_in_a_log_stays_text(served: Served) -> None:
    """A log contains scripts: the run's page and its updates show them as text."""
    events = [event for text in HOSTILE for event in hostile(text)]
    served.write(events)
    page, update = served.page().body, render_update(build_view([]), build_view(events))
    assert page.count("<script") == 2 and "<script" not in update
    for html in (page, update):
        assert "&lt;script&gt;" in html
        assert not re.search(r"<(iframe|object|embed|form|base|link)\b|\bon\w+=\"", html)


def steps_in(html: str | None) -> list[int]:
    found = re.findall(r'<li class="step [^"]*" id="step-(\d+)"', html or "")
    return [int(number) for number in found]


def test_a_stream_resumes_after_the_last_event_id_and_ends_with_the_run(served: Served) -> None:
    events = realistic()
    served.write(events)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    address = served.path().replace("?", "/events?") + "&after=0"
    connection.request("GET", address, headers={"Last-Event-ID": str(events[len(events) // 2].id)})
    answer = connection.getresponse()
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["x-accel-buffering"] == "no"
    received = b""
    while f"id: {events[-1].id}".encode() not in received:
        received += answer.readline()
    served.write(events, ended=True)
    received += answer.read()
    assert received.count(b"event: update") == 1 and received.endswith(
        b"event: reload\r\ndata: \r\n\r\n"
    )
    numbers = steps_in(received.decode())
    assert numbers and 1 not in numbers
    connection.close()


@pytest.mark.chromium
def test_in_a_browser_steps_appear_as_they_happen_until_the_run_ends(
    served: Served, chromium: Browser
) -> None:
    events = realistic()
    served.write(events[:8])
    context = chromium.new_context(viewport={"width": 390, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    requested_urls: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requested_urls.append(request.url))
    page.goto(f"http://127.0.0.1:{served.port}{served.path()}")
    page.locator("#connection", has_text="live").wait_for()
    assert page.locator("#follow").is_checked()
    shown = page.locator("li.step").count()
    served.write(events[:-2])
    page.locator("li.step").nth(shown).wait_for()
    page.locator("nav li li", has_text="Reply not followed").wait_for()
    steps = [step_id.removeprefix("step-") for step_id in page.locator("li.step").evaluate_all(IDS)]
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    loads = len([address for address in requested_urls if "/events" not in address])
    hostile_events = [e for text in HOSTILE for e in hostile(text)]
    served.write([*events, *hostile_events], ended=True)
    page.locator("#tools:visible:not(:has(#follow))").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("meta[http-equiv=refresh]").count() == 0
    remote = [
        u for u in requested_urls if not u.startswith("data:") and not u.endswith("favicon.ico")
    ]
    assert len({address.partition("?")[0] for address in remote}) == 2 and loads == 1
    assert [problem for problem in problems if "favicon" not in problem] == []
    context.close()
