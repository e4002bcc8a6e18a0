"""Tests of the dashboard's checkboxes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.markers import DASHBOARD
from resolver.github.events.dashboard_boxes import (
    RETRY,
    STOP,
    find_run_of_box,
    newly_ticked,
    render_box,
    trigger_from_box,
)
from resolver.github.events.permission import IgnoredEvent
from resolver.github.events.quota_ledger import LedgerPlace, LedgerRun, QuotaLedger
from resolver.github.events.starting_events import ListeningPolicy
from resolver.models.run import Command, Trigger, TriggerKind
from tests.github.events.ledgers import NOW, a_run, ended, ledger, run_id
from tests.parts.github import GitHubServer

LISTENING = ListeningPolicy(mention="@agent", label="agent", bot_login="resolver-bot")
AT_WORK, STOPPED = a_run(1), ended(2, thread=13, ending="stopped")


def body(*boxes: str) -> str:
    lines = "\n".join(boxes)
    return f"{DASHBOARD}\n\nRuns.\n\n{lines}\n\nMore."


def row(action: str, run: LedgerRun, mark: str = " ") -> str:
    return f"- [{mark}] {render_box(action, run)} **Stop** it"


FREE = body(row(STOP, AT_WORK), row(RETRY, STOPPED))


def payload(github: GitHubServer, before: str, after: str, sender: str = "mona") -> dict[str, Any]:
    github.create_repository("octo/demo")
    issue = github.create_issue("octo/demo", "Dashboard", after, author="resolver-bot")
    event = github.event_issues(issue, "edited", sender)
    return {**event, "changes": {"body": {"from": before}}}


def test_ticking_stop_requests_a_stop(github: GitHubServer) -> None:
    after = body(row(STOP, AT_WORK, "x"), row(RETRY, STOPPED))
    trigger = trigger_from_box(payload(github, FREE, after), LISTENING)
    assert isinstance(trigger, Trigger)
    assert trigger.kind is TriggerKind.BOX_TICKED
    assert trigger.command is Command.STOP
    assert (trigger.number, trigger.subject, trigger.actor.login) == (12, 12, "mona")
    assert trigger.ticked is not None
    assert (trigger.ticked.dashboard, trigger.ticked.run) == (1, run_id(1))
    assert trigger.snapshot is None  # the dashboard's text is not the issue's


def test_ticking_continue_requests_a_continuation(github: GitHubServer) -> None:
    after = body(row(STOP, AT_WORK), row(RETRY, STOPPED, "x"))
    trigger = trigger_from_box(payload(github, FREE, after), LISTENING)
    assert isinstance(trigger, Trigger)
    assert (trigger.command, trigger.number) == (Command.CONTINUE, 13)


def test_a_run_on_resolvers_pull_request_is_continued_there(github: GitHubServer) -> None:
    run = ended(3, thread=12, ending="limit").model_copy(
        update={"number": 20, "pull_request": True}
    )
    trigger = trigger_from_box(
        payload(github, body(row(RETRY, run)), body(row(RETRY, run, "x"))), LISTENING
    )
    assert isinstance(trigger, Trigger)
    assert (trigger.number, trigger.subject, trigger.is_pull_request) == (20, 12, True)


def test_the_same_event_has_the_same_key(github: GitHubServer) -> None:
    event = payload(github, FREE, body(row(STOP, AT_WORK, "x")))
    first, again = trigger_from_box(event, LISTENING), trigger_from_box(event, LISTENING)
    assert isinstance(first, Trigger) and isinstance(again, Trigger)
    assert first.key == again.key


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_line_ends_of_a_browser_are_read(line_end: str) -> None:
    after = body(row(STOP, AT_WORK, "x"))
    found = newly_ticked(FREE.replace("\n", line_end), after.replace("\n", line_end))
    assert [tick.action for tick in found] == [STOP]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (FREE, FREE),
        (body(row(STOP, AT_WORK, "x")), body(row(STOP, AT_WORK, "x"))),
        (body(row(STOP, AT_WORK, "x")), body(row(STOP, AT_WORK))),
        # a box that was not there before the edit
        (body(), body(row(STOP, AT_WORK, "x"))),
        (body(row(STOP, STOPPED)), body(row(STOP, AT_WORK, "x"))),
        # no dashboard, before or after
        (FREE.removeprefix(DASHBOARD), body(row(STOP, AT_WORK, "x"))),
        (FREE, body(row(STOP, AT_WORK, "x")).removeprefix(DASHBOARD)),
        (f"> {FREE}", f"> {body(row(STOP, AT_WORK, 'x'))}"),
        # no box of ours
        (body("- [ ] buy milk"), body("- [x] buy milk")),
        (body(f"    {row(STOP, AT_WORK)}"), body(f"    {row(STOP, AT_WORK, 'x')}")),
        (body(f"> {row(STOP, AT_WORK)}"), body(f"> {row(STOP, AT_WORK, 'x')}")),
        (
            body(row(STOP, AT_WORK).replace("stop run", "merge run")),
            body(row(STOP, AT_WORK, "x").replace("stop run", "merge run")),
        ),
        ("", ""),
    ],
)
def test_other_edits_ask_for_nothing(before: str, after: str) -> None:
    assert newly_ticked(before, after) == []


@pytest.mark.parametrize("sender", ["resolver-bot", "ci[bot]"])
def test_ticks_of_bots_are_ignored(github: GitHubServer, sender: str) -> None:
    event = payload(github, FREE, body(row(STOP, AT_WORK, "x")), sender)
    listening = ListeningPolicy(
        mention="@agent", label="agent", bot_login="resolver-bot", allowed_users=("ci[bot]",)
    )
    assert isinstance(trigger_from_box(event, listening), IgnoredEvent)


def test_an_edit_of_the_title_asks_for_nothing(github: GitHubServer) -> None:
    event = payload(github, "", body(row(STOP, AT_WORK, "x")))
    event["changes"] = {"title": {"from": "Dash"}}
    assert isinstance(trigger_from_box(event, LISTENING), IgnoredEvent)


def trigger_of(github: GitHubServer, run: LedgerRun) -> Trigger:
    trigger = trigger_from_box(
        payload(github, body(row(STOP, run)), body(row(STOP, run, "x"))), LISTENING
    )
    assert isinstance(trigger, Trigger)
    return trigger


def placed(number: int, *runs: LedgerRun) -> QuotaLedger:
    return replace(ledger(*runs), place=LedgerPlace(number=number, until=NOW))


def test_a_box_of_a_known_run_is_accepted(github: GitHubServer) -> None:
    trigger = trigger_of(github, AT_WORK)
    assert find_run_of_box(placed(1, AT_WORK, STOPPED), trigger) == AT_WORK


def test_a_box_of_another_issue_or_run_is_refused(github: GitHubServer) -> None:
    trigger = trigger_of(github, AT_WORK)
    assert find_run_of_box(placed(2, AT_WORK), trigger) is None
    assert find_run_of_box(ledger(AT_WORK), trigger) is None
    assert find_run_of_box(placed(1, STOPPED), trigger) is None
    elsewhere = AT_WORK.model_copy(update={"thread": 40, "number": 40})
    assert find_run_of_box(placed(1, elsewhere), trigger) is None
    pull = AT_WORK.model_copy(update={"pull_request": True})
    assert find_run_of_box(placed(1, pull), trigger) is None


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_makes_the_reading_of_boxes_fail(before: str, after: str) -> None:
    assert newly_ticked(DASHBOARD + before, DASHBOARD + after) == []


@given(st.text(alphabet="- []xX<!>\nresolver:box stop=012", max_size=200))
def test_only_boxes_that_were_empty_can_be_newly_ticked(text: str) -> None:
    after = f"{DASHBOARD}\n{text}\n{row(STOP, AT_WORK, 'x')}"
    assert {tick.run for tick in newly_ticked(FREE, after)} <= {AT_WORK.run}
    assert newly_ticked(f"{DASHBOARD}\n{text}", after) == [] or render_box(STOP, AT_WORK) in text
