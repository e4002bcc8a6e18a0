"""Every event that can start work, through the App's webhook, on one running server.

Whole runs for events that only a server gets, or gets together with others.
"""

import threading
import time

import pytest

from tests.parts.events import Events, published
from tests.parts.github_server.state import Issue
from tests.parts.runs import bash, finish
from tests.parts.waiting import until
from tests.runs.test_reviews import comment, submit
from tests.webhook.serving import BOT, Forge, Plans, Server, plan_of_a_fix

PLANS = {
    **dict.fromkeys(("opened", "assigned", "labeled", "dispatched"), plan_of_a_fix()),
    "review": (comment(2, "Name it."), submit()),
    "round": (bash("echo '# done' >> calc.py"), finish("Note it\n\nAs asked.")),
}
SETTINGS = {"RESOLVER_FIX_FAILING_CHECKS": "all"}


def events(forge: Forge, name: str) -> Events:
    return Events(forge.github, forge.repository(name))


def mentioning(forge: Forge, repository: str, plan: str) -> Issue:
    body = "2 + 2 gives 0. @agent please fix this"
    return forge.github.create_issue(repository, f"plan-{plan}", body, author="mona")


def pulled(forge: Forge, repository: str, plan: str) -> Issue:
    text = "def add(a, b):\n    x = a\n    return x - b\n"
    forge.github.commit(repository, "topic", {"calc.py": text})
    made = forge.github.create_pull(repository, "topic", f"plan-{plan}", "", author="mona")
    forge.github.advance(60)
    return made


@pytest.mark.nightly
def test_an_issue_that_mentions_us(forge: Forge, server: Server) -> None:
    result = events(forge, "go/opened")
    issue = mentioning(forge, "go/opened", "opened")
    assert server.deliver(result.subject(issue, "opened", "mona"), "issues") == (202, "stored")
    until(lambda: forge.done_once(issue))


@pytest.mark.nightly
def test_an_issue_that_we_are_assigned_to(forge: Forge, server: Server) -> None:
    result = events(forge, "go/assigned")
    issue = forge.issue("go/assigned", "assigned")
    payload = result.subject(issue, "assigned", "mona", assignee=result.account(BOT))
    assert server.deliver(payload, "issues") == (202, "stored")
    until(lambda: forge.done_once(issue))


@pytest.mark.nightly
def test_a_review_that_is_asked_of_us(forge: Forge, server: Server) -> None:
    result = events(forge, "go/review")
    pull = pulled(forge, "go/review", "review")
    fields = {"requested_reviewer": result.account(BOT)}
    payload = result.subject(pull, "review_requested", "mona", **fields)
    assert server.deliver(payload, "pull_request") == (202, "stored")
    until(lambda: [r for r in list(pull.reviews) if r.author.login == BOT])
    until(lambda: len(forge.final_comments(pull)) == 1)


@pytest.mark.nightly
def test_a_dispatch_by_a_program(forge: Forge, server: Server) -> None:
    result = events(forge, "go/dispatched")
    issue = forge.issue("go/dispatched", "dispatched")
    payload = result.by_program("mona", issue=issue.number, instruction="fix the sign")
    assert server.deliver(payload, "repository_dispatch") == (202, "stored")
    until(lambda: forge.done_once(issue))


@pytest.mark.nightly
def test_all_events_of_a_review_that_come_at_once_are_one_run(
    forge: Forge, server: Server, plans: Plans
) -> None:
    events(forge, "go/round")
    pull = pulled(forge, "go/round", "round")
    github = forge.github
    first = github.add_review_comment(pull, "calc.py", 2, "@agent ask why x?", "mona")
    second = github.add_review_comment(pull, "calc.py", 3, "@agent note it here", "mona")
    second.review_id = first.review_id
    payloads = [github.event_review_comment(comment) for comment in (first, second)]
    threads = [
        threading.Thread(
            target=server.deliver, args=(payload, "pull_request_review_comment", f"d{number}")
        )
        for number, payload in enumerate(payloads * 3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: forge.final_comments(pull))
    until(lambda: len(list(server.runs.glob("*/outcome.json"))) == server.log.count("starts for"))
    assert server.log.count(f" starts for go/round#{pull.number}") == 1
    assert len(forge.final_comments(pull)) == 1


def test_a_failed_check_without_an_open_pull_request_starts_nothing_and_is_logged(
    forge: Forge, server: Server
) -> None:
    result = events(forge, "go/check")
    forge.github.commit("go/check", "agent/gone", {"calc.py": "x = 1\n"})
    payload = result.suite_failed("agent/gone", "mona")
    assert server.deliver(payload, "check_suite") == (202, "stored")
    until(lambda: "Resolver has no open pull request from agent/gone" in server.log)


def test_a_commit_status_is_taken_like_a_check(forge: Forge, server: Server) -> None:
    result = events(forge, "go/status")
    forge.github.commit("go/status", "agent/left", {"calc.py": "x = 1\n"})
    payload = result.status_failed("agent/left", "mona")
    assert server.deliver(payload, "status") == (202, "stored")
    until(lambda: "Resolver has no open pull request from agent/left" in server.log)


def test_a_workflow_that_somebody_starts_is_left_to_its_job(forge: Forge, server: Server) -> None:
    result = events(forge, "go/hand")
    issue = forge.issue("go/hand", "opened")
    payload = result.by_hand("mona", issue=str(issue.number))
    status, answer = server.deliver(payload, "workflow_dispatch")
    assert (status, answer) == (202, "ignored: the dispatch is for the job that it starts")


def test_what_starts_nothing_is_answered_at_once_and_stores_nothing(
    forge: Forge, server: Server
) -> None:
    """Whatever an App is subscribed to, GitHub's examples of all of it."""
    known = len(forge.github.requests)
    slowest = 0.0
    for name, payloads in published().items():
        began = time.monotonic()
        status, answer = server.deliver(payloads[0], name)
        slowest = max(slowest, time.monotonic() - began)
        assert status == 202, (name, answer)
        assert answer.startswith("ignored: ") or (name, answer) == ("ping", "pong"), (name, answer)
    assert len(forge.github.requests) == known, "GitHub was asked about it"
