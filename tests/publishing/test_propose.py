"""Tests of which pull request is opened after a push."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.errors import ForgeError
from resolver.events.actions import Finish
from resolver.events.lifecycle import StageCompleted
from resolver.events.log import read_log
from resolver.git.workspace import Workspace
from resolver.github.client.accounts import ACTIONS_LOGIN
from resolver.github.comments.report import Report
from resolver.models.pull_request import (
    AnsweredThreads,
    ReviewThread,
    ThreadAnswer,
    ThreadReply,
    ThreadRequest,
)
from resolver.models.run import (
    Command,
    Publication,
    PublicationMethod,
    PullRequest,
    RunState,
    TriggerKind,
)
from resolver.publishing.commit_builder import CommitBuilder, PushedChange
from resolver.publishing.pull_request import propose, report_pending_checks
from resolver.publishing.review import answer_threads, compose_replies
from resolver.security.redaction import Redactor
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.publishing.test_commit_builder import publish_request
from tests.runs.plain_values import run_log

PULL = PullRequest(title="Fix it", body="", number=13, url="https://github.com/o/r/pull/13")


class RecordingForge(MemoryForge):
    """A forge that keeps which pull requests it was asked to open."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "issue.md", "main")
        self.asked: list[str] = []

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        assert report.task is not None
        self.asked.append(f"open {branch} into {report.task.base_branch}")
        return PULL


@pytest.mark.parametrize(
    ("how", "base", "requests", "stages"),
    [
        ("pushed", None, [], ["half"]),
        ("unchanged", "main", [], []),
        ("separate", "main", ["open half into main"], [PULL.url]),
    ],
)
def test_only_a_branch_of_its_own_gets_a_pull_request(
    tmp_path: Path,
    how: PublicationMethod,
    base: str | None,
    requests: list[str],
    stages: list[str],
) -> None:
    forge = RecordingForge(tmp_path)
    workspace = Workspace(tmp_path, str(tmp_path), "a" * 40, "main")
    pushed = PushedChange(Publication(branch="half", how=how), proposed_base=base)
    with run_log(tmp_path / "events.jsonl") as log:
        log.stage("change", "", 0.0)
        request = replace(publish_request(), log=log)
        list(propose(CommitBuilder(request, forge, workspace), pushed, time.monotonic()))
    logged = [e for e in read_log(tmp_path / "events.jsonl") if isinstance(e, StageCompleted)]
    assert forge.asked == requests
    assert [stage.detail for stage in logged if stage.stage == "published"] == stages


class RefusingForge(MemoryForge):
    """A forge on which no pull request may be opened."""

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        raise ForgeError(f"{branch} may not be proposed", "allow it")


def test_a_branch_that_was_pushed_is_known_if_its_pull_request_is_refused(tmp_path: Path) -> None:
    pushed = PushedChange(Publication(branch="agent/12"), proposed_base="main")
    workspace = Workspace(tmp_path, str(tmp_path), "a" * 40, "main")
    forge = RefusingForge(tmp_path / "issue.md", "main")
    steps = propose(CommitBuilder(publish_request(), forge, workspace), pushed, 0.0)
    assert next(steps).publication.branch == "agent/12"
    with pytest.raises(ForgeError, match="agent/12 may not be proposed"):
        next(steps)


@pytest.mark.parametrize(
    ("publication", "login", "expected"),
    [
        (Publication(branch="agent/12"), ACTIONS_LOGIN, 1),
        (Publication(branch="agent/12"), "a[bot]", 0),
        (Publication(branch="agent/12", repeated=True), ACTIONS_LOGIN, 0),
        (Publication(how="patch"), ACTIONS_LOGIN, 0),
    ],
)
def test_it_is_said_that_no_checks_start_only_if_a_job_has_pushed_a_branch(
    publication: Publication, login: str, expected: int
) -> None:
    warnings = report_pending_checks(publication, MemoryForge(login=login))
    assert len(warnings) == expected
    assert all("starts no workflows" in warning for warning in warnings)


ASKED = tuple(
    ThreadRequest(label=f"T{n}", thread=ReviewThread(id=f"id{n}", path="a.py", line=n))
    for n in (1, 2, 3)
)


def said(
    *answers: ThreadAnswer, asked: int = 3, public: bool = True, **outcome: Any
) -> list[tuple[str, bool, str]]:
    replies = compose_replies(
        ASKED[:asked], answers, reports.outcome("Closing words.", **outcome), public
    )
    return [(reply.thread.label, reply.is_addressed, reply.text) for reply in replies]


def answer(id: str, words: str = "", addressed: bool = True) -> ThreadAnswer:
    return ThreadAnswer(id=id, addressed=addressed, answer=words)


@pytest.mark.parametrize(
    ("answers", "public", "replies"),
    [
        (
            (answer("T3", "Split."), answer("T1", "No.", addressed=False)),
            True,
            [("T1", False, "No."), ("T3", True, "Split.")],
        ),
        ((answer("T1"), answer("T2", "  ", addressed=False)), True, [("T1", True, "")]),
        ((answer("T1", "Renamed."), answer("T2")), False, [("T1", False, "Renamed.")]),
        ((answer("T9", "x"), answer("", "x")), True, []),
        ((), True, []),
    ],
    ids=["in order", "without text", "not public", "made up", "none"],
)
def test_only_what_the_agent_names_is_answered(
    answers: tuple[ThreadAnswer, ...], public: bool, replies: list[tuple[str, bool, str]]
) -> None:
    assert said(*answers, public=public) == replies


@pytest.mark.parametrize(
    ("public", "completed", "change", "reply"),
    [
        (True, True, "`half` is `halve`.", ("T1", True, "`half` is `halve`.")),
        (True, True, "", ("T1", True, "Closing words.")),
        (True, False, "", ("T1", False, "Closing words.")),
        (False, True, "x", ("T1", False, "Closing words.")),
    ],
)
def test_the_only_conversation_gets_the_closing_words(
    public: bool, completed: bool, change: str, reply: tuple[str, bool, str]
) -> None:
    assert said(asked=1, public=public, task_completed=completed, change=change) == [reply]


class ThreadForge(MemoryForge):
    """A forge that notes the replies to review threads."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "issue.md", "main")
        self.replies: list[ThreadReply] = []

    def answer_threads(
        self, report: Report, replies: Sequence[ThreadReply], commit: str | None
    ) -> AnsweredThreads:
        del report, commit
        self.replies += replies
        return AnsweredThreads(url="https://github.com/octo/demo/pull/7#discussion_r1")


@pytest.mark.parametrize("is_question", [True, False])
@pytest.mark.parametrize(
    ("state", "is_answered"),
    [
        (RunState.FINISHED, True),
        (RunState.LIMIT, False),
    ],
)
def test_a_run_that_did_not_finish_leaves_the_threads_to_its_final_comment(
    tmp_path: Path, state: RunState, is_answered: bool, is_question: bool
) -> None:
    command = Command.QUESTION if is_question else Command.FIX
    trigger = reports.trigger(kind=TriggerKind.REVIEW_COMMENT, command=command)
    report = reports.report(
        trigger=trigger,
        task=reports.task(trigger, asked=ASKED[:1]),
        outcome=reports.outcome("It rounds down.", state=state),
        answers=is_question,
    )
    forge = ThreadForge(tmp_path)
    with run_log(tmp_path / "events.jsonl") as log:
        posted = answer_threads(report, log, forge, Redactor(()))
    texts = [reply.text for reply in forge.replies]
    assert texts == (["It rounds down."] if is_answered else [])
    # Only where the reply is all there is to say, it replaces the final comment.
    assert bool(posted.comment_url) is (is_answered and is_question)


def test_a_reply_contains_no_secret_of_the_run(tmp_path: Path) -> None:
    secret = "ghs_" + "s3cret" * 6
    trigger = reports.trigger(kind=TriggerKind.REVIEW_COMMENT)
    report = reports.report(
        trigger=trigger,
        task=reports.task(trigger, asked=ASKED[:2]),
        patch=reports.patch().model_copy(update={"commit": None}),
    )
    forge = ThreadForge(tmp_path)
    with run_log(tmp_path / "events.jsonl") as log:
        answers = (answer("T1", f"Use {secret} there."),)
        log.stream.add(Finish(message="Both are on purpose.", threads=answers))
        posted = answer_threads(report, log, forge, Redactor((secret,)))
    [reply] = forge.replies
    assert reply.text == "Use [redacted] there."
    assert posted.comment_url is None, "the final comment was left out"
