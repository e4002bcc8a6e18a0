"""Tests of the page of a run: its readers, and its content during the run and after it."""

import http.client
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from fastapi.testclient import TestClient
from obstore.store import MemoryStore
from playwright.sync_api import Browser, ViewportSize

from resolver.config.server_variables import read_server_variables
from resolver.entrypoints.webhook.login import PageLogin
from resolver.entrypoints.webhook.run_pages import RunPages, add_run_pages
from resolver.entrypoints.webhook.webhook import create_webhook_app
from resolver.errors import UsageError
from resolver.events.base import EventBase
from resolver.runs.output import StoredRequest
from resolver.storage.earlier_runs import OUTCOME, REQUEST
from resolver.storage.run_store import RunStore
from resolver.trace.html import render_update
from resolver.trace.steps import build_view
from tests.github import reports
from tests.parts.stored_runs import write_run
from tests.trace.sample import HOSTILE, hostile, realistic
from tests.webhook.github_users import BASE, SECRET, GitHub, log_in
from tests.webhook.serving import ServedApp

IDS = "(steps) => steps.map((step) => step.id)"
RUN = "20260304-093000-0a1b2c"
TRIGGER = reports.trigger().model_copy(update={"repository": "octo/calc"})


class Answer:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status = answer.status
        self.body = answer.read().decode()
        self.headers = {n.lower(): v for n, v in answer.getheaders() if n.lower() != "date"}


class Served(ServedApp):
    """The application with the pages of a store, on a socket, for somebody who has logged in."""

    def __init__(self) -> None:
        self.objects = MemoryStore()
        self.store = RunStore(self.objects)
        app, github = create_webhook_app(SECRET, lambda *_: ""), GitHub()
        login = PageLogin(github.users, BASE, SECRET)
        login.add_to(app)
        pages = RunPages(self.store, login, follow_seconds=0.02)
        add_run_pages(app, pages, lambda *_: None)
        with TestClient(app, BASE) as client:
            log_in(client, github)
            [cookie] = client.cookies.items()
        self.headers = {"Cookie": "=".join(cookie)}
        super().__init__(app)

    def write(self, events: Iterable[EventBase], ended: bool = False, outcome: str = "{}") -> None:
        request = StoredRequest(run=RUN, trigger=TRIGGER)
        files = {REQUEST: request.model_dump_json(), **({OUTCOME: outcome} if ended else {})}
        write_run(self.store, RUN, events, files)

    @contextmanager
    def open(self, path: str = f"/runs/{RUN}", **headers: str) -> Iterator[Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers={**self.headers, **headers})
        with closing(connection), closing(connection.getresponse()) as answer:
            yield answer

    def page(self) -> Answer:
        with self.open() as answer:
            return Answer(answer)


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


def test_a_public_address_is_one_and_is_taken_without_its_last_slash() -> None:
    for url in ("https://r.example.org/", "http://[::1]:8000"):
        assert read_server_variables({"RESOLVER_PUBLIC_URL": url}).public_url == url.rstrip("/")
    for url in ("resolver.example.org", "https://u:p@x", "https://x?a", "javascript:alert(1)"):
        with pytest.raises(UsageError, match="RESOLVER_PUBLIC_URL"):
            read_server_variables({"RESOLVER_PUBLIC_URL": url})


def test_the_page_shows_what_the_log_says_so_far(served: Served) -> None:
    served.write([])
    assert "The run has started" in served.page().body
    served.write(realistic()[:8])
    served.objects.put(f"{RUN}/log/00000099-00000008", b'{"kind": "nonsense"\n')
    page = served.page()
    assert page.status == 200 and "parse_date crashes on two-digit years" in page.body
    assert '<meta http-equiv="refresh" content="10">' in page.body
    assert "The run is in progress" in page.body
    assert "The log is damaged after these steps." in page.body
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
def test_hostile_text_in_a_log_stays_text(served: Served) -> None:
    """A log contains scripts: the run's page and its updates show them as text."""
    events = [event for text in HOSTILE for event in hostile(text)]
    served.write(events)
    page, update = served.page().body, render_update(build_view([]), build_view(events))
    assert page.count("<script") == 2 and "<script" not in update
    assert page.count("<form") == 1, "that of the commands"
    for html in (page, update):
        assert "&lt;script&gt;" in html
        assert not re.search(r"<(iframe|object|embed|base|link)\b|\bon\w+=\"", html)


def steps_in(html: str | None) -> list[int]:
    found = re.findall(r'<li class="step [^"]*" id="step-(\d+)"', html or "")
    return [int(number) for number in found]


def test_a_stream_resumes_after_the_last_event_id_and_ends_with_the_run(served: Served) -> None:
    events = realistic()
    served.write(events)
    last_id = str(events[len(events) // 2].id)
    with served.open(f"/runs/{RUN}/events?after=0", **{"Last-Event-ID": last_id}) as answer:
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


@pytest.mark.chromium
def test_in_a_browser_steps_appear_as_they_happen_until_the_run_ends(
    served: Served, chromium: Browser
) -> None:
    events = realistic()
    served.write(events[:8])
    viewport: ViewportSize = {"width": 390, "height": 900}
    context = chromium.new_context(viewport=viewport, extra_http_headers=served.headers)
    page = context.new_page()
    problems: list[str] = []
    requested_urls: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: requested_urls.append(request.url))
    page.goto(f"http://127.0.0.1:{served.port}/runs/{RUN}")
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
