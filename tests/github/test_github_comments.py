"""Tests of the comments of runs, also of killed ones, over a real socket."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from resolver.github.comments.progress import RunProgress
from resolver.github.text.markers import (
    ActiveRunMarker,
    active_run_marker,
    find_active_run,
    is_of_run,
)
from resolver.models.run import TriggerKind
from tests.github import reports
from tests.github.test_github_publishing import issue, report_on, trigger_on
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

__all__ = ["issue"]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def progress(issue: Issue, **changes: Any) -> RunProgress:
    known = {
        "trigger": trigger_on(issue),
        "run": "20260102-030405-abcdef",
        "since": NOW,
        "until": NOW + timedelta(hours=4),
        "job": "123.2",
    }
    return RunProgress(**{**known, **changes})


def bodies(issue: Issue) -> list[str]:
    return [c.body for c in issue.comments if c.author.login == BOT]


def test_a_deleted_comment_is_posted_again_only_at_the_end(
    github: GitHubServer, issue: Issue
) -> None:
    forge = forge_for(github)
    comment_id = forge.progress_writer().write_progress(progress(issue), None)
    issue.comments.clear()
    assert forge.progress_writer().write_progress(progress(issue, iterations=1), comment_id) is None
    forge.comment(report_on(issue, progress_comment_id=comment_id))
    assert len(bodies(issue)) == 1


def test_a_request_in_a_conversation_on_lines_gets_its_reaction_there(
    github: GitHubServer, issue: Issue
) -> None:
    github.commit(NAME, "work", {"a.py": "1\n"})
    remark = github.add_review_comment(github.create_pull(NAME, "work"), "a.py", 1, "Why?", "bob")
    where = {"number": remark.number, "is_pull_request": True, "comment_id": remark.id}
    request = reports.trigger(kind=TriggerKind.REVIEW_COMMENT, **where)
    forge_for(github).acknowledge(request)
    assert [given.content for given in remark.reactions] == ["eyes"]


@pytest.mark.parametrize(
    ("answer", "dies"),
    [
        ({"status": "completed", "run_attempt": 2}, True),
        ({"status": "in_progress", "run_attempt": 3}, True),
        ({"status": "in_progress", "run_attempt": 2}, False),
        (404, True),
        (403, False),
    ],
)
def test_a_run_has_died_when_its_job_is_over(
    github: GitHubServer, issue: Issue, answer: dict[str, Any] | int, dies: bool
) -> None:
    forge = forge_for(github)
    forge.progress_writer().write_progress(progress(issue), None)
    status = answer if isinstance(answer, int) else 200
    words = {"message": "Resource not accessible by integration"}
    body = words if isinstance(answer, int) else {"id": 123, **answer}
    github.fail_next("GET", r"/actions/runs/123$", status, body=body)
    closed = forge.run_comments.close_killed_runs(issue.number, NOW, "@agent")
    assert closed == int(dies)
    [result] = bodies(issue)
    assert ("**ended unexpectedly**" in result and "/octo/demo/actions/runs/123)" in result) is dies
    assert is_of_run(result, trigger_on(issue).key)


def test_a_run_closes_the_comment_of_an_earlier_request_that_was_killed(
    github: GitHubServer, issue: Issue
) -> None:
    comments = forge_for(github).run_comments
    comments.write_progress(progress(issue), None)  # GitHub knows of no such job
    later = progress(issue, trigger=trigger_on(issue).model_copy(update={"key": "later"}))
    comments.write_progress(later, None)
    comments.close_killed_runs(issue.number, NOW, "@agent", later.trigger)
    first, second = bodies(issue)
    assert "**ended unexpectedly**" in first and "**ended unexpectedly**" not in second


@pytest.mark.attack
def test_a_forged_marker_has_no_effect(github: GitHubServer, issue: Issue) -> None:
    """Somebody copies the marker of a progress comment: it is not taken for Resolver's."""
    comments = forge_for(github).run_comments
    comments.write_progress(progress(issue, job=None), None)
    [forged] = bodies(issue)
    issue.comments.clear()
    github.add_comment(issue, forged, "mallory")
    later = NOW + timedelta(days=1)
    assert comments.close_killed_runs(issue.number, later, "@agent") == 0
    comment_id = comments.write_progress(progress(issue), None)
    assert len(issue.comments) == 2 and issue.comments[-1].id == comment_id


def test_a_marker_with_an_impossible_time_is_ignored() -> None:
    work = ActiveRunMarker("20260102-030405-abcdef", NOW, NOW, "123.2")
    good = active_run_marker(reports.trigger().key, work)
    assert find_active_run(good) == work
    assert find_active_run(good.replace("20260102T030405Z", "20260231T990000Z", 1)) is None
    assert find_active_run("> " + good) is None
