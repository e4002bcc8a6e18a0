"""Each ending has its own clear comment, and says what to do next."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, Scene


@pytest.fixture
def scene(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scene]:
    yield Scene(github, command_line, model_endpoint)


def declined(reason: str, message: str) -> Answer:
    return tool_call("finish", {"message": message, "task_completed": "false", "reason": reason})


def first_line(body: str) -> str:
    return next(line for line in body.splitlines() if line and not line.startswith("<!--"))


def ending(body: str) -> str:
    found = re.search(r" ending=(\w+)", body)
    assert found, body
    return found[1]


def asked(scene: Scene, **environment: str) -> tuple[Ended, str]:
    """One run for a mention; its one comment."""
    done = scene.action(scene.github.event_issue_comment(scene.mention()), **environment)
    [body] = scene.bot_comments()
    return done, body


def test_a_provider_that_does_not_serve_has_its_own_comment(scene: Scene) -> None:
    """A whole run, because the provider has to refuse after some work is done; test_wording.py has
    the sentences of the other causes."""
    refused = error(429, "You exceeded your current quota", code="insufficient_quota")
    what_next = "Add credit at the provider"
    scene.endpoint.answer_with(lambda body: refused if len(body["messages"]) > 2 else FIX)
    done, body = asked(scene, RESOLVER_MODEL_OPTIONS="{retries: 0}")
    assert done.exit_code == 1
    assert "out of credit" in first_line(body)
    next_ = next(line for line in body.splitlines() if line.startswith("**What next:**"))
    assert next_.startswith(f"**What next:** {what_next}"), next_
    assert "Then comment `@agent continue` to continue from the work done so far." in next_
    assert done.outcome["next_step"].lower().startswith(what_next.lower())


def test_a_model_that_is_not_known_is_told_before_anything_is_set_up(scene: Scene) -> None:
    scene.endpoint.models = ["another"]
    scene.endpoint.answer_with(lambda body: error(404, "The model `scripted` does not exist"))
    done, body = asked(scene, RESOLVER_SETUP="touch set-up")
    assert done.exit_code == 1
    assert [event.kind for event in done.events] == ["run_started"]
    assert "the model is not known there" in body
    assert "LLM_MODEL" in body


def test_a_provider_that_is_down_again_when_the_run_goes_on_says_so_again(scene: Scene) -> None:
    """Whole runs, because the second continues the log of one that failed."""
    scene.endpoint.answer_with(lambda body: error(503, "overloaded"))
    asked(scene, RESOLVER_MODEL_OPTIONS="{retries: 0}")
    again = scene.mention(text="@agent continue")
    scene.action(scene.github.event_issue_comment(again), RESOLVER_MODEL_OPTIONS="{retries: 0}")
    for body in scene.bot_comments():
        assert "model provider is not responding" in first_line(body)
        assert "**What next:** Try again later" in body


CHECK = bash("python3 -c 'import calc; print(calc.add(2, 2))'")
DECLINED = [
    ("cannot_reproduce", "rejected", "could not reproduce", "exact steps", "tools"),
    ("needs_answer", "waiting", "a question", "with your answer", "tags"),
]


@pytest.mark.parametrize(("reason", "marked", "says", "what_next", "dialect"), DECLINED)
def test_each_reason_to_change_nothing_has_its_own_comment(
    scene: Scene, reason: str, marked: str, says: str, what_next: str, dialect: str
) -> None:
    """A whole run, because the reason goes from the reply of the model to the exit code."""
    words = "Is `add` meant to subtract? Here 2 + 2 gives 0."
    if dialect == "tags":
        command = "python3 -c 'import calc; print(calc.add(2, 2))'"
        scene.endpoint.script(
            Answer(text=f"<execute_bash>\n{command}\n</execute_bash>"),
            Answer(text=f'<finish reason="{reason}">\n{words}\n</finish>'),
        )
    else:
        scene.endpoint.script(CHECK, declined(reason, words))
    done, body = asked(scene, RESOLVER_DIALECT=dialect)
    assert done.exit_code == (4 if marked == "waiting" else 3), done.stderr
    assert ending(body) == marked
    assert says in first_line(body)
    assert words in body and body.count(words) <= 3
    next_ = next(line for line in body.splitlines() if line.startswith("**What next:**"))
    assert what_next in next_ and "`@agent continue`" in next_
    if marked == "rejected":
        assert "What the agent executed last" in body
        assert "import calc" in body and "exit code 0" in body
    assert not scene.pulls()


def test_a_run_that_needs_an_answer_asks_once_and_goes_on_with_it(scene: Scene) -> None:
    """Whole runs, because the answer continues the log of the first."""
    scene.endpoint.script(declined("needs_answer", "Which one?"), FIX, finish(SUMMARY))
    done, _ = asked(scene)
    assert (done.exit_code, len(scene.endpoint.requests)) == (4, 1)
    assert scene.outputs()["state"] == "awaiting_user_input"
    answer = scene.mention(text="@agent continue\nThe one in calc.py")
    done = scene.action(scene.github.event_issue_comment(answer))
    assert done.exit_code == 0, done.stderr
    assert "The one in calc.py" in json.dumps(scene.endpoint.requests[1].body)
    assert len(scene.pulls()) == 1


def test_a_reason_beside_a_change_leaves_the_change_as_a_draft(scene: Scene) -> None:
    scene.endpoint.script(FIX, declined("cannot_reproduce", "Make add add"))
    done, body = asked(scene)
    assert done.exit_code == 0, done.stderr
    [pull] = scene.pulls()
    assert pull.pull.draft and "may not be complete" in body


def test_nothing_to_change_and_not_done_are_told_apart(scene: Scene) -> None:
    scene.endpoint.script(finish("All is well", completed=True))
    _, body = asked(scene)
    assert "nothing to change" in first_line(body)
    scene.endpoint.script(finish("I found no way", completed=False))
    scene.action(scene.github.event_issue_comment(scene.mention()))
    assert "could not do this" in first_line(scene.bot_comments()[-1])


def test_a_wrong_input_is_told_on_the_thread(scene: Scene) -> None:
    done, body = asked(scene, **{"INPUT_MAX-BUDGET": "five"})
    assert done.exit_code == 2
    assert "INPUT_MAX-BUDGET: Input should be a valid number" in body
    assert "**What next:** See docs/settings.md" in body
    assert scene.outputs()["state"] == "error"
    assert done.outcome["exit_code"] == 2 and "INPUT_MAX-BUDGET" in done.outcome["reason"]
    assert "::error title=Resolver::INPUT_MAX-BUDGET" in done.stdout
    assert "INPUT_MAX-BUDGET" in scene.summary()
    assert "Traceback" not in done.stderr and not scene.work_done()


def test_a_wrong_input_is_not_told_to_who_may_not_ask(scene: Scene) -> None:
    event = scene.github.event_issue_comment(scene.mention("zoe"))
    done = scene.action(event, **{"INPUT_MAX-BUDGET": "five"})
    assert (done.exit_code, scene.bot_comments()) == (2, [])
    assert "::error title=Resolver::INPUT_MAX-BUDGET" in done.stdout
    told = scene.github.event_issue_comment(scene.mention(text="no request"))
    assert scene.action(told, **{"INPUT_MAX-BUDGET": "five"}).exit_code == 2
    assert scene.bot_comments() == [] and scene.outputs()["state"] == "error"


def test_a_wrong_settings_file_is_told_on_the_thread(scene: Scene) -> None:
    bad = {".github/resolver.yml": "max_iterations: [\n"}
    scene.github.commit(REPOSITORY, "main", bad, "x")
    done, body = asked(scene)
    assert done.exit_code == 2, done.stderr
    assert ".github/resolver.yml, line 2: not YAML" in body
    assert "**What next:** Correct the file on the default branch." in body
    assert scene.outputs()["state"] == "error" and scene.outputs()["outcome"]
    assert "::error title=Resolver::.github/resolver.yml" in done.stdout


def test_a_link_in_the_place_of_the_output_folder_is_told_on_the_thread(scene: Scene) -> None:
    workspace = scene.line.folder / "linked"
    workspace.mkdir()
    (workspace / "resolver-output").symlink_to("/tmp")
    mention = scene.mention()
    (workspace / "event.json").write_text(json.dumps(scene.github.event_issue_comment(mention)))
    done = scene.line.call(
        "action",
        GITHUB_EVENT_NAME="issue_comment",
        GITHUB_EVENT_PATH=str(workspace / "event.json"),
        GITHUB_WORKSPACE=str(workspace),
        GITHUB_OUTPUT=str(workspace / "outputs"),
    )
    outputs = (workspace / "outputs").read_text()
    assert done.exit_code == 2
    [body] = scene.bot_comments()
    assert "is a link" in body and "Remove resolver-output from the checkout" in body
    assert "state=error\n" in outputs and "outcome=\n" in outputs
    assert [reaction.content for reaction in mention.reactions] == ["eyes"]


@pytest.mark.parametrize("full", [["trace.md"], [".outcome.json.new", "patch.diff", "trace.md"]])
def test_a_disk_that_is_full_at_the_end_is_told_and_no_traceback(
    scene: Scene, full: list[str]
) -> None:
    folder = scene.line.folder / "workspace-1" / "resolver-output"

    def answer(body: dict[str, Any]) -> Answer:
        if len(body["messages"]) == 2:
            return FIX
        for name in full:
            (folder / name).symlink_to("/dev/full")
        return finish(SUMMARY)

    scene.endpoint.answer_with(answer)
    done, body = asked(scene)
    assert done.exit_code == 1
    assert ending(body) == "pull_request" and len(scene.pulls()) == 1
    assert scene.outputs()["pull-request-url"].endswith(f"/pull/{scene.pulls()[0].number}")
    assert scene.outputs()["state"] == "error"
    assert "::error title=Resolver::" in done.stdout and "disk" in done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    assert scene.summary()
    assert (folder / "events.jsonl").stat().st_size
    if ".outcome.json.new" not in full:
        assert "disk" in done.outcome["reason"]


def test_a_disk_that_is_full_in_the_middle_is_told(scene: Scene) -> None:
    """A whole run, because the disk has to be full between two stages."""
    folder = scene.line.folder / "workspace-1" / "resolver-output"

    def answer(body: dict[str, Any]) -> Answer:
        (folder / ".change.json.new").symlink_to("/dev/full")
        return finish(SUMMARY) if len(body["messages"]) > 2 else FIX

    scene.endpoint.answer_with(answer)
    done, body = asked(scene)
    assert done.exit_code == 1 and ending(body) == "error"
    assert "disk of the machine that runs Resolver is full" in body
    assert "**What next:** Free some disk space, then ask again." in body


def no_writing(scene: Scene, times: int) -> None:
    """From the fix on GitHub takes no comment, so many times."""
    begun: list[int] = []

    def answer(body: dict[str, Any]) -> Answer:
        if not begun:
            begun.append(1)
            scene.github.fail_next("PATCH", r"/issues/comments/", 502, times=times)
            scene.github.fail_next("POST", r"/issues/\d+/comments", 502, times=times)
        return finish(SUMMARY) if len(body["messages"]) > 2 else FIX

    scene.endpoint.answer_with(answer)


def test_the_last_word_is_tried_again_until_it_is_taken(scene: Scene) -> None:
    """A whole run, because GitHub has to fail from the middle of it on."""
    no_writing(scene, times=3)
    done, body = asked(scene)
    assert done.exit_code == 0, done.stderr
    assert ending(body) == "pull_request" and scene.outputs()["state"] == "finished"


def test_a_last_word_that_is_never_taken_is_left_to_the_closing_step(scene: Scene) -> None:
    """Whole runs, because the closing step reads what the run has left."""
    no_writing(scene, times=999)
    done, body = asked(scene, RESOLVER_RETRY_SECONDS="{final_comment: 0}")
    [pull] = scene.pulls()
    assert done.exit_code == 1 and ending(body) == "progress"
    assert scene.outputs()["state"] == "", "so that the job `close` runs"
    assert scene.outputs()["pull-request-url"].endswith(f"/pull/{pull.number}")
    assert (
        "::error title=Resolver::The result of this run could not be posted on GitHub."
        in done.stdout
    )
    assert f"/pull/{pull.number}" in scene.summary()
    scene.github.forget_failures()
    event = scene.github.event_issue_comment(scene.issue.comments[0])
    assert scene.action(event, INPUT_CLOSE="true").exit_code == 0
    [body] = scene.bot_comments()
    assert ending(body) == "pull_request" and f"Resolver opened [#{pull.number}]" in body
