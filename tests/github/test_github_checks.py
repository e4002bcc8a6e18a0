"""Tests of reading failed checks and their logs, over a real socket."""

from collections.abc import Callable

import pytest

from resolver.models.issue_context import Annotation
from resolver.models.run import Task
from tests.github.test_github_reading import NAME, ask, forge_for, triggered
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

STAMP = "2026-01-02T03:04:05.1234567Z "


@pytest.fixture
def pull(github: GitHubServer) -> Issue:
    github.create_repository(NAME, {"a.py": "1\n"})
    github.grant("alice", NAME, "write")
    github.commit(NAME, "work", {"a.py": "2\n"})
    return github.create_pull(NAME, "work", "Two", "So it is.", author="mallory")


@pytest.fixture
def head(github: GitHubServer, pull: Issue) -> str:
    tip = github.repository(NAME).git.tip("work")
    assert tip is not None
    return tip


Read = Callable[..., Task]


@pytest.fixture
def read(github: GitHubServer, pull: Issue) -> Read:
    def reading(token: str = "", **changes: object) -> Task:
        github.advance(10)
        trigger = triggered(github, github.add_comment(pull, "@agent review", "alice"))
        return forge_for(github, token).read(trigger.model_copy(update=changes))

    return reading


def test_a_failed_job_is_read_with_its_step_and_the_end_of_its_log(
    github: GitHubServer, head: str, read: Read
) -> None:
    github.world.files_host = f"localhost:{github.port}"
    log = (
        f"{STAMP}collected 3 items\n{STAMP}\x1b[31mE   assert 1 == 2\x1b[0m\n{STAMP}##[error]exit 1"
    )
    steps = (("Checkout", "success"), ("Test", "failure"), ("Tidy", "skipped"))
    github.end_check(NAME, head, "tests", log=log, steps=steps)
    github.end_check(NAME, head, "lint", "success", log="fine")
    [check] = read().checks
    assert (check.name, check.conclusion, check.step) == ("tests", "failure", "Test")
    assert check.log == "collected 3 items\nE   assert 1 == 2\n##[error]exit 1"
    fetched = [request for request in github.requests if request.kind == "file"]
    assert [request.headers["host"] for request in fetched] == [f"localhost:{github.port}"]
    assert "authorization" not in fetched[0].headers
    request_for_log = next(request for request in github.requests if request.path.endswith("/logs"))
    assert request_for_log.headers["authorization"]


def test_annotations_of_a_check_are_read_failures_first(
    github: GitHubServer, head: str, read: Read
) -> None:
    annotations = [
        {"path": "a.py", "start_line": n, "annotation_level": level, "message": f"m{n}"}
        for n, level in enumerate(["notice"] * 20 + ["failure"], 1)
    ]
    output = {"title": "Bad", "summary": "1 problem <!-- EVIL -->", "annotations": annotations}
    github.end_check(NAME, head, "style", output=output, app=github.add_app("linter"))
    task = read()
    [check] = task.checks
    assert check.annotations[0] == Annotation(path="a.py", line=21, level="failure", message="m21")
    assert len(check.annotations) == 15
    assert check.summary == "Bad\n\n1 problem"
    assert check.log == ""
    assert "hidden in the output of style: 1 HTML comment" in task.left_out


def test_only_the_newest_attempt_that_had_ended_at_the_request_counts(
    github: GitHubServer, pull: Issue, head: str
) -> None:
    github.end_check(NAME, head, "flaky", "failure", suite=1)
    github.advance(5)
    github.end_check(NAME, head, "flaky", "success", suite=1)
    github.end_check(NAME, head, "broken", "success", suite=2)
    github.advance(5)
    github.end_check(NAME, head, "broken", "failure", suite=2)
    trigger = ask(github, pull, "@agent review")
    github.end_check(NAME, head, "broken", "success", suite=2)
    github.end_check(NAME, head, "late", "failure")
    github.end_status(NAME, head, "late", "failure")
    assert [check.name for check in forge_for(github).read(trigger).checks] == ["broken"]


def test_credentials_in_a_log_are_hidden(github: GitHubServer, head: str, read: Read) -> None:
    token = "ghs_" + "a1B2" * 129
    github.end_check(NAME, head, "tests", log=f"token is {token}\n##[error]exit 1")
    [check] = read().checks
    assert token[20:40] not in check.model_dump_json()
    assert "token is [redacted]" in check.log


PYDANTIC = ("validation error", "pydantic", "input_value", "Input should be", "_Annotation")


@pytest.mark.parametrize(
    ("path", "answer", "kept"),
    [
        ("/annotations", {"message": "Hello"}, {"style", "tests"}),
        ("/check-runs", {"check_runs": "many"}, {"ci/jenkins"}),
        ("/statuses", {"state": "failure"}, {"style", "tests"}),
        ("/jobs/[0-9]+$", {"steps": [{"name": 5}]}, {"style", "tests"}),
    ],
)
def test_further_results_of_checks_are_kept_and_the_rest_named(
    github: GitHubServer, head: str, read: Read, path: str, answer: object, kept: set[str]
) -> None:
    annotations = [{"path": "a.py", "start_line": 1, "annotation_level": "failure", "message": "m"}]
    output = {"title": "Bad", "summary": "1 problem", "annotations": annotations}
    github.end_check(NAME, head, "style", output=output, app=github.add_app("linter"))
    github.end_check(NAME, head, "tests", log="##[error]no")
    github.end_status(NAME, head, "ci/jenkins", "failure", "2 failed")
    github.fail_next("GET", path, 200, body=answer)
    task = read()
    assert {check.name for check in task.checks} >= kept
    [omissions] = [line for line in task.left_out if line.startswith("could not read the ")]
    assert "does not have the form that its API documents" in omissions
    assert not any(word in omissions for word in PYDANTIC)
