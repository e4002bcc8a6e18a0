"""Quotas and the dashboard on a running server: real deliveries, git, sandbox and model."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resolver.github.comments.markers import DASHBOARD
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import bash, finish
from tests.parts.waiting import until
from tests.webhook.serving import Forge, Plans, Server

SLEEP = bash("echo begun; sleep 301.5", timeout=400)


@pytest.fixture
def plans() -> Iterator[Plans]:
    with ModelEndpoint() as endpoint:
        yield Plans(endpoint)


@pytest.fixture
def forge(github: GitHubServer) -> Forge:
    return Forge(github)


@pytest.fixture
def server(tmp_path: Path, forge: Forge, plans: Plans) -> Iterator[Server]:
    more = {
        "RESOLVER_DASHBOARD": "true",
        "RESOLVER_COMMENT_INTERVAL_SECONDS": "{commands: 1, writes: 0}",
        "RESOLVER_RUN_QUOTAS": "{repository_day: 2}",
    }
    started = Server(tmp_path, forge, plans.endpoint, **more)
    started.start()
    yield started
    started.close()
    started.check()


def dashboard(forge: Forge, repository: str) -> Issue | None:
    issues = forge.github.repository(repository).issues.values()
    return next((issue for issue in issues if (issue.body or "").startswith(DASHBOARD)), None)


def tick(forge: Forge, server: Server, issue: Issue, words: str) -> None:
    before = issue.body or ""
    [line] = [line for line in before.splitlines() if words in line]
    after = before.replace(line, line.replace("- [ ]", "- [x]"))
    forge.github.edit_issue(issue, body=after)
    payload: dict[str, Any] = forge.github.event_issues(issue, "edited", "mona")
    payload["changes"] = {"body": {"from": before}}
    assert server.deliver(payload, "issues") == (202, "stored")


def test_boxes_stop_and_continue_a_run_and_the_quotas_hold(
    forge: Forge, plans: Plans, server: Server
) -> None:
    """Whole runs, because boxes, ledger, queue and the runs of another process have to agree."""
    repository = forge.repository("octo/boxes")
    issue = forge.issue(repository, "boxes")
    plans.add("boxes", SLEEP, finish("There is nothing to do."))
    assert server.deliver(forge.mention(issue)) == (202, "stored")

    def shows(words: str) -> Issue | None:
        found = dashboard(forge, repository)
        return found if found and words in (found.body or "") else None

    at_work = until(lambda: shows("**Stop**"))
    until(lambda: any(b"echo begun" in log.read_bytes() for log in server.runs.glob("*/*.jsonl")))
    tick(forge, server, at_work, "**Stop**")
    ended = until(lambda: shows("which was stopped"))
    assert "**Stop**" not in (ended.body or "")
    assert "- [x]" not in (ended.body or "")
    tick(forge, server, ended, "**Continue**")
    until(lambda: shows("no change"))
    assert server.deliver(forge.mention(issue)) == (202, "stored")
    until(lambda: any("this repository has had 2 runs today" in c.body for c in issue.comments))
