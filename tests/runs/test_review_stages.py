"""Tests of what the stages of a run do for reviews and for review threads."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings
from resolver.events.actions import Finish, ReviewComment
from resolver.events.observations import AgentStateChanged
from resolver.events.run_log import RunLog
from resolver.git.workspace import Workspace
from resolver.github.comments.report import Report
from resolver.models.pull_request import (
    AnsweredThreads,
    DiffFile,
    DiffHunk,
    PublishedReview,
    PullRequestContext,
    Review,
    ReviewThread,
    ThreadReply,
    ThreadRequest,
)
from resolver.models.run import ExportedChange, Patch, RunState
from resolver.runs.execute import _separately_answered_threads
from resolver.runs.pipeline import (
    _answer_threads,
    _execute,
    _publish,
)
from resolver.runs.stages import ExecutedRun, RunRequest, StageValues
from resolver.runs.verify import ChangeVerifier
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.parts.runs import make_checkout
from tests.runs.plain_values import (
    executed_values,
    prepared_run,
    published_values,
    run_log,
    run_request,
)
from tests.trace import sample

THREADS = tuple(
    ThreadRequest(label=f"T{n}", thread=ReviewThread(id=f"id{n}", path="a.py", line=n))
    for n in (1, 2)
)


class ReviewForge(MemoryForge):
    """A forge that notes the reviews and the replies that it gets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "issue.md", "main")
        self.noted: list[Review] = []
        self.replies: list[int] = []

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        self.noted.append(review)
        return super().publish_review(report, review)

    def answer_threads(
        self, report: Report, replies: Sequence[ThreadReply], commit: str
    ) -> AnsweredThreads:
        del report, commit
        self.replies.append(len(replies))
        return AnsweredThreads(url="https://github.com/octo/demo/pull/7#discussion_r1")


@pytest.mark.parametrize(
    ("publish", "asked", "posted"), [(True, 1, [1]), (False, 1, []), (True, 0, [])]
)
def test_without_publishing_or_threads_nobody_gets_a_reply(
    values: StageValues, log: RunLog, tmp_path: Path, publish: bool, asked: int, posted: list[int]
) -> None:
    request = replace(values.request, publish=publish)
    task = reports.task(request.trigger, asked=THREADS[:asked])
    workspace = Workspace(tmp_path / "clone.git", "source", "a" * 40, "pull/12")
    prepared = prepared_run(request, workspace, task=task)
    forge = ReviewForge(tmp_path)
    log.stream.add(Finish(message="Done"))
    _answer_threads(replace(published_values(values), prepared=prepared), prepared, log, forge)
    assert forge.replies == posted


@pytest.mark.parametrize(
    ("agent", "asked", "labels"),
    [
        ("ReadOnlyAgent", 1, ()),
        ("ReadOnlyAgent", 2, ("T1", "T2")),
        ("CodeActAgent", 1, ("T1",)),
        ("CodeActAgent", 0, ()),
    ],
)
def test_only_a_question_in_a_single_thread_is_answered_by_the_final_message(
    tmp_path: Path, agent: str, asked: int, labels: tuple[str, ...]
) -> None:
    request, settings = run_request(tmp_path), Settings(agent=agent)
    task = reports.task(request.trigger, asked=THREADS[:asked])
    prepared = prepared_run(request, settings=settings, task=task)
    assert _separately_answered_threads(prepared, settings) == labels


def pull_request_values(request: RunRequest, **settings: Any) -> StageValues:
    """Return the values of a run that has finished its review of a.py in a pull request."""
    hunk = DiffHunk(old_start=1, old_lines=2, new_start=1, new_lines=3)
    file = DiffFile(path="a.py", status="modified", hunks=(hunk,))
    pull = PullRequestContext(number=12, head="a" * 40, base_branch="main", files=(file,))
    folder = request.output.folder.parent / "clone.git"
    workspace = Workspace(folder, "source", "a" * 40, "pull/12", pull=pull)
    prepared = prepared_run(request, workspace, settings=Settings(**settings))
    return replace(executed_values(request), prepared=prepared)


@pytest.mark.parametrize(
    ("publish", "agent", "state", "published"),
    [
        (True, "ReviewerAgent", RunState.FINISHED, 1),
        (False, "ReviewerAgent", RunState.FINISHED, 0),
        (True, "ReviewerAgent", RunState.LIMIT, 0),
        (True, "ReadOnlyAgent", RunState.FINISHED, 0),
    ],
)
def test_only_a_review_that_was_finished_is_published_and_only_where_it_is_wanted(
    tmp_path: Path, publish: bool, agent: str, state: RunState, published: int
) -> None:
    request = replace(run_request(tmp_path), publish=publish)
    values = pull_request_values(request)
    prepared, forge = values.prepared, ReviewForge(tmp_path)
    assert prepared is not None
    executed = ExecutedRun(reports.outcome("It halves.", state=state), reports.patch())
    opening = sample.started()
    task = opening.task.model_copy(update={"pull": prepared.workspace.pull})
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(opening.model_copy(update={"agent": agent, "task": task}))
        log.stream.add(ReviewComment(path="a.py", line=2, body="This rounds down."))
        values = replace(replace(values, log=log), executed=executed)
        *_, last = _publish(values, prepared, executed, log, forge)
    assert [len(review.inline_comments) for review in forge.noted] == [1] * published
    is_review = agent == "ReviewerAgent" and state is RunState.FINISHED
    assert (last.publication.review is not None) is is_review
    text = request.output.folder / "review.md"
    assert text.exists() is is_review
    assert not is_review or "`a.py:2`" in text.read_text()


class ChangedWorkspace(Workspace):
    """A workspace that gets a change of a.py from the sandbox."""

    def receive(self, *_: object) -> Patch:
        change = {"base": self.base, "tree": self.tree(self.base)}
        return reports.patch("a.py").model_copy(update=change)


@pytest.mark.parametrize(
    ("agent", "files", "message"),
    [
        ("CodeActAgent", ["a.py"], "See a.py:2."),
        ("ReadOnlyAgent", [], "See a.py:2."),
        ("ReviewerAgent", [], "See a.py:2.\n\n- a.py:1 (medium):"),
    ],
)
def test_an_answer_has_the_comments_of_a_review_but_nothing_of_the_working_tree(
    tmp_path: Path, agent: str, files: list[str], message: str
) -> None:
    request = run_request(tmp_path)
    request.output.keep_change(ExportedChange(commit="c" * 40, tree="b" * 40))
    checkout = make_checkout(tmp_path / "calc", {"a.py": "x = 1\ny = 2\n"})
    workspace = ChangedWorkspace.clone(str(checkout), tmp_path / "clone.git")
    prepared = prepared_run(request, workspace)
    values = replace(StageValues(request, prepared.settings), prepared=prepared)
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(sample.started().model_copy(update={"agent": agent}))
        log.stream.add(ReviewComment(path="a.py", line=1, body="Name `x` better."))
        log.stream.add(Finish(message="See a.py:2."))
        log.stream.add(AgentStateChanged(state=RunState.FINISHED))
        values = replace(values, log=log)
        forge = ReviewForge(tmp_path)
        executed = _execute(values, prepared, log, forge, tmp_path, ChangeVerifier(prepared, log))
    assert executed.outcome.message.startswith(message)
    assert [file.path for file in executed.patch.files] == files
