"""Tests of the replies in the review threads that a request asks about."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resolver.events.actions import Finish
from resolver.github.comments.report import Report
from resolver.models.pull_request import (
    AnsweredThreads,
    ReviewThread,
    ThreadAnswer,
    ThreadReply,
    ThreadRequest,
)
from resolver.models.run import Command, RunState, TriggerKind
from resolver.publishing.review import answer_threads, compose_replies
from resolver.security.redaction import Redactor
from tests.github import reports
from tests.parts.memory_forge import MemoryForge
from tests.runs.plain_values import run_log

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


SECRET = "ghs_" + "s3cret" * 6


def answered(folder: Path, *answers: ThreadAnswer, is_question: bool = False) -> ThreadForge:
    """Return the forge after the replies of a run that two threads asked for, without a change."""
    command = Command.QUESTION if is_question else Command.FIX
    trigger = reports.trigger(kind=TriggerKind.REVIEW_COMMENT, command=command)
    report = reports.report(
        trigger=trigger,
        task=reports.task(trigger, asked=ASKED[:2]),
        outcome=reports.outcome("Both are on purpose.", task_completed=is_question),
        patch=reports.patch().model_copy(update={"commit": None}),
        answers=is_question,
    )
    forge = ThreadForge(folder)
    with run_log(folder / "events.jsonl") as log:
        log.stream.add(Finish(message="Both are on purpose.", threads=answers))
        posted = answer_threads(report, log, forge, Redactor((SECRET,)))
    assert posted.comment_url is None, "the final comment was left out"
    return forge


def test_a_reply_contains_no_secret_of_the_run(tmp_path: Path) -> None:
    [reply] = answered(tmp_path, answer("T1", f"Use {SECRET} there.")).replies
    assert reply.text == "Use [redacted] there."
