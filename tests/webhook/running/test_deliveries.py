"""From a signed delivery to a pull request, over one running server, with all parts real.

Whole runs, because nothing may be lost or done twice between the delivery and the pull request.
"""

import re

from tests.parts.stored_runs import log_in, outcomes_in, runs_in
from tests.webhook.serving import (
    Forge,
    Plans,
    Server,
    plan_of_a_fix,
    until,
)

PLANS = {"fix": plan_of_a_fix(), "slow": plan_of_a_fix(delay=0.7)}


def nothing_runs(server: Server) -> bool:
    ends = len(re.findall(r" run \S+ for \S+: | was handled before", server.log))
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
    until(lambda: outcomes_in(server.runs))
    [run] = runs_in(server.runs)
    assert log_in(server.runs, run)
    counted = until(lambda: server.metrics().get("runs_total finished", 0) and server.metrics())
    assert counted["deliveries_total stored"] == 1 and counted["queue_requests waiting"] == 0
    assert counted["pull_request_seconds_count"] == 1


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
    [run] = [run for run in runs_in(server.runs) if b"one/twice" in log_in(server.runs, run)]
    assert log_in(server.runs, run).count(b'"run_started"') == 1
