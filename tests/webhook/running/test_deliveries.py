"""From a signed delivery to a pull request, over one running server, with all parts real.

Whole runs, because nothing may be lost or done twice between the delivery and the pull request.
"""

import re
from typing import Any

import pytest

from tests.webhook.serving import (
    BOT,
    SECRET,
    Forge,
    Plans,
    Server,
    plan_of_a_fix,
    until,
)

PLANS = {
    "fix": plan_of_a_fix(),
    "slow": plan_of_a_fix(delay=0.7),
    "slower": plan_of_a_fix(delay=0.7),
}


def nothing_runs(server: Server) -> bool:
    ends = len(re.findall(r" run \S+ for \S+ is done: | was handled before", server.log))
    return server.log.count(" starts for ") == ends


def test_a_mention_becomes_a_pull_request_and_one_comment(forge: Forge, server: Server) -> None:
    issue = forge.issue(forge.repository("one/main"), "fix")
    payload = forge.mention(issue)
    assert server.deliver(payload) == (202, "stored")
    asking = issue.comments[0]
    until(lambda: asking.reactions)
    assert [r.content for r in asking.reactions] == ["eyes"]
    until(lambda: forge.done_once(issue))
    [pull] = forge.pulls(issue.repository)
    assert pull.title == "Make add add"
    [outcome] = until(lambda: list(server.runs.glob("*/outcome.json")))
    assert (outcome.parent / "events.jsonl").exists()
    counted = until(lambda: server.metrics().get("runs_total finished", 0) and server.metrics())
    assert counted["deliveries_total stored"] == 1 and counted["queue_requests waiting"] == 0
    for name in ("first_comment", "pull_request", "sandbox_start"):
        assert counted[f"{name}_seconds_count"] == 1, name
    assert counted["tokens_total input"] > 0


@pytest.mark.nightly
def test_a_label_starts_the_same_work(forge: Forge, server: Server) -> None:
    issue = forge.issue(forge.repository("one/label"), "fix")
    payload = forge.github.event_issue_labeled(issue, "agent", sender="mona")
    assert server.deliver(payload, "issues") == (202, "stored")
    until(lambda: forge.done_once(issue))


def test_nothing_is_done_twice(forge: Forge, server: Server, plans: Plans) -> None:
    """The same delivery again and again, and the same event under other ids, all at once."""
    issue = forge.issue(forge.repository("one/twice"), "slow")
    payload = forge.mention(issue)
    for delivery in ("first", "first", "second", "first", "third"):
        assert server.deliver(payload, delivery=delivery) == (202, "stored")
    until(lambda: forge.done_once(issue))
    assert server.deliver(payload, delivery="first") == (202, "stored")
    until(lambda: server.log.count("starts for one/twice#1") == 3 and nothing_runs(server))
    assert forge.done_once(issue)
    assert len(plans.times("slow")) == 2
    assert len(issue.comments[0].reactions) == 1
    assert not list(server.runs.glob("*/earlier-1")), "the run's folder was touched again"


@pytest.mark.nightly
def test_a_repository_has_one_run_at_a_time_while_others_have_theirs(
    forge: Forge, server: Server, plans: Plans
) -> None:
    name = forge.repository("one/busy")
    plans.add("busyone", *plan_of_a_fix(delay=0.7))
    plans.add("busytwo", *plan_of_a_fix(delay=0.7))
    first, second = forge.issue(name, "busyone"), forge.issue(name, "busytwo")
    other = forge.issue(forge.repository("two/idle"), "slower")
    for issue in (first, second, other):
        assert server.deliver(forge.mention(issue)) == (202, "stored")
    until(lambda: all(forge.final_comments(i) for i in (first, second, other)))
    one, two, of_other = (plans.times(name) for name in ("busyone", "busytwo", "slower"))
    assert (len(one), len(two), len(of_other)) == (2, 2, 2)
    assert max(one) < min(two) or max(two) < min(one), "two runs of one repository at a time"
    assert min(of_other) < max(*one, *two), "another repository had to wait"
    assert len(forge.branches(first.repository)) == len(forge.pulls(first.repository)) == 2


def test_somebody_without_write_access_gets_no_run(
    forge: Forge, server: Server, plans: Plans
) -> None:
    forge.github.add_user("eve")
    issue = forge.issue(forge.repository("one/eve"), "eve")
    assert server.deliver(forge.mention(issue, author="eve")) == (202, "stored")
    [comment] = until(lambda: forge.final_comments(issue))
    assert "write access" in comment.body
    assert not plans.times("eve")
    assert not forge.branches(issue.repository)


def test_our_own_comment_starts_nothing(forge: Forge, server: Server) -> None:
    """Though the bot is a person to GitHub, may write, and says how it is asked again."""
    issue = forge.issue(forge.repository("one/loop"), "noplan")
    server.deliver(forge.mention(issue))
    [comment] = until(lambda: forge.final_comments(issue))
    assert "@agent" in comment.body
    status, answer = server.deliver(forge.github.event_issue_comment(comment, sender=BOT))
    assert (status, answer) == (202, "ignored: it was made by Resolver itself")


def test_what_asks_for_nothing_is_not_stored(forge: Forge, server: Server) -> None:
    issue = forge.issue(forge.repository("one/quiet"), "fix")
    comment = forge.github.add_comment(issue, "Thank you all.", "mona")
    deliveries: list[tuple[str, dict[str, Any]]] = [
        ("issue_comment", forge.github.event_issue_comment(comment)),
        ("issues", forge.github.event_issues(issue)),
        ("push", {"ref": "refs/heads/main"}),
        ("issue_comment", {}),
        ("issue_comment", {"action": "created", "issue": {"number": "x"}}),
        ("issues", {"action": "\ud800", "label": None}),
    ]
    for number, (event, payload) in enumerate(deliveries):
        status, answer = server.deliver(payload, event, delivery=f"quiet-{number}")
        assert (status, answer.split(":")[0]) == (202, "ignored"), (event, answer)
    stored = b"".join(p.read_bytes() for p in server.folder.glob("resolver.db*"))
    assert b"quiet-" not in stored


def test_a_ping_is_answered(server: Server) -> None:
    assert server.deliver({"zen": "Keep it simple.", "hook_id": 1}, "ping") == (202, "pong")


def test_a_forged_delivery_does_nothing(forge: Forge, server: Server, plans: Plans) -> None:
    issue = forge.issue(forge.repository("one/forged"), "forged")
    for secret in ("", "guessed", SECRET[:-1]):
        assert server.deliver(forge.mention(issue), secret=secret)[0] == 401
    assert not plans.times("forged")


@pytest.mark.parametrize(
    "body", [b"[" * 500_000, b"{", b"[]", b"\xff", b""], ids=lambda b: repr(b[:3])
)
def test_a_broken_body_is_refused_and_the_server_lives(server: Server, body: bytes) -> None:
    assert server.deliver(body)[0] == 400
    assert server.deliver({}, "ping")[0] == 202
