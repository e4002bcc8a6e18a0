"""Each ending has its own clear comment, and says what to do next.

Whole runs, because comment, outputs, summary, log and exit code of each ending have to agree.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.attacks.canaries import files_below, leaks
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import Answer, ModelEndpoint, error, tool_call
from tests.parts.runs import MODEL_KEY, CommandLine, Ended, bash, finish
from tests.runs.test_github import FIX, REPOSITORY, SUMMARY, WATCHED, Scenario


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    yield Scenario(github, command_line, model_endpoint)


def declined(reason: str, message: str) -> Answer:
    return tool_call("finish", {"message": message, "task_completed": "false", "reason": reason})


def first_line(body: str) -> str:
    return next(line for line in body.splitlines() if line and not line.startswith("<!--"))


def ending(body: str) -> str:
    found = re.search(r" ending=(\w+)", body)
    assert found, body
    return found[1]


def asked(scenario: Scenario, **environment: str) -> tuple[Ended, str]:
    """One run for a mention; its one comment."""
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()), **environment)
    [body] = scenario.bot_comments()
    return done, body


@pytest.mark.nightly
def test_a_provider_that_does_not_serve_has_its_own_comment(scenario: Scenario) -> None:
    """A whole run, because the provider has to refuse after some work is done; test_comment_text.py
    has the sentences of the other causes."""
    refused = error(429, "You exceeded your current quota", code="insufficient_quota")
    what_next = "Add credit at the provider"
    scenario.endpoint.answer_with(lambda body: refused if len(body["messages"]) > 2 else FIX)
    done, body = asked(scenario, RESOLVER_MODEL_OPTIONS="{retries: 0}")
    assert done.exit_code == 1
    assert "out of credit" in first_line(body)
    next_ = next(line for line in body.splitlines() if line.startswith("**What next:**"))
    assert next_.startswith(f"**What next:** {what_next}"), next_
    assert "Then comment `@agent continue` to continue from the work done so far." in next_
    assert done.outcome["next_step"].lower().startswith(what_next.lower())


@pytest.mark.nightly
def test_an_unknown_model_is_reported_before_anything_is_set_up(scenario: Scenario) -> None:
    scenario.endpoint.models = ["another"]
    scenario.endpoint.answer_with(lambda body: error(404, "The model `scripted` does not exist"))
    done, body = asked(scenario, RESOLVER_SETUP="touch set-up")
    assert done.exit_code == 1
    assert [event.kind for event in done.events] == ["run_started"]
    assert "the model is not known there" in body
    assert "LLM_MODEL" in body


@pytest.mark.nightly
def test_a_provider_that_is_down_again_when_the_run_continues_is_reported_again(
    scenario: Scenario,
) -> None:
    """Whole runs, because the second continues the log of one that failed."""
    scenario.endpoint.answer_with(lambda body: error(503, "overloaded"))
    asked(scenario, RESOLVER_MODEL_OPTIONS="{retries: 0}")
    again = scenario.mention(text="@agent continue")
    scenario.action(
        scenario.github.event_issue_comment(again), RESOLVER_MODEL_OPTIONS="{retries: 0}", **WATCHED
    )
    for body in scenario.bot_comments():
        assert "model provider is not responding" in first_line(body)
        assert "**What next:** Try again later" in body


CHECK = bash("python3 -c 'import calc; print(calc.add(2, 2))'")
DECLINED = [
    ("cannot_reproduce", "rejected", "could not reproduce", "exact steps", "tools"),
    ("needs_answer", "waiting", "a question", "with your answer", "tags"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("reason", "marked", "says", "what_next", "dialect"), DECLINED)
def test_each_reason_to_change_nothing_has_its_own_comment(
    scenario: Scenario, reason: str, marked: str, says: str, what_next: str, dialect: str
) -> None:
    """A whole run, because the reason goes from the reply of the model to the exit code."""
    words = "Is `add` meant to subtract? Here 2 + 2 gives 0."
    if dialect == "tags":
        command = "python3 -c 'import calc; print(calc.add(2, 2))'"
        scenario.endpoint.script(
            Answer(text=f"<execute_bash>\n{command}\n</execute_bash>"),
            Answer(text=f'<finish reason="{reason}">\n{words}\n</finish>'),
        )
    else:
        scenario.endpoint.script(CHECK, declined(reason, words))
    done, body = asked(scenario, RESOLVER_DIALECT=dialect)
    assert done.exit_code == (4 if marked == "waiting" else 3), done.stderr
    assert ending(body) == marked
    assert says in first_line(body)
    assert words in body and body.count(words) <= 3
    next_ = next(line for line in body.splitlines() if line.startswith("**What next:**"))
    assert what_next in next_ and "`@agent continue`" in next_
    if marked == "rejected":
        assert "What the agent executed last" in body
        assert "import calc" in body and "exit code 0" in body
    assert not scenario.pulls()


@pytest.mark.nightly
def test_a_run_that_needs_an_answer_asks_once_and_continues_with_it(scenario: Scenario) -> None:
    """Whole runs, because the answer continues the log of the first."""
    scenario.endpoint.script(declined("needs_answer", "Which one?"), FIX, finish(SUMMARY))
    done, _ = asked(scenario)
    assert (done.exit_code, len(scenario.endpoint.requests)) == (4, 1)
    assert scenario.outputs()["state"] == "awaiting_user_input"
    answer = scenario.mention(text="@agent continue\nThe one in calc.py")
    done = scenario.action(scenario.github.event_issue_comment(answer), **WATCHED)
    assert done.exit_code == 0, done.stderr
    assert "The one in calc.py" in json.dumps(scenario.endpoint.requests[1].body)
    assert len(scenario.pulls()) == 1


@pytest.mark.nightly
def test_a_change_with_a_reason_against_it_becomes_a_draft(scenario: Scenario) -> None:
    scenario.endpoint.script(FIX, declined("cannot_reproduce", "Make add add"))
    done, body = asked(scenario)
    assert done.exit_code == 0, done.stderr
    [pull] = scenario.pulls()
    assert pull.pull.draft and "may not be complete" in body


@pytest.mark.nightly
def test_what_was_not_done_is_no_answer_that_there_is_nothing_to_change(
    scenario: Scenario,
) -> None:
    scenario.endpoint.script(finish("I found no way", completed=False))
    _, body = asked(scenario)
    assert "could not do this" in first_line(body)


@pytest.mark.nightly
def test_a_wrong_input_is_reported_in_the_conversation(scenario: Scenario) -> None:
    done, body = asked(scenario, **{"INPUT_MAX-BUDGET": "five"})
    assert done.exit_code == 2
    assert "INPUT_MAX-BUDGET: Input should be a valid number" in body
    assert "**What next:** See docs/reference/settings.md" in body
    assert scenario.outputs()["state"] == "error"
    assert done.outcome["exit_code"] == 2 and "INPUT_MAX-BUDGET" in done.outcome["reason"]
    assert "::error title=Resolver::INPUT_MAX-BUDGET" in done.stdout
    assert "INPUT_MAX-BUDGET" in scenario.summary()
    assert "Traceback" not in done.stderr and not scenario.work_done()


def test_a_wrong_input_is_not_reported_to_a_person_who_may_not_ask(scenario: Scenario) -> None:
    event = scenario.github.event_issue_comment(scenario.mention("zoe"))
    done = scenario.action(event, **{"INPUT_MAX-BUDGET": "five"})
    assert (done.exit_code, scenario.bot_comments()) == (2, [])
    assert "::error title=Resolver::INPUT_MAX-BUDGET" in done.stdout
    result = scenario.github.event_issue_comment(scenario.mention(text="no request"))
    assert scenario.action(result, **{"INPUT_MAX-BUDGET": "five"}).exit_code == 2
    assert scenario.bot_comments() == [] and scenario.outputs()["state"] == "error"


def test_a_wrong_settings_file_is_reported_in_the_conversation(scenario: Scenario) -> None:
    """A whole run of the Action, because it fails between the clone and the sandbox, and each place
    that a person looks at has to say so."""
    bad = {".github/resolver.yml": "max_iterations: [\n"}
    scenario.github.commit(REPOSITORY, "main", bad, "x")
    done, body = asked(scenario)
    assert done.exit_code == 2, done.stderr
    assert ".github/resolver.yml, line 2: not YAML" in body
    assert "**What next:** Correct the file on the default branch." in body
    assert scenario.outputs()["state"] == "error" and scenario.outputs()["outcome"]
    assert "::error title=Resolver::.github/resolver.yml" in done.stdout


@pytest.mark.attack
@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("resolver-output", "/tmp"),
        pytest.param("resolver-output/outcome.json", "/e", marks=pytest.mark.nightly),
    ],
)
def test_a_link_in_the_place_of_the_output_is_reported_in_the_conversation(
    scenario: Scenario, link: str, target: str
) -> None:
    """The checkout contains a link where the Action writes: it is not followed."""
    workspace = scenario.line.folder / "linked"
    path = workspace / link
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    mention = scenario.mention()
    (workspace / "event.json").write_text(json.dumps(scenario.github.event_issue_comment(mention)))
    done = scenario.line.call(
        "action",
        GITHUB_EVENT_NAME="issue_comment",
        GITHUB_EVENT_PATH=str(workspace / "event.json"),
        GITHUB_WORKSPACE=str(workspace),
        GITHUB_OUTPUT=str(workspace / "outputs"),
    )
    outputs = (workspace / "outputs").read_text()
    assert done.exit_code == 2
    [body] = scenario.bot_comments()
    assert f"{link} is a link" in body and "Remove resolver-output from the checkout" in body
    assert f"{link} is a link" in done.stdout
    assert "state=error\n" in outputs and "outcome=\n" in outputs
    assert [reaction.content for reaction in mention.reactions] == ["eyes"]
    assert not scenario.endpoint.requests


def test_a_refused_model_key_is_reported_without_the_key(scenario: Scenario) -> None:
    """A whole run, because the key must be in none of the places that a job writes to."""
    scenario.endpoint.script(*[error(401, f"Incorrect API key provided: {MODEL_KEY}")] * 9)
    done, comment = asked(scenario)
    assert done.exit_code == 1, done.stderr
    assert scenario.outputs()["state"] == "error"
    assert "::error title=Resolver::the model endpoint at 127.0.0.1" in done.stdout
    assert "did not accept the key" in comment
    texts = (done.stdout, done.stderr, str(scenario.outputs()), scenario.summary(), comment)
    data = "\n".join(texts).encode() + files_below(done.output.parent)
    assert leaks(data, (MODEL_KEY, scenario.token)) == []


@pytest.mark.nightly
def test_a_repository_where_actions_may_not_open_pull_requests_gets_the_place_to_allow_it(
    scenario: Scenario,
) -> None:
    """A whole run, because the branch is pushed before GitHub refuses the pull request."""
    login = "github-actions[bot]"
    scenario.github.add_user(login, type="Bot")
    scenario.repository.actions_may_create_pulls = False
    scenario.endpoint.script(FIX, finish(SUMMARY))
    event = scenario.github.event_issue_comment(scenario.mention())
    done = scenario.action(event, GITHUB_TOKEN=scenario.github.token_for(login, REPOSITORY))
    assert done.exit_code == 1, done.stderr
    assert not scenario.pulls()
    [comment] = [c.body for c in scenario.issue.comments if c.author.login == login]
    assert "Allow GitHub Actions to create and approve pull requests" in comment
    [branch] = scenario.branches()
    assert branch in comment, "the work that is pushed is not named"


@pytest.mark.nightly
def test_an_answer_without_a_change_is_given_once(scenario: Scenario) -> None:
    """Whole runs, because the second finds what the first left on GitHub."""
    scenario.endpoint.script(finish("add is fine: it subtracts on purpose."))
    event = scenario.github.event_issue_comment(scenario.mention())
    first = scenario.action(event)
    assert first.exit_code == 3, first.stderr
    assert "::error title=Resolver::Finished without a change" in first.stdout
    assert "it subtracts on purpose" in scenario.summary()
    assert not scenario.pulls()
    [body] = scenario.bot_comments()
    assert "it subtracts on purpose" in body and "nothing to change" in first_line(body)
    second = scenario.action(event)
    assert second.exit_code == 0, second.stderr
    [comment] = [c for c in scenario.issue.comments if c.author.login == "resolver-bot"]
    notice = "::notice title=Resolver::An earlier run has already handled this request"
    assert notice in second.stdout
    assert f"issuecomment-{comment.id}" in scenario.summary()
    assert len(scenario.endpoint.requests) == 1


@pytest.mark.attack
def test_a_missing_engine_never_means_less_isolation(scenario: Scenario) -> None:
    """The runner has no Docker engine: the job fails instead of working with less isolation."""
    done, body = asked(scenario, RESOLVER_RUNTIME="docker", DOCKER_HOST="tcp://127.0.0.1:1")
    assert done.exit_code == 1, done.stderr
    assert not scenario.endpoint.requests
    assert "no Docker engine answers at tcp://127.0.0.1:1" in body


@pytest.mark.nightly
@pytest.mark.engine
def test_an_image_that_cannot_be_pulled_is_reported(scenario: Scenario, engine: object) -> None:
    image = "127.0.0.1:1/no/such:image"
    done, body = asked(scenario, RESOLVER_RUNTIME="docker", INPUT_IMAGE=image)
    assert done.exit_code == 1, done.stderr
    assert not scenario.endpoint.requests
    assert image in body


@pytest.mark.nightly
@pytest.mark.engine
def test_the_repository_sets_what_the_workflow_leaves_out(
    scenario: Scenario, busybox_image: str
) -> None:
    """A whole run, because the file of the repository is read from the clone."""
    limits = f"max_iterations: 1\nimage: {busybox_image}\n"
    scenario.github.commit(REPOSITORY, "main", {".github/resolver.yml": limits})
    scenario.endpoint.script(bash("echo one"), bash("echo two"))
    done, _ = asked(scenario, RESOLVER_RUNTIME="docker", INPUT_IMAGE="")
    assert done.exit_code == 4, done.stderr
    assert (scenario.outputs()["state"], scenario.outputs()["iterations"]) == ("limit", "1")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "full",
    [
        [".trace.md.new"],
        [".outcome.json.new", ".patch.diff.new", ".trace.md.new"],
    ],
)
def test_a_disk_that_is_full_at_the_end_is_reported_without_a_traceback(
    scenario: Scenario, full: list[str]
) -> None:
    folder = scenario.line.folder / "workspace-1" / "resolver-output"

    def answer(body: dict[str, Any]) -> Answer:
        if len(body["messages"]) == 2:
            return FIX
        for name in full:
            (folder / name).symlink_to("/dev/full")
        return finish(SUMMARY)

    scenario.endpoint.answer_with(answer)
    done, body = asked(scenario)
    assert done.exit_code == 1
    assert ending(body) == "pull_request" and len(scenario.pulls()) == 1
    assert scenario.outputs()["pull-request-url"].endswith(f"/pull/{scenario.pulls()[0].number}")
    assert scenario.outputs()["state"] == "error"
    assert "::error title=Resolver::" in done.stdout and "disk" in done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    assert scenario.summary()
    assert (folder / "events.jsonl").stat().st_size
    if ".outcome.json.new" not in full:
        assert "disk" in done.outcome["reason"]


@pytest.mark.nightly
def test_a_disk_that_is_full_in_the_middle_is_reported(scenario: Scenario) -> None:
    """A whole run, because the disk has to be full between two stages."""
    folder = scenario.line.folder / "workspace-1" / "resolver-output"

    def answer(body: dict[str, Any]) -> Answer:
        full = folder / ".change.json.new"
        if not full.is_symlink():
            full.symlink_to("/dev/full")
        return finish(SUMMARY) if len(body["messages"]) > 2 else FIX

    scenario.endpoint.answer_with(answer)
    done, body = asked(scenario)
    assert done.exit_code == 1 and ending(body) == "error"
    assert "disk of the machine that runs Resolver is full" in body
    assert "**What next:** Free some disk space, then ask again." in body


def no_writing(scenario: Scenario, status: int, times: int) -> None:
    """From the fix on GitHub takes no comment, so many times."""
    begun: list[int] = []

    def answer(body: dict[str, Any]) -> Answer:
        if not begun:
            begun.append(1)
            scenario.github.fail_next("PATCH", r"/issues/comments/", status, times=times)
            scenario.github.fail_next("POST", r"/issues/\d+/comments", status, times=times)
        return finish(SUMMARY) if len(body["messages"]) > 2 else FIX

    scenario.endpoint.answer_with(answer)


@pytest.mark.nightly
def test_the_final_comment_is_retried_until_it_is_accepted(scenario: Scenario) -> None:
    """A whole run, because GitHub has to fail from the middle of it on."""
    no_writing(scenario, 502, times=3)
    done, body = asked(scenario)
    assert done.exit_code == 0, done.stderr
    assert ending(body) == "pull_request" and scenario.outputs()["state"] == "finished"


def test_a_final_comment_that_is_never_accepted_is_left_to_the_closing_step(
    scenario: Scenario,
) -> None:
    """Whole runs, because the closing step reads what the run has left."""
    no_writing(scenario, 422, times=999)  # an outage would be waited for
    done, body = asked(scenario, RESOLVER_RETRY_SECONDS="{final_comment: 0, first_wait: 0.05}")
    [pull] = scenario.pulls()
    assert done.exit_code == 1 and ending(body) == "progress"
    assert scenario.outputs()["state"] == "", "so that the job `close` runs"
    assert scenario.outputs()["pull-request-url"].endswith(f"/pull/{pull.number}")
    assert (
        "::error title=Resolver::The result of this run could not be posted on GitHub."
        in done.stdout
    )
    assert f"/pull/{pull.number}" in scenario.summary()
    scenario.github.forget_failures()
    event = scenario.github.event_issue_comment(scenario.issue.comments[0])
    assert scenario.action(event, INPUT_CLOSE="true").exit_code == 0
    [body] = scenario.bot_comments()
    assert ending(body) == "pull_request" and f"Resolver opened [#{pull.number}]" in body
