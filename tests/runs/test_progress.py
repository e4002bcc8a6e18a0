"""The one comment of a request: made at once, edited while the run is at work, and the same one
that says at the end what came of it."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, bash, finish
from tests.parts.waiting import until
from tests.runs.test_github import FIX, SUMMARY, Scene


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scene]:
    made = Scene(github, command_line, model_endpoint)
    made.line.environment["RESOLVER_COMMENT_INTERVAL_SECONDS"] = "{progress: 1, writes: 0}"
    yield made


TESTS = bash("run_tests() { grep -q 'a + b' calc.py; }")


def checklist(body: str) -> str:
    """The lines of the comment that are boxes."""
    return "".join(f"{line}\n" for line in body.splitlines() if line.startswith("- ["))


class Begun:
    """`resolver action` in a process of its own, at work until it is ended. name: the event's."""

    def __init__(
        self, scene: Scene, event: dict[str, Any], name: str = "issue_comment", **more: str
    ) -> None:
        folder = scene.line.folder / f"begun-{time.monotonic_ns()}"
        folder.mkdir()
        (folder / "event.json").write_text(json.dumps(event))
        self.environment = {
            **scene.line.environment,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_WORKSPACE": str(folder),
            "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            "GITHUB_RUN_ID": "123",
            "GITHUB_RUN_ATTEMPT": "2",
            **more,
        }
        self.process = subprocess.Popen(
            scene.line.command("action"),
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)
        return self.process.returncode


def at_work(scene: Scene) -> bool:
    """Whether the comment says that the model was asked for a command, which is running."""
    return any("Work: 1 of at most" in body for body in scene.bot_comments())


Plan = tuple[Callable[[], object] | None, Answer]
"""What has to be so before the model answers, and its answer."""


def answered(*plan: Plan) -> Callable[[dict[str, Any]], Answer]:
    """The model answers each call once what the plan waits for has come about."""

    def answer(body: dict[str, Any]) -> Answer:
        said: int = sum(m["role"] == "assistant" for m in body["messages"])
        ready, given = plan[said]
        if ready is not None:
            until(ready)
        return given

    return answer


class Seen:
    """Bodies of the one comment that were waited for."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.bodies: list[str] = []

    def shows(self, *words: str) -> Callable[[], bool]:
        """Whether the comment has these words; then it is kept."""

        def look() -> bool:
            for body in self._scene.bot_comments():
                if all(word in body for word in words):
                    self.bodies.append(body)
                    return True
            return False

        return look


def edits(scene: Scene) -> int:
    """How many times a comment was to be edited."""
    return sum(
        each.method == "PATCH" and "/issues/comments/" in each.path
        for each in scene.github.requests
    )


def test_the_comment_is_there_while_the_run_is_at_work_and_becomes_the_result(
    scene: Scene,
) -> None:
    seen = Seen(scene)
    plan = tool_call("plan", {"items": [{"title": "Find @mona's bug", "status": "doing"}]})
    scene.endpoint.answer_with(
        answered(
            (seen.shows("- [ ] Fix\n"), plan),
            (None, bash("echo 1")),
            (None, FIX),
            (seen.shows("- [x] Fix: 1 file changed\n"), finish(SUMMARY)),
        )
    )
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert done.exit_code == 0, done.stderr
    fixed = "- [x] Fix: 1 file changed\n- [ ] Verify: disabled in the settings\n"
    assert f"{fixed}- [ ] Open a pull request\n" in checklist(seen.bodies[-1])
    last = seen.bodies[-1]
    assert "working on this" in last
    assert re.search(r"- \[x\] Clone the repository \(at `[0-9a-f]{12}`\)", last), last
    assert "Find `@mona`'s bug (in progress)" in last
    assert "/octo/calc/actions/runs/77" in last and "Comment `@agent stop` to stop the run" in last
    [told] = scene.bot_comments()
    assert told.partition("\n")[0].endswith("ending=pull_request -->") and "Resolver opened" in told


def test_without_the_setting_there_is_one_comment_at_the_end(scene: Scene) -> None:
    seen: list[str] = []

    def look() -> bool:
        seen.extend(scene.bot_comments())
        return True

    scene.endpoint.answer_with(answered((look, TESTS), (look, FIX), (look, finish(SUMMARY))))
    scene.line.environment["RESOLVER_PROGRESS_COMMENTS"] = "false"
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert (done.exit_code, seen, len(scene.bot_comments())) == (0, [], 1)


def test_a_comment_that_a_person_deletes_is_made_anew_once_at_the_end(scene: Scene) -> None:
    deleted: list[int] = []

    def delete() -> bool:
        for comment in [c for c in scene.issue.comments if c.author.login == "resolver-bot"]:
            scene.issue.comments.remove(comment)
            deleted.append(edits(scene))
        return bool(deleted)

    def has_tried_to_edit() -> bool:
        return edits(scene) > deleted[0]

    def is_still_gone() -> bool:
        return scene.bot_comments() == []

    scene.endpoint.answer_with(
        answered(
            (delete, TESTS),
            (has_tried_to_edit, FIX),
            (is_still_gone, finish(SUMMARY)),
        )
    )
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert done.exit_code == 0, done.stderr
    assert len(deleted) == 1
    [told] = scene.bot_comments()
    assert "Resolver opened" in told


def test_a_run_that_is_told_to_end_says_so_in_the_same_comment(scene: Scene) -> None:
    scene.endpoint.script(bash("sleep 600"))
    begun = Begun(scene, scene.github.event_issue_comment(scene.mention()))
    until(lambda: at_work(scene))
    assert begun.end(signal.SIGTERM) == 1
    [told] = scene.bot_comments()
    assert "ending=stopped -->" in told and "SIGTERM" in told


def killed(scene: Scene, **more: str) -> Begun:
    """A run that is killed at work, and leaves its comment as it was then."""
    scene.endpoint.script(bash("sleep 600"))
    begun = Begun(scene, scene.github.event_issue_comment(scene.mention()), **more)
    until(lambda: at_work(scene))
    assert begun.end(signal.SIGKILL) == -signal.SIGKILL
    [told] = scene.bot_comments()
    assert "ending=progress" in told and "job=123.2" in told
    return begun


def test_a_step_after_a_killed_run_says_that_it_died(scene: Scene) -> None:
    begun = killed(scene)
    kept = {k: v for k, v in begun.environment.items() if k.startswith(("GITHUB_", "INPUT_"))}
    done = scene.line.call("close", **{**kept, "GITHUB_RUN_ID": "124"})
    assert "Nothing to close" in done.stdout, "another job's"
    assert "ending=progress" in scene.bot_comments()[0]
    done = scene.line.call("close", **kept)
    assert (done.exit_code, "Nothing to close" in done.stdout) == (0, False), done.stderr
    [told] = scene.bot_comments()
    assert (
        "**ended unexpectedly**" in told
        and "ending=died -->" in told
        and "/actions/runs/123" in told
    )
    again = scene.line.call("action", **kept, INPUT_CLOSE="true")
    assert (again.exit_code, "Nothing to close" in again.stdout) == (0, True), again.stderr


def test_of_a_matrix_each_job_closes_its_own_run_alone(scene: Scene) -> None:
    job = {"GITHUB_JOB": "resolve", "RUNNER_NAME": "GitHub Actions 7"}
    begun = killed(scene, **job)
    kept = {k: v for k, v in begun.environment.items() if k.startswith(("GITHUB_", "INPUT_"))}
    done = scene.line.call("close", **kept, RUNNER_NAME="GitHub Actions 8")
    assert "Nothing to close" in done.stdout
    other = scene.github.event_issue_comment(scene.mention())
    event = scene.line.folder / "other.json"
    event.write_text(json.dumps(other))
    done = scene.line.call("close", **{**kept, **job, "GITHUB_EVENT_PATH": str(event)})
    assert "Nothing to close" in done.stdout, "another request's"
    waited = {"GITHUB_JOB": "close", "RUNNER_NAME": "GitHub Actions 9"}
    done = scene.line.call("close", **{**kept, **waited})
    assert "Nothing to close" not in done.stdout and "ending=died" in scene.bot_comments()[0]


def words_after(scene: Scene, begun: Begun, number: int | None = None) -> list[str]:
    """What we have written, on an issue that was not there before unless its number is given, once
    the run was killed and the step after it is done."""
    issues = scene.repository.issues

    def written() -> list[str]:
        on = [issues[number]] if number else list(issues.values())[1:]
        return [c.body for i in on for c in i.comments if c.author.login == "resolver-bot"]

    until(lambda: any("Work: 1 of at most" in body for body in written()))
    assert begun.end(signal.SIGKILL) == -signal.SIGKILL
    before = len(issues)
    kept = {k: v for k, v in begun.environment.items() if k.startswith(("GITHUB_", "INPUT_"))}
    done = scene.line.call("action", **kept, INPUT_CLOSE="true", INPUT_MAX_BUDGET="a lot")
    assert (done.exit_code, len(issues)) == (0, before), done.stdout + done.stderr
    return written()


def test_a_step_after_a_killed_run_on_a_failing_check_says_that_it_died(scene: Scene) -> None:
    scene.endpoint.script(bash("sleep 600"))
    event = Events(scene.github, "octo/calc").workflow_failed("main", "mona")
    wanted = {"INPUT_FIX-FAILING-CHECKS": "all"}
    [told] = words_after(scene, Begun(scene, event, "workflow_run", **wanted))
    assert "ending=died -->" in told


def test_a_check_whose_run_was_killed_before_its_issue_was_there_gets_none(scene: Scene) -> None:
    event = scene.line.folder / "event.json"
    event.write_text(json.dumps(Events(scene.github, "octo/calc").workflow_failed("main", "mona")))
    job = {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_EVENT_PATH": str(event)}
    wanted = {"INPUT_FIX-FAILING-CHECKS": "all", "GITHUB_RUN_ID": "123"}
    done = scene.line.call("close", **job, **wanted)
    assert (done.exit_code, "Nothing to close" in done.stdout) == (0, True), done.stderr
    assert len(scene.repository.issues) == 1


def test_a_step_after_a_killed_sweep_says_which_run_died(scene: Scene) -> None:
    scene.github.add_label(scene.issue, "agent", "mona")
    scene.github.advance(5)
    scene.endpoint.script(bash("sleep 600"))
    more = {"GITHUB_REPOSITORY": "octo/calc", "GITHUB_ACTIONS": "true"}
    begun = Begun(scene, {"schedule": "17 3 * * *"}, "schedule", **more)
    [told] = words_after(scene, begun, scene.issue.number)
    assert "ending=died -->" in told


def test_the_next_request_closes_what_a_lost_job_has_left(scene: Scene) -> None:
    killed(scene)  # GitHub knows of no such job
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert done.exit_code == 0, done.stderr
    first, second = scene.bot_comments()
    assert "**ended unexpectedly**" in first and "Resolver opened" in second


def test_a_killed_run_that_is_started_again_goes_on_in_its_comment(scene: Scene) -> None:
    begun = killed(scene)
    event = json.loads(Path(begun.environment["GITHUB_EVENT_PATH"]).read_text())
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.action(event)
    assert done.exit_code == 0, done.stderr
    [told] = scene.bot_comments()
    assert "Resolver opened" in told


def test_a_refused_push_is_kept_and_published_by_a_comment(scene: Scene) -> None:
    scene.github.fail_next("*", r"git-receive-pack", 403, times=2)
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert done.exit_code == 1
    [told] = scene.bot_comments()
    assert "its token is **not allowed to push** it" in told and "contents: write" in told
    asked = len(scene.endpoint.requests)
    done = scene.action(scene.github.event_issue_comment(scene.mention(text="@agent publish")))
    assert done.exit_code == 0, done.stderr
    assert len(scene.endpoint.requests) == asked
    assert len(scene.pulls()) == 1 and "Resolver opened" in scene.bot_comments()[-1]
    done = scene.action(scene.github.event_issue_comment(scene.mention(text="@agent publish")))
    assert "nothing to publish" in scene.bot_comments()[-1]
    assert (len(scene.pulls()), len(scene.bot_comments())) == (1, 3)


def test_publish_without_an_earlier_run_starts_none(scene: Scene) -> None:
    done = scene.action(scene.github.event_issue_comment(scene.mention(text="@agent publish")))
    assert (done.exit_code, scene.outputs()["state"]) == (0, "nothing")
    [told] = scene.bot_comments()
    assert "nothing to publish" in told and not scene.work_done()


def test_a_locked_issue_is_told_of_in_the_summary(scene: Scene) -> None:
    locked = {"message": "Unable to create comment because issue is locked."}
    scene.github.fail_next("POST", r"/issues/\d+/comments", 403, body=locked, times=20)
    scene.endpoint.script(FIX, finish(SUMMARY))
    done = scene.action(scene.github.event_issue_comment(scene.mention()))
    assert (done.exit_code, len(scene.pulls()), scene.bot_comments()) == (0, 1, []), done.stderr
    assert (
        "The result could not be posted on GitHub" in scene.summary()
        and "Resolver opened" in scene.summary()
    )
