"""Tests of the reviewer: prompt, tools, and review comments in both dialects."""

import json
import re
from typing import Any

import pytest

from resolver.agents.readonly import REVIEWER, ReviewerAgent
from resolver.agents.registry import AGENTS, make_agent
from resolver.agents.task_prompt import MAX_THREADS_LENGTH
from resolver.agents.tools.calls import parse_tool_call
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.llm.replay import ReplayModel
from resolver.memory.conversation import Dialect
from resolver.models.pull_request import AuthoredText, PullRequestContext, ReviewThread
from resolver.models.run import RequestedToolCall
from tests.agents.test_prompts import make_task, rendered
from tests.github.reports import WHEN

DIALECTS: list[Dialect] = ["tools", "tags"]


def called(name: str = "review_comment", **arguments: Any) -> ActionBase:
    call = RequestedToolCall(id="1", name=name, arguments=json.dumps(arguments))
    return parse_tool_call(call)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_reviewer_has_its_own_rules_and_tools(dialect: Dialect) -> None:
    agent = make_agent(REVIEWER, ReplayModel([]), dialect)
    assert isinstance(agent, ReviewerAgent)
    prompt = agent.system_prompt()
    assert "never instructions" in prompt.content
    assert "review_comment" in prompt.tools
    assert "submit_review" in prompt.tools
    assert "str_replace_editor" not in prompt.tools
    assert ("<review_comment" in prompt.content) == (dialect == "tags")
    assert AGENTS[REVIEWER].is_read_only


def test_a_review_comment_is_accepted_in_the_forms_that_models_write() -> None:
    found = called(
        path="./src/a.py",
        line="12",
        start_line="10",
        body="x",
        side="right",
        severity="High",
        suggestion="  y\n",
    )
    assert isinstance(found, a.ReviewComment)
    assert (found.path, found.start_line, found.line) == ("src/a.py", 10, 12)
    assert (found.side, found.severity, found.suggestion) == ("RIGHT", "high", "  y")


@pytest.mark.parametrize("idle", ["", "  \n", None])
def test_an_empty_suggestion_counts_as_none(idle: str | None) -> None:
    found = called(path="a.py", line=1, body="x", suggestion=idle, start_line="", severity=" low")
    assert isinstance(found, a.ReviewComment)
    assert (found.suggestion, found.start_line, found.severity) == (None, None, "low")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"path": "a.py", "line": 0, "body": "x"}, "line"),
        ({"path": "a.py", "line": 3, "start_line": 9, "body": "x"}, "after line 3"),
        ({"path": "a.py", "line": 9_000, "start_line": 1, "body": "x"}, "at most 300"),
        ({"path": "a.py", "line": 3, "body": " "}, "body is empty"),
        ({"path": "a.py", "line": 3, "body": "x", "side": "MIDDLE"}, "side"),
        ({"path": "a.py", "line": 3, "body": "x", "severity": "cosmic"}, "severity"),
        ({"line": 3, "body": "x"}, "path is missing"),
        ({"path": "a.py", "line": 3, "body": "x", "sugestion": "y"}, "did you mean 'suggestion'"),
    ],
)
def test_an_unreadable_review_comment_is_answered_with_the_correct_form(
    arguments: dict[str, Any], says: str
) -> None:
    found = called(**arguments)
    assert isinstance(found, a.Invalid)
    assert says in found.reason
    assert "review_comment(path: string, line: integer" in found.reason


@pytest.mark.parametrize(
    ("given_", "verdict"),
    [("", "comment"), ("Approve", "approve"), ("request changes", "request_changes")],
)
def test_the_end_of_a_review_is_a_finish_with_a_verdict(given_: str, verdict: str) -> None:
    found = called("submit_review", summary="Fine.", verdict=given_, remaining="Windows")
    assert isinstance(found, a.Finish)
    assert (found.message, found.verdict, found.remaining) == ("Fine.", verdict, "Windows")


def thread(number: int, *, resolved: bool = False, body: str = "x" * 5_000) -> ReviewThread:
    words = AuthoredText(id=number, author="eve", at=WHEN, body=body)
    return ReviewThread(
        id=str(number), path=f"{number}.py", line=1, is_resolved=resolved, comments=(words,)
    )


def test_of_many_review_threads_the_open_and_the_newest_are_shown() -> None:
    threads = tuple(thread(n, resolved=n == 19) for n in range(20))
    pull = PullRequestContext(number=1, head="a" * 40, base_branch="main", threads=threads)
    prompt = rendered(make_task(pull=pull))
    heads = re.findall(r"--- begin (.* conversation on .*) \w+ ---", prompt)
    assert heads[0] == "open conversation on 18.py:1"
    assert len(heads) * 5_000 <= MAX_THREADS_LENGTH
    assert f"{20 - len(heads)} more conversations on the code are not shown" in prompt
    assert not any("resolved" in head for head in heads)
