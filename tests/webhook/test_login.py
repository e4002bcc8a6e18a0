"""Tests of asking for Resolver's login: once, and without delaying deliveries for long."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resolver.entrypoints.webhook.own_login import OwnLogin, is_own_login, login_from_github
from resolver.errors import ForgeError
from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.waiting import until
from tests.webhook.serving import BOT, Forge, Plans, Server, plan_of_a_fix


class Asked:
    """A slow source of the login that counts its requests."""

    def __init__(self, *answers: str, seconds: float = 0.0) -> None:
        self.answers, self.seconds, self.times = list(answers), seconds, 0
        self.done = threading.Event()

    def __call__(self) -> str:
        self.times += 1
        time.sleep(self.seconds)
        answer = self.answers.pop(0)
        self.done.set()
        return answer


def test_it_is_asked_once_however_many_want_it() -> None:
    ask, login = Asked("our-bot", seconds=0.3), OwnLogin()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: login.get(ask), range(8))) == {"our-bot"}
    assert (login.get(ask), ask.times) == ("our-bot", 1)


def test_after_no_answer_it_is_asked_again_only_later() -> None:
    ask, login = Asked("", "our-bot"), OwnLogin(retry_seconds=0.5)
    assert (login.get(ask), login.get(ask), ask.times) == ("", "", 1)
    until(lambda: login.get(ask) == "our-bot")
    assert ask.times == 2


@pytest.mark.deep
def test_a_late_answer_is_waited_for_once_and_is_known_when_it_comes() -> None:
    ask, login = Asked("our-bot", seconds=1.0), OwnLogin(wait_seconds=0.2)
    begun = time.monotonic()
    assert login.get(ask) == ""
    assert [login.get(ask) for _ in range(20)] == [""] * 20
    assert time.monotonic() - begun < 0.9
    assert ask.done.wait(60)
    time.sleep(0.1)
    assert (login.get(ask), ask.times) == ("our-bot", 1)


class Down:
    """A GitHub that says who we are only when it was asked for the third time."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> str:
        self.times += 1
        if self.times < 3:
            raise ForgeError("it is down")
        return "Our-Bot"


def test_whose_a_stored_request_is_is_asked_until_it_is_known() -> None:
    ask = Down()
    assert is_own_login("our-bot", ask, retry_seconds=0.01) and ask.times == 3
    assert not is_own_login("zoe", ask, retry_seconds=0.01)
    assert not is_own_login("our-bot", Down(), retry_seconds=0.01, max_seconds=0.0)


@pytest.mark.parametrize(
    ("payload", "login"),
    [
        ({"action": "assigned", "assignee": {"login": "zoe"}}, "zoe"),
        ({"action": "review_requested", "requested_reviewer": {"login": "zoe"}}, "zoe"),
        ({"action": "review_requested", "requested_team": {"slug": "core"}}, ""),
        ({"action": "assigned", "assignee": {"login": 3}}, ""),
        ({"action": "assigned", "assignee": "zoe"}, ""),
        ({}, ""),
    ],
)
def test_of_whom_an_event_asks_something(payload: dict[str, object], login: str) -> None:
    assert login_from_github(payload) == login


@pytest.mark.nightly
def test_an_assignment_that_comes_before_we_know_who_we_are_is_not_lost(
    github: GitHubServer, tmp_path: Path, model_endpoint: ModelEndpoint
) -> None:
    forge = Forge(github)
    Plans(model_endpoint).add("known", *plan_of_a_fix())
    result = Events(github, forge.repository("octo/calc"))
    own_issue, other_issue = (forge.issue("octo/calc", "known") for _ in range(2))
    server = Server(tmp_path, forge, model_endpoint)
    server.start()
    try:
        github.slow_next("GET", r"/user$", 7.0, times=1)
        for issue, login in ((own_issue, BOT), (other_issue, "mona")):
            sender = {"mona": "zoe"}.get(login, "mona")
            payload = result.subject(issue, "assigned", sender, assignee=result.account(login))
            for _ in range(2):
                assert server.deliver(payload, "issues", f"asks-{login}") == (202, "stored")
        until(lambda: forge.done_once(own_issue))
        assert not forge.own_comments(other_issue)
        assert server.log.count(" starts for ") == 1
    finally:
        server.close()
    server.check()
