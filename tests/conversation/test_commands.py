"""How a command finds an earlier run, or none, asked of a GitHub over a real socket."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.events.observations import AgentStateChanged
from resolver.models.run import (
    Command,
    Continuation,
    ExportedChange,
    Publication,
    RunLimits,
    RunState,
    Snapshot,
    Trigger,
)
from resolver.runs.conversation.command_handler import (
    CommandHandler,
    HandledCommand,
    RunsOfOtherJobs,
)
from resolver.runs.conversation.commands import (
    archive_run_log,
    continue_from_archive,
    issue_of_command,
)
from resolver.runs.reporting import build_report, outcome_file_of
from resolver.runs.resuming.continuation import read_earlier_publication
from resolver.runs.resuming.resume import continue_run
from resolver.runs.stages import RunRequest, RunResult
from resolver.storage.earlier_runs import OUTCOME
from resolver.storage.run_refs import RUNS
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, forge_for, issue, triggered
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.runs.plain_values import PULL, executed_values, run_log, run_request
from tests.trace import sample

__all__ = ["issue"]

RUN = "20260102-030405-abc123"
LATER = "20260102-030406-abc123"
EARLIER = Publication(branch="agent/12", commit="d" * 40, tree="e" * 40, pull_request=PULL)


def settings_for(github: GitHubServer, **changes: str) -> Settings:
    environment = {
        "GITHUB_SERVER_URL": github.server_url,
        "GITHUB_TOKEN": github.token_for(BOT, NAME),
    }
    return load_settings({}, environment | changes)


def asked(folder: Path, conversation: Issue, **trigger: Any) -> RunRequest:
    """The request of a comment in that conversation."""
    asks = reports.trigger(repository=NAME, number=conversation.number, **trigger)
    return replace(run_request(folder), trigger=asks, run=RUN)


def ended(request: RunRequest, source: str = "", state: RunState | None = None) -> RunResult:
    """The result of a run that has written its log and its outcome.

    source: where the log's repository is cloned from. state: the last one in the log.
    """
    values = executed_values(request)
    outcome_file = outcome_file_of(values, values.publication, None, 3)
    task = reports.task(request.trigger, source=source)
    with run_log(request.output.log) as log:
        log.stream.add(sample.started().model_copy(update={"task": task}))
        if state is not None:
            log.stream.add(AgentStateChanged(state=state))
    request.output.write_outcome(outcome_file)
    return RunResult(request, build_report(values), outcome_file, values.publication, 3, log=log)


def archived(github: GitHubServer) -> list[str]:
    return github.repository(NAME).git.text("for-each-ref", "--format=%(refname)", RUNS).split()


def test_without_a_log_the_run_starts_over_where_it_was_asked_and_says_so(
    github: GitHubServer, issue: Issue, tmp_path: Path
) -> None:
    """On a pull request of ours, that is work on the pull request and not on its issue."""
    settings = settings_for(github)
    on_pull = {"is_pull_request": True, "issue": 3}
    request = asked(tmp_path, issue, command=Command.CONTINUE, **on_pull)
    found = continue_from_archive(request, settings)
    assert found.continuation is None and found.trigger.subject == issue.number
    assert found.notices == (
        "There is no log of an earlier run to continue, so this run started over.",
    )
    fresh = replace(request, trigger=request.trigger.model_copy(update={"command": Command.FIX}))
    assert continue_from_archive(fresh, settings) is fresh


def test_the_archived_log_of_the_last_run_is_continued(
    github: GitHubServer, issue: Issue, tmp_path: Path
) -> None:
    settings = settings_for(github)
    earlier = ended(asked(tmp_path, issue), f"{github.server_url}/{NAME}.git")
    archive_run_log(earlier, settings)
    wanted = {"command": Command.CONTINUE, "instruction": "mention the ticket"}
    request = replace(asked(tmp_path / "later", issue, **wanted), run=LATER)
    request = continue_from_archive(request, settings)
    assert request.output.log.read_bytes() == earlier.request.output.log.read_bytes()
    found = request.continuation
    assert found is not None and request.notices == ()
    assert (found.run, found.by, found.message) == (RUN, "alice", "mention the ticket")


def test_the_archived_change_is_published_without_new_work(
    github: GitHubServer, issue: Issue, tmp_path: Path
) -> None:
    settings, first = settings_for(github), asked(tmp_path, issue)
    bundle = tmp_path / "change.bundle"
    bundle.write_bytes(b"objects")
    change = ExportedChange(commit="c" * 40, tree="b" * 40, bundle=bundle)
    first.output.keep_change(change)
    source = f"{github.server_url}/{NAME}.git"
    archive_run_log(ended(first, source, RunState.FINISHED), settings)
    request = replace(asked(tmp_path / "later", issue, command=Command.PUBLISH), run=LATER)
    request = continue_from_archive(request, settings)
    assert request.continuation is not None and request.continuation.publishes
    kept = request.output.change
    assert kept is not None and kept.bundle is not None
    assert (kept.tree, kept.bundle.read_bytes()) == (change.tree, b"objects")
    with run_log(request.output.log) as log:
        continue_run(log, LATER, request.continuation, RunLimits())
        assert log.state.run_state is RunState.FINISHED


def test_a_command_on_resolvers_pull_request_is_about_its_issue(
    github: GitHubServer, issue: Issue
) -> None:
    for branch in ("agent/it-breaks", "mine"):
        github.commit(NAME, branch, {"a.py": "fixed"})
    request = reports.trigger(repository=NAME, number=issue.number)
    forge, report = forge_for(github), reports.report(trigger=request)
    own = forge.open_pull_request(report, "agent/it-breaks").number
    other = github.create_pull(NAME, "mine", "Mine", "", author="alice").number
    snapshot = Snapshot(title="Fix it", body="")

    def asked_on(number: int | None, **changes: Any) -> Trigger:
        return reports.trigger(
            repository=NAME, number=number, is_pull_request=True, snapshot=snapshot, **changes
        )

    found = issue_of_command(asked_on(own), forge)
    assert (found.number, found.issue, found.snapshot) == (own, issue.number, None)
    assert issue_of_command(asked_on(other), forge) == asked_on(other)
    assert issue_of_command(request, forge) == request


def test_a_log_that_cannot_be_archived_is_a_warning(
    github: GitHubServer, issue: Issue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    github.fail_next("*", r"git-receive-pack", 403, times=9)
    with caplog.at_level(logging.WARNING):
        archive_run_log(ended(asked(tmp_path, issue)), settings_for(github))
    assert "the log could not be stored in the repository" in caplog.text
    assert archived(github) == []


def test_what_was_public_before_a_continued_run_stays_known(tmp_path: Path) -> None:
    """A run that ends at its limit publishes nothing, and the next one adds to the same branch."""
    continuation = Continuation(run="run-0", by="alice", publication=EARLIER)
    request = replace(run_request(tmp_path), continuation=continuation)
    added = EARLIER.model_copy(update={"commit": "f" * 40})
    for publication, known in ((Publication(), EARLIER), (added, added)):
        written = outcome_file_of(executed_values(request), publication, None, 4)
        request.output.write_outcome(written)
        found = read_earlier_publication(request.output.folder / OUTCOME)
        assert (found.branch, found.commit) == (known.branch, known.commit)
        assert found.pull_request == PULL


@pytest.mark.parametrize(
    "content",
    [b"[]", b"\xff", b'{"a":' * 50_000, b'{"earlier": 1}'],
    ids=["list", "bytes", "deep", "number"],
)
def test_an_outcome_that_can_not_be_read_is_that_of_a_run_that_published_nothing(
    content: bytes, tmp_path: Path
) -> None:
    """It is read from a ref of the repository, to which people can push anything."""
    file = tmp_path / OUTCOME
    file.write_bytes(content)
    assert read_earlier_publication(file) == Publication()


@pytest.mark.parametrize(
    ("command", "is_taken", "answer"),
    [
        ("stop", False, "No run is in progress"),
        ("stop", True, None),  # by the run in another job, which has added a reaction
        ("approve", False, "No action is waiting for approval here"),
        ("publish", False, "nothing to publish"),
    ],
)
def test_a_command_without_a_run_is_answered_once_and_starts_none(
    github: GitHubServer,
    issue: Issue,
    tmp_path: Path,
    command: str,
    is_taken: bool,
    answer: str | None,
) -> None:
    trigger = triggered(github, github.add_comment(issue, f"@agent {command}", "alice"))
    forge, host = forge_for(github), run_request(tmp_path).host
    if is_taken:
        forge.confirm(trigger)
    settings = settings_for(github, RESOLVER_PACE='{"command_interval": 0}')
    for _ in range(2):
        targets = RunsOfOtherJobs(forge, settings, host, RUN)
        handled = CommandHandler(forge, settings).handle(trigger, RUN, targets)
        assert isinstance(handled, HandledCommand)
        assert (handled.state, handled.exit_code) == ("taken" if is_taken else "nothing", 0)
    answers = [c.body for c in issue.comments if c.author.login == BOT]
    assert len(answers) == (answer is not None)
    assert answer is None or answer in answers[0]


def test_a_decision_about_the_waiting_action_of_an_archived_run_continues_it(
    github: GitHubServer, issue: Issue, tmp_path: Path
) -> None:
    settings = settings_for(github, RESOLVER_PACE='{"command_interval": 0}')
    source = f"{github.server_url}/{NAME}.git"
    waiting = ended(asked(tmp_path, issue), source, RunState.AWAITING_CONFIRMATION)
    archive_run_log(waiting, settings)
    forge = forge_for(github)

    def decide(login: str) -> tuple[RunRequest, HandledCommand | Trigger]:
        trigger = triggered(github, github.add_comment(issue, "@agent approve 123456", login))
        request = replace(run_request(tmp_path / login), trigger=trigger, run=LATER)
        targets = RunsOfOtherJobs(forge, settings, request.host, LATER)
        return request, CommandHandler(forge, settings).handle(trigger, LATER, targets)

    _, refused = decide("eve")
    assert isinstance(refused, HandledCommand)
    assert (refused.state, refused.exit_code) == ("refused", 5)
    request, handled = decide("alice")
    assert handled == request.trigger, "a run is started for it"
    found = continue_from_archive(request, settings).continuation
    assert found is not None and (found.run, found.by) == (RUN, "alice")


@pytest.mark.parametrize(
    ("state", "command"),
    [(None, Command.FIX), (RunState.AWAITING_CONFIRMATION, Command.CONTINUE)],
)
def test_a_message_that_no_run_reads_starts_one(
    github: GitHubServer, issue: Issue, tmp_path: Path, state: RunState | None, command: Command
) -> None:
    """Where the last run waits for approval, the message is the answer to it."""
    settings = settings_for(github, RESOLVER_PACE='{"command_interval": 0}')
    request = asked(tmp_path, issue)
    if state is not None:
        source = f"{github.server_url}/{NAME}.git"
        archive_run_log(ended(request, source, state), settings)
    comment = github.add_comment(issue, "@agent deny, use pip instead", "alice")
    forge = forge_for(github)
    targets = RunsOfOtherJobs(forge, settings, request.host, LATER)
    started = CommandHandler(forge, settings).handle(triggered(github, comment), LATER, targets)
    assert isinstance(started, Trigger)
    assert (started.command, started.instruction) == (command, "deny, use pip instead")
