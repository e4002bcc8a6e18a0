"""Requests to a running server that change nothing: help, questions, agents by name.

Whole runs, because the answer comes from another process than the one that took the request.
"""

import pytest

from tests.parts.github_server.state import Comment, Issue
from tests.parts.runs import finish
from tests.parts.waiting import until
from tests.webhook.serving import FIX, Forge, Plans, Server


def say(forge: Forge, server: Server, issue: Issue, text: str) -> Comment:
    comment = forge.github.add_comment(issue, text, "mona")
    assert server.deliver(forge.github.event_issue_comment(comment)) == (202, "stored")
    return comment


def wait_for_comments(forge: Forge, issue: Issue, count: int = 1) -> list[str]:
    until(lambda: len(forge.final_comments(issue)) >= count)
    return [comment.body for comment in forge.final_comments(issue)]


def nothing_made(forge: Forge, issue: Issue) -> bool:
    return not forge.pulls(issue.repository) and not forge.branches(issue.repository)


def test_a_question_is_answered_and_can_be_continued(
    forge: Forge, server: Server, plans: Plans
) -> None:
    plans.add(
        "asks", FIX, finish("Because of `calc.py:2`."), FIX, finish("See `calc.py:1` as well.")
    )
    issue = forge.issue(forge.repository("octo/asks"), "asks")
    say(forge, server, issue, "@agent ask why does add() subtract?")
    [answer] = wait_for_comments(forge, issue)
    assert "calc.py#L2" in answer and "a claim, not a proof" in answer
    say(forge, server, issue, "@agent continue, and name the line of the function")
    more = wait_for_comments(forge, issue, 2)[1]
    assert "calc.py#L1" in more and "a claim, not a proof" in more
    assert nothing_made(forge, issue)
    assert len(plans.times("asks")) == 4
    words = str(plans.endpoint.requests[-1].body)
    assert "name the line of the function" in words
    assert "You answer a question" in words


@pytest.mark.nightly
def test_an_unknown_name_is_answered_with_the_known_ones(
    forge: Forge, server: Server, plans: Plans
) -> None:
    issue = forge.issue(forge.repository("octo/nobody"), "nobody")
    say(forge, server, issue, "@agent /nobody at all")
    [text] = wait_for_comments(forge, issue)
    assert "there is no agent or task /nobody here" in text and "/CodeActAgent" in text
    assert not plans.times("nobody")
