"""Tests of login to the server's pages, of the permissions for each run, and of attacks on them."""

import base64
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from itsdangerous import TimestampSigner
from obstore.store import MemoryStore

from resolver.entrypoints.webhook.login import REPOSITORIES_SECONDS, SESSION_SECONDS, PageLogin
from resolver.entrypoints.webhook.run_lists import RunLists, add_run_lists
from resolver.entrypoints.webhook.run_pages import RunPages, add_run_pages
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.output import StoredRequest
from resolver.storage.database import parse_database_url
from resolver.storage.earlier_runs import REQUEST
from resolver.storage.run_index import RunIndex
from resolver.storage.run_store import RunStore
from tests.parts.stored_runs import write_run
from tests.trace.sample import realistic
from tests.webhook.github_users import BASE, SECRET, GitHub, begin_login, log_in

OWN, READABLE, OTHER = (f"20260304-093000-{end}" for end in ("0a1b2c", "dddddd", "ffffff"))
UNKNOWN = "20260304-093000-aaaaaa"
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
COOKIE = "__Host-resolver-session"


@dataclass
class Served:
    """The application with a run in octo/calc, one in octo/docs and one in octo/secret."""

    client: TestClient
    github: GitHub
    sent: list[tuple[str, Trigger]] = field(default_factory=list)

    def get(self, path: str) -> Any:
        return self.client.get(path, follow_redirects=False)

    def post(self, run: str, **fields: str) -> Any:
        return self.client.post(f"/runs/{run}/commands", data=fields, follow_redirects=False)

    def form(self, run: str = OWN) -> dict[str, str]:
        """The hidden fields of the form on the page of a run."""
        page = self.get(f"/runs/{run}").text
        return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)"', page))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    index = RunIndex(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    store = RunStore(MemoryStore())
    for run, repository in ((OWN, "octo/calc"), (READABLE, "octo/docs"), (OTHER, "octo/secret")):
        trigger = Trigger(
            key=run, kind=TriggerKind.ISSUE_COMMENT, repository=repository, number=12,
            actor=Actor(login="hubot"), at=NOW,
        )  # fmt: skip
        request = StoredRequest(run=run, trigger=trigger)
        write_run(store, run, realistic()[:8], {REQUEST: request.model_dump_json()})
        index.put(run, trigger, {"title": f"In {repository}"})
    app, github = FastAPI(), GitHub()
    made = Served(TestClient(app, BASE, raise_server_exceptions=False), github)

    def enqueue(id: str, trigger: Trigger) -> None:
        made.sent.append((id, trigger))

    login = PageLogin(github.users, BASE, SECRET)
    login.add_to(app)
    add_run_lists(app, RunLists(index, BASE), login)
    add_run_pages(app, RunPages(store, login), enqueue)
    yield made
    index.close()


def test_a_person_logs_in_and_sees_the_runs_of_their_repositories_only(served: Served) -> None:
    assert served.get("/").headers["location"] == f"{BASE}/login?path=%2F"
    assert log_in(served.client, served.github, f"/runs/{OWN}") == f"{BASE}/runs/{OWN}"
    assert served.github.exchanged[0]["client_secret"] == "client-secret"
    page = served.get("/").text
    assert "In octo/calc" in page and "octo/secret" not in page and "filler" not in page
    assert served.get("/?repository=octo/secret").text.count("octo/secret") == 1, "the filter"
    assert "octo/secret" not in served.get("/costs").text
    assert f'<a href="{BASE}/">All runs</a>' in served.get(f"/runs/{OWN}").text
    answer = served.client.post("/logout", follow_redirects=False)
    assert answer.status_code == 303 and served.get("/").status_code == 303


@pytest.mark.attack
def test_the_cookie_of_a_session_is_kept_from_scripts_and_sites_and_hides_the_token(
    served: Served,
) -> None:
    """A script or another site wants the session of a person, or somebody reads it: the cookie is
    for this server alone, and GitHub's token in it is encrypted."""
    state = begin_login(served.client, served.github)
    cookies = served.get(f"/login/callback?code=right-code&state={state}").headers["set-cookie"]
    assert cookies.startswith(f"{COOKIE}=") and cookies.count(COOKIE) == 1
    for attribute in ("httponly", "secure", "samesite=lax", "path=/;"):
        assert attribute in cookies.lower()
    assert "domain" not in cookies.lower()
    content = base64.b64decode(cookies.partition("=")[2].partition(".")[0] + "==").decode()
    assert "mona" in content and "token-of-mona" not in content and SECRET not in content


@pytest.mark.attack
def test_the_run_of_a_repository_that_a_person_can_not_read_is_not_found(served: Served) -> None:
    """Somebody who has logged in asks for the run of another's repository: it is not found."""
    log_in(served.client, served.github)
    for run in (OTHER, UNKNOWN, "%2e%2e%2fetc", "..%2f..%2fetc", f"{OWN}%00", f"{OWN}%0a", "x"):
        for path in (f"/runs/{run}", f"/runs/{run}/events"):
            assert served.get(path).status_code == 404, path
    fields = {**served.form(), "command": "stop"}
    assert "<form" not in served.get(f"/runs/{READABLE}").text
    for run in (OTHER, UNKNOWN, READABLE):
        assert served.post(run, **fields).status_code == 404
    assert served.sent == []


class LateSigner(TimestampSigner):
    """Signs as a session that has just ended."""

    def get_timestamp(self) -> int:
        return int(time.time()) - SESSION_SECONDS - 60


@pytest.mark.attack
def test_a_cookie_that_the_server_did_not_make_is_no_login(served: Served) -> None:
    """Somebody forges a session, or uses an old one or that of another server: it counts as
    none."""
    log_in(served.client, served.github)
    good = served.client.cookies[COOKIE]
    fields = {**served.form(), "command": "stop"}
    login = PageLogin(served.github.users, BASE, SECRET)
    key = login._key("sessions of pages").hex()
    plain = base64.b64encode(json.dumps({"login": "mona", "token": "x", "form_key": "x"}).encode())
    forged = {
        "no text": "",
        "unsigned": good.partition(".")[0],
        "cut": good[:-8] + "AAAAAAAA",
        "another key": TimestampSigner("another secret").sign(good.partition(".")[0]).decode(),
        "its token is not of this server": TimestampSigner(key).sign(plain).decode(),
        "ended": LateSigner(key).sign(good.partition(".")[0]).decode(),
    }
    for why, cookie in forged.items():
        served.client.cookies.clear()
        served.client.cookies.set(COOKIE, cookie)
        for path in ("/", "/costs", f"/runs/{OWN}"):
            answer = served.get(path)
            assert answer.status_code == 303 and "/login?" in answer.headers["location"], why
        assert served.post(OWN, **fields).status_code == 303
    served.client.cookies.clear()
    served.client.cookies.set("resolver-session", good)  # any neighboring domain can set this one
    assert served.get("/").status_code == 303
    assert served.sent == []


@pytest.mark.attack
def test_a_login_that_another_browser_began_is_refused(served: Served) -> None:
    """Somebody sends their own login's answer to a person: no session comes of it."""
    state = begin_login(served.client, served.github)
    for query in ("code=right-code&state=wrong", "code=right-code", "error=access_denied",
                  "code=right-code&state=é"):  # fmt: skip
        assert served.get(f"/login/callback?{query}").status_code == 403
    served.client.cookies.clear()
    assert served.get(f"/login/callback?code=right-code&state={state}").status_code == 403
    assert served.github.exchanged == []
    state = begin_login(served.client, served.github)
    assert served.get(f"/login/callback?code=wrong-code&state={state}").status_code == 403
    assert served.get(f"/login/callback?code=right-code&state={state}").status_code == 403, "once"
    assert served.get("/").status_code == 303


@pytest.mark.attack
@pytest.mark.parametrize(
    "path", ["https://evil.example", "//evil.example", "/\\evil.example", "/runs/../x", "/x", ""]
)
def test_a_login_leads_to_this_server_only(served: Served, path: str) -> None:
    """A link to the login names another site: the login leads to the list of runs."""
    assert log_in(served.client, served.github, path) == f"{BASE}/"


def test_a_command_of_the_page_is_stored_like_that_of_a_comment(served: Served) -> None:
    log_in(served.client, served.github)
    fields = {**served.form(), "message": " look at <b>README</b> "}
    answer = served.post(OWN, command="message", **fields)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{BASE}/runs/{OWN}?sent=message"
    served.post(OWN, command="stop", **fields)
    (id, message), (_, stop) = served.sent
    assert id == f"page-{fields['request']}", "sent twice, it is stored once"
    assert (message.command, message.instruction) == (Command.CONTINUE, "look at <b>README</b>")
    assert (stop.command, stop.instruction) == (Command.STOP, "")
    assert stop.actor.login == "mona" and (stop.repository, stop.number) == ("octo/calc", 12)
    assert "The run stops after" in served.get(f"/runs/{OWN}?sent=stop").text
    assert "evil" not in served.get(f"/runs/{OWN}?sent=evil").text


@pytest.mark.attack
def test_a_form_of_another_site_sends_no_command(served: Served) -> None:
    """Another site sends the form of a run's page in a person's browser: nothing is stored."""
    log_in(served.client, served.github)
    right = {**served.form(), "command": "stop"}
    log_in(served.client, served.github)  # the earlier form is that of another session now
    assert served.post(OWN, **right).status_code == 403
    right = {**served.form(), "command": "stop"}
    for fields, status in (
        ({"token": ""}, 403), ({"token": "x"}, 403), ({"token": "é"}, 403),
        ({"command": "fix"}, 400), ({"command": "message"}, 400), ({"request": "x"}, 400),
        ({"command": ""}, 400), ({"command": "message", "message": "x" * 4_001}, 400),
    ):  # fmt: skip
        assert served.post(OWN, **{**right, **fields}).status_code == status, fields
    address = f"/runs/{OWN}/commands"
    assert served.client.post(address, content=b"x" * 40_000).status_code == 413
    assert served.client.post(address, content=b"\xff=%ff").status_code == 403
    assert served.sent == []


def test_what_a_person_can_read_is_asked_for_each_run_and_after_a_while_for_the_list(
    served: Served,
) -> None:
    log_in(served.client, served.github)
    assert "octo/calc" in served.get("/").text
    served.github.levels.clear()
    assert served.get(f"/runs/{OWN}").status_code == 404
    assert "octo/calc" in served.get("/").text
    served.github.seconds += REPOSITORIES_SECONDS
    assert "octo/calc" not in served.get("/").text


def test_a_token_that_was_revoked_and_an_outage_open_nothing(served: Served) -> None:
    log_in(served.client, served.github)
    fields = {**served.form(), "command": "stop"}
    served.github.is_down = True
    for path in ("/", f"/runs/{OWN}", f"/runs/{OWN}/events"):
        answer = served.get(path)
        assert answer.status_code == 503 and "client-secret" not in answer.text
    assert served.post(OWN, **fields).status_code == 503
    state = begin_login(served.client, served.github)
    assert served.get(f"/login/callback?code=right-code&state={state}").status_code == 503
    served.github.is_down = False
    log_in(served.client, served.github)
    fields = {**served.form(), "command": "stop"}
    served.github.tokens.clear()
    answer = served.post(OWN, **fields)
    assert answer.headers["location"] == f"{BASE}/login?path=%2Fruns%2F{OWN}"
    assert served.get("/").status_code == 303, "the session has ended with it"
    assert served.sent == []
