"""Tests of login to the server's pages, of the permissions for each run, and of attacks on them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import responses
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response

from resolver.entrypoints.webhook.github_oauth import (
    GitHubOAuth,
    Level,
    LoginRefused,
    code_challenge,
)
from resolver.entrypoints.webhook.login_pages import PageLogin, add_login_pages
from resolver.entrypoints.webhook.page_links import page_key
from resolver.entrypoints.webhook.page_readers import CACHE_DURATION, ReaderAccess
from resolver.entrypoints.webhook.page_sessions import (
    SESSION_DURATION,
    PageSession,
    PendingLogin,
    SealedCookies,
    form_token,
    new_session,
)
from resolver.entrypoints.webhook.pages import Pages, add_pages
from resolver.entrypoints.webhook.run_commands import add_run_commands
from resolver.entrypoints.webhook.run_list_pages import RunLists, add_run_lists
from resolver.errors import ForgeError
from resolver.events.log import dump_line
from resolver.github.client.access import GitHubAccess
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.runs.output import StoredRequest
from resolver.storage.database import parse_database_url
from resolver.storage.run_folders import LocalRunFolders
from resolver.storage.run_index import RunIndex
from tests.trace.sample import realistic

BASE = "https://resolver.example.org"
SECRET = "webhook-canary-51c7e9d3f0a28b46"
OWN, OTHER = "20260304-093000-0a1b2c", "20260304-093000-ffffff"
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
FORM = "request-0123456789abcdef"


class Users:
    """GitHub, as far as logins need it. tokens: the login of each token that is valid."""

    def __init__(self) -> None:
        self.tokens = {"token-of-mona": "mona"}
        self.levels: dict[str, Level] = {"octo/calc": "write"}
        self.exchanged: list[tuple[str, str]] = []
        self.request_count = 0
        self.is_down = False

    def _check(self, token: str) -> None:
        self.request_count += 1
        if self.is_down:
            raise ForgeError("no answer", "try again", "forge_down")
        if token not in self.tokens:
            raise ForgeError("GitHub answered 401", "log in", "token")

    def authorize_url(self, redirect: str, state: str, verifier: str) -> str:
        return f"https://github.com/login/oauth/authorize?state={state}&r={redirect}&c={verifier}"

    def exchange(self, code: str, redirect: str, verifier: str) -> str:
        self.exchanged.append((code, verifier))
        if code != "right-code":
            raise LoginRefused("GitHub does not accept this login", "log in again")
        return "token-of-mona"

    def login(self, token: str) -> str:
        self._check(token)
        return self.tokens[token]

    def repositories(self, token: str) -> Mapping[str, Level]:
        self._check(token)
        return self.levels

    def level(self, token: str, repository: str) -> Level:
        self._check(token)
        return self.levels.get(repository, "none")


@dataclass
class Served:
    """The application with a run in octo/calc and one in octo/secret."""

    client: TestClient
    users: Users
    cookies: SealedCookies
    folder: Path
    sent: list[tuple[str, Trigger]] = field(default_factory=list)
    times: list[datetime] = field(default_factory=lambda: [NOW])

    def log_in(self, token: str = "token-of-mona", at: datetime = NOW) -> PageSession:
        session = new_session("mona", token)
        self.client.cookies.clear()
        self.client.cookies.set("__Host-resolver-session", self.cookies.seal(session, at))
        return session

    def get(self, path: str) -> Response:
        answer: Any = self.client.get(path, follow_redirects=False)
        return answer

    def post(self, run: str, **fields: str) -> Response:
        answer: Any = self.client.post(f"/runs/{run}/commands", data=fields, follow_redirects=False)
        return answer


def write_run(folder: Path, run: str, repository: str) -> None:
    trigger = Trigger(
        key=run, kind=TriggerKind.ISSUE_COMMENT, repository=repository, number=12,
        actor=Actor(login="hubot"), at=NOW,
    )  # fmt: skip
    (folder / run).mkdir()
    request = StoredRequest(run=run, trigger=trigger)
    (folder / run / "request.json").write_text(request.model_dump_json())
    log = "".join(f"{dump_line(event)}\n" for event in realistic()[:8])
    (folder / run / "events.jsonl").write_text(log)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    write_run(tmp_path, OWN, "octo/calc")
    write_run(tmp_path, OTHER, "octo/secret")
    index = RunIndex(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    for run, repository in ((OWN, "octo/calc"), (OTHER, "octo/secret")):
        index.put(
            run,
            {
                "repository": repository, "title": f"In {repository}", "requester": "hubot",
                "kind": "issue_comment", "command": "fix", "state": "running",
                "day": "2026-03-04", "started": NOW.timestamp(), "number": 12,
            },
            {},
        )  # fmt: skip
    app, users, cookies = FastAPI(), Users(), SealedCookies(SECRET)
    made = Served(TestClient(app, BASE), users, cookies, tmp_path)

    def now() -> datetime:
        return made.times[-1]

    login = PageLogin(users, ReaderAccess(users, now), cookies, BASE, now)
    pages = Pages(LocalRunFolders(tmp_path), SECRET, login)
    add_pages(app, pages)
    add_run_lists(app, RunLists(index, SECRET, BASE, now), login)
    add_login_pages(app, login)
    add_run_commands(app, pages, login, lambda id, trigger: made.sent.append((id, trigger)), now)
    yield made
    index.close()


def begin(served: Served, path: str = "/") -> dict[str, list[str]]:
    answer = served.client.get("/login", params={"path": path}, follow_redirects=False)
    assert answer.status_code == 303
    return parse_qs(urlsplit(answer.headers["location"]).query)


def test_a_person_logs_in_and_sees_the_runs_of_their_repositories_only(served: Served) -> None:
    assert served.get("/").headers["location"] == f"{BASE}/login?path=%2F"
    query = begin(served, f"/runs/{OWN}")
    assert query["r"] == [f"{BASE}/login/callback"]
    answer = served.get(f"/login/callback?code=right-code&state={query['state'][0]}")
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{BASE}/runs/{OWN}"
    assert served.users.exchanged == [("right-code", query["c"][0])]
    cookie = next(
        cookie for cookie in answer.headers.get_list("set-cookie") if "resolver-session=g" in cookie
    )
    assert cookie.startswith("__Host-") and "token-of-mona" not in cookie
    for attribute in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert attribute in cookie
    page = served.get("/").text
    assert "In octo/calc" in page and "octo/secret" not in page
    assert "key=" not in page, "a person's links have no key to pass on"
    assert served.get("/?repository=octo/secret").text.count("octo/secret") == 1, "the filter"
    assert "octo/secret" not in served.get("/costs").text
    page = served.get(f"/runs/{OWN}")
    assert page.status_code == 200
    assert f'<a href="{BASE}/">All runs</a>' in page.text
    answer = served.client.post("/logout", follow_redirects=False)
    assert answer.status_code == 303 and served.get("/").status_code == 303


@pytest.mark.attack
def test_the_run_of_a_repository_that_a_person_can_not_read_is_not_found(served: Served) -> None:
    """Somebody who has logged in asks for the run of another's repository: it is not found."""
    session = served.log_in()
    unknown = "20260304-093000-aaaaaa"
    for run in (OTHER, unknown, "%2e%2e%2fetc", "..%2f..%2fetc", f"{OWN}%00", f"{OWN}%0a", "x"):
        for path in (f"/runs/{run}", f"/runs/{run}/events", f"/runs/{run}?key=x"):
            assert served.get(path).status_code == 404, path
    fields = {"command": "stop", "request": FORM}
    for run in (OTHER, unknown):
        assert served.post(run, token=form_token(session, run), **fields).status_code == 404
    assert served.sent == []
    served.users.levels["octo/calc"] = "read"
    assert "<form" not in served.get(f"/runs/{OWN}").text
    assert served.post(OWN, token=form_token(session, OWN), **fields).status_code == 404
    assert served.sent == []
    # The link of the comment opens its own run, whoever has it.
    assert served.get(f"/runs/{OTHER}?key={page_key(SECRET, OTHER)}").status_code == 200
    assert served.get(f"/runs/{OTHER}?key={page_key(SECRET, OWN)}").status_code == 404


@pytest.mark.attack
def test_a_cookie_that_the_server_did_not_make_is_no_login(served: Served) -> None:
    """Somebody forges a session, or uses an old one or that of a login: it counts as none."""
    session = new_session("mona", "token-of-mona")
    pending = PendingLogin(state="s", verifier="v", path="/")
    good = served.cookies.seal(session, NOW)
    late = NOW + SESSION_DURATION + timedelta(seconds=1)
    for cookie in (
        "",
        "x",
        "é".encode().hex(),
        session.model_dump_json().encode().hex(),
        f"{good[:-8]}AAAAAAA=",
        good[:40],
        good + "A" * 5_000,
        SealedCookies("another secret").seal(session, NOW),
        served.cookies.seal(pending, NOW),
    ):
        served.client.cookies.clear()
        served.client.cookies.set("__Host-resolver-session", cookie)
        for path in ("/", "/costs", f"/runs/{OWN}"):
            answer = served.get(path)
            assert answer.status_code == 303 and "/login?" in answer.headers["location"]
        assert served.post(OWN, token=form_token(session, OWN)).status_code == 404
    served.client.cookies.clear()
    served.client.cookies.set("resolver-session", good)  # any neighboring domain can set this one
    assert served.get("/").status_code == 303
    served.log_in()
    assert served.get("/").status_code == 200
    served.times.append(late)
    assert served.get("/").status_code == 303, "the session has expired"
    assert served.sent == []


@pytest.mark.attack
def test_a_login_that_another_browser_began_is_refused(served: Served) -> None:
    """Somebody sends their own login's answer to a person: no session comes of it."""
    state = begin(served)["state"][0]
    for query in (
        "code=right-code&state=wrong", "code=right-code", f"state={state}",
        f"code={'x' * 300}&state={state}", "code=right-code&state=é",
    ):  # fmt: skip
        assert served.get(f"/login/callback?{query}").status_code == 400
    served.client.cookies.clear()
    assert served.get(f"/login/callback?code=right-code&state={state}").status_code == 400
    served.client.cookies.set(
        "__Host-resolver-login",
        SealedCookies("x").seal(PendingLogin(state=state, verifier="v", path="/"), NOW),
    )
    assert served.get(f"/login/callback?code=right-code&state={state}").status_code == 400
    assert served.users.exchanged == []
    state = begin(served)["state"][0]
    answer = served.get(f"/login/callback?code=wrong-code&state={state}")
    assert answer.status_code == 403 and "set-cookie" not in answer.headers
    served.times.append(NOW + timedelta(minutes=11))
    assert served.get(f"/login/callback?code=right-code&state={state}").status_code == 400


@pytest.mark.attack
@pytest.mark.parametrize(
    "path", ["https://evil.example", "//evil.example", "/\\evil.example", "/runs/../x", "/x", ""]
)
def test_a_login_leads_to_this_server_only(served: Served, path: str) -> None:
    """A link to the login names another site: the login leads to the list of runs."""
    state = begin(served, path)["state"][0]
    answer = served.get(f"/login/callback?code=right-code&state={state}")
    assert answer.headers["location"] == f"{BASE}/"


def test_a_command_of_the_page_is_stored_like_that_of_a_comment(served: Served) -> None:
    session = served.log_in()
    page = served.get(f"/runs/{OWN}").text
    token = re.search(r'name="token" value="([0-9a-f]{64})"', page)
    request = re.search(r'name="request" value="([\w-]+)"', page)
    assert token is not None and request is not None
    assert token[1] == form_token(session, OWN)
    fields = {"token": token[1], "request": request[1], "message": " look at <b>README</b> "}
    answer = served.post(OWN, command="message", **fields)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{BASE}/runs/{OWN}?sent=message"
    served.post(OWN, command="stop", **fields)
    (id, message), (_, stop) = served.sent
    assert id == f"page-{request[1]}", "sent twice, it is stored once"
    assert (message.command, message.instruction) == (Command.CONTINUE, "look at <b>README</b>")
    assert (stop.command, stop.instruction) == (Command.STOP, "")
    assert stop.actor.login == "mona" and (stop.repository, stop.number) == ("octo/calc", 12)
    assert "The run stops after" in served.get(f"/runs/{OWN}?sent=stop").text
    assert "evil" not in served.get(f"/runs/{OWN}?sent=evil").text


@pytest.mark.attack
def test_a_form_of_another_site_sends_no_command(served: Served) -> None:
    """Another site sends the form of a run's page in a person's browser: nothing is stored."""
    session = served.log_in()
    right = {"token": form_token(session, OWN), "request": FORM, "command": "stop"}
    for fields in (
        {"token": ""}, {"token": "x"}, {"token": form_token(session, OTHER)},
        {"token": form_token(new_session("mona", "token-of-mona"), OWN)}, {"token": "é"},
    ):  # fmt: skip
        assert served.post(OWN, **{**right, **fields}).status_code == 403
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        answer = served.client.post(f"/runs/{OWN}/commands", data=right, headers=headers)
        assert answer.status_code == 403
    for fields in ({"command": "fix"}, {"command": "message"}, {"request": "x"}, {"command": ""}):
        assert served.post(OWN, **{**right, **fields}).status_code == 400
    assert served.post(OWN, **{**right, "command": "message", "message": "x" * 4_001})
    large = served.client.post(f"/runs/{OWN}/commands", content=b"x" * 40_000)
    assert large.status_code == 413
    assert served.client.post(f"/runs/{OWN}/commands", content=b"\xff=%ff").status_code == 403
    assert served.sent == []


def test_what_a_person_can_read_is_asked_again_after_minutes(served: Served) -> None:
    served.log_in()
    assert served.get("/").status_code == served.get("/costs").status_code == 200
    assert served.users.request_count == 1
    served.users.levels.clear()
    assert "octo/calc" in served.get("/").text
    served.times.append(NOW + CACHE_DURATION)
    assert "octo/calc" not in served.get("/").text
    assert served.get(f"/runs/{OWN}").status_code == 404


def test_a_token_that_was_revoked_and_an_outage_open_nothing(served: Served) -> None:
    session = served.log_in("revoked-token")
    for path in ("/", f"/runs/{OWN}"):
        assert served.get(path).status_code == 303
    right = {"token": form_token(session, OWN), "request": FORM, "command": "stop"}
    assert served.post(OWN, **right).status_code == 403
    served.users.is_down = True
    session = served.log_in()
    right["token"] = form_token(session, OWN)
    for path in ("/", f"/runs/{OWN}", f"/runs/{OWN}/events"):
        assert served.get(path).status_code == 503
    assert served.post(OWN, **right).status_code == 503
    link = f"/runs/{OWN}?key={page_key(SECRET, OWN)}"
    assert served.get(link).status_code == 200, "the link needs no answer of GitHub"
    assert served.sent == []


@responses.activate
def test_github_is_asked_with_the_person_s_own_token() -> None:
    oauth = GitHubOAuth(
        "https://github.com", lambda: "Iv1.client", "client-secret",
        lambda token: GitHubAccess(token, attempts=0),
    )  # fmt: skip
    url = urlsplit(oauth.authorize_url(f"{BASE}/login/callback", "the-state", "the-verifier"))
    query = parse_qs(url.query)
    assert url.path == "/login/oauth/authorize" and query["client_id"] == ["Iv1.client"]
    assert query["code_challenge_method"] == ["S256"] and "the-verifier" not in url.query
    assert query["code_challenge"] == [code_challenge("the-verifier")]
    # The example of RFC 7636, appendix B.
    assert code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == (
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )

    exchange = "https://github.com/login/oauth/access_token"
    responses.post(exchange, json={"access_token": "ghu_1", "token_type": "bearer"})
    assert oauth.exchange("code", f"{BASE}/login/callback", "the-verifier") == "ghu_1"
    body = parse_qs(str(responses.calls[0].request.body))
    assert body["code_verifier"] == ["the-verifier"] and body["client_secret"] == ["client-secret"]
    responses.replace(responses.POST, exchange, json={"error": "bad_verification_code"})
    with pytest.raises(LoginRefused):
        oauth.exchange("code", "", "")
    responses.replace(responses.POST, exchange, status=502, body="client-secret")
    with pytest.raises(ForgeError, match="did not answer") as failed:
        oauth.exchange("code", "", "")
    assert "client-secret" not in str(failed.value)

    api = "https://api.github.com:443"  # as PyGithub writes it
    responses.get(f"{api}/user", json={"login": "mona"})
    responses.get(f"{api}/user/installations", json={"installations": [{"id": 7}]})
    page = {"permissions": {"pull": True, "push": False}}
    first = [{"full_name": f"Octo/r{n}", **page} for n in range(100)]
    listing = f"{api}/user/installations/7/repositories"
    for number, rows in (("1", first), ("2", [{"full_name": "Octo/Last", "permissions": {}}])):
        query_of_page = {"per_page": "100", "page": number}
        matcher = responses.matchers.query_param_matcher(query_of_page)
        responses.get(listing, json={"repositories": rows}, match=[matcher])
    write = {"full_name": "octo/calc", "permissions": {"push": True}}
    responses.get(f"{api}/repos/octo/calc", json=write)
    responses.get(f"{api}/repos/octo/moved", json=write)
    responses.get(f"{api}/repos/octo/hidden", status=404, json={"message": "Not Found"})
    responses.get(f"{api}/repos/octo/revoked", status=401, json={"message": "Bad credentials"})
    assert oauth.login("ghu_1") == "mona"
    found = oauth.repositories("ghu_1")
    assert len(found) == 100 and found["octo/r7"] == "read"
    assert oauth.level("ghu_1", "octo/calc") == "write"
    assert oauth.level("ghu_1", "octo/moved") == oauth.level("ghu_1", "octo/hidden") == "none"
    with pytest.raises(ForgeError) as refused:
        oauth.level("ghu_1", "octo/revoked")
    assert refused.value.cause == "token"
    requests = [call.request for call in responses.calls if str(call.request.url).startswith(api)]
    assert {request.headers["Authorization"] for request in requests} == {"Bearer ghu_1"}
