"""Tests of what a ticked box of the dashboard does, on a test GitHub with git over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.github.client.access import GitHubAccess
from resolver.github.comments.markers import DASHBOARD
from resolver.github.events.dashboard_boxes import RETRY, STOP
from resolver.github.events.quota_ledger import LedgerPlace, LedgerRun, QuotaLedger
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.models.trigger import TickedBox
from resolver.runs.conversation.command_handler import CommandHandler, RunsOfOtherJobs
from resolver.runs.wiring.sandbox import RunHost
from tests.github import reports
from tests.github.events.ledgers import a_run, ended, run_id
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.quotas.booking import NOW, Place

REPOSITORY = "octo/demo"
BOT = "resolver-bot"
TAKEN = "The run in progress reads the stop request from the ledger."
COMMANDS = {STOP: Command.STOP, RETRY: Command.CONTINUE}


class Board:
    """A repository whose dashboard shows the runs of its ledger."""

    def __init__(self, github: GitHubServer) -> None:
        self.github = github
        github.create_repository(REPOSITORY)
        github.grant(BOT, REPOSITORY, "write")
        github.grant("mona", REPOSITORY, "write")
        github.grant("tess", REPOSITORY, "triage")
        self.issue: Issue = github.create_issue(REPOSITORY, "Runs", f"{DASHBOARD}\n", author=BOT)
        token = github.token_for(BOT, REPOSITORY)
        self.place = Place(github.server_url, REPOSITORY, token)
        urls = (github.api_url, github.server_url, github.graphql_url)
        access = GitHubAccess(token, *urls, attempts=0, bot_login=BOT, pause_between_writes=0.0)
        self.forge = GitHubForge(access, REPOSITORY)

    def fill(self, *runs: LedgerRun) -> None:
        filled = QuotaLedger(runs=runs, place=LedgerPlace(number=self.issue.number, until=NOW))
        self.place.ledger().change(lambda _: (filled, None))

    def tick(
        self,
        action: str,
        run: LedgerRun,
        by: str = "mona",
        *,
        dashboard: int = 0,
        enabled: str = "true",
    ) -> str:
        """Tick the box of a run; return the message, "" if a run is to be started.

        dashboard: number of another issue that has the same box.
        """
        trigger: Trigger = reports.trigger(
            kind=TriggerKind.BOX_TICKED,
            number=run.number,
            is_pull_request=run.pull_request,
            actor=Actor(login=by),
            command=COMMANDS[action],
            comment_id=None,
            ticked=TickedBox(dashboard=dashboard or self.issue.number, run=run.run),
        )
        settings = load_settings({}, {"RESOLVER_DASHBOARD": enabled})
        handler = CommandHandler(self.forge, settings, self.place.ledger)
        targets = RunsOfOtherJobs(self.forge, settings, RunHost({}, Path("cache")), run_id(9))
        handled = handler.handle(trigger, run_id(9), targets)
        assert handled is None or (handled.state, handled.exit_code) == ("ticked", 0)
        return handled.message if handled else ""

    @property
    def runs(self) -> tuple[LedgerRun, ...]:
        return self.place.ledger().read().runs


@pytest.fixture
def board(github: GitHubServer) -> Board:
    return Board(github)


def on_pull_request(run: LedgerRun) -> LedgerRun:
    return run.model_copy(update={"number": 20, "thread": 20, "pull_request": True})


@pytest.mark.parametrize("change", [lambda run: run, on_pull_request])
def test_continue_starts_a_run_where_the_earlier_one_was(board: Board, change: Any) -> None:
    run = change(ended(1, ending="error"))
    board.fill(run)
    assert board.tick(RETRY, run) == ""
    assert board.runs == (run,)


def test_stop_is_written_to_the_ledger_and_shown(board: Board) -> None:
    board.fill(a_run(1))
    assert board.tick(STOP, a_run(1)) == TAKEN
    assert [run.stop_by for run in board.runs] == ["mona"]
    assert "is stopping, as requested by `mona`" in (board.issue.body or "").replace("\u00a0", " ")


def test_a_run_that_has_ended_is_not_stopped(board: Board) -> None:
    board.fill(ended(1))
    assert board.tick(STOP, ended(1)) == "The run has ended."
    assert board.runs == (ended(1),)


def test_nothing_is_continued_beside_a_run_in_progress(board: Board) -> None:
    board.fill(ended(1, ending="error"), a_run(2))
    message = board.tick(RETRY, ended(1, ending="error"))
    assert message == "A run is already in progress there."


@pytest.mark.attack
@pytest.mark.parametrize("action", [STOP, RETRY])
def test_a_person_without_write_access_ticks_in_vain(board: Board, action: str) -> None:
    """Somebody who may edit issues and may not start work ticks a box: it is only unticked."""
    run = a_run(1) if action == STOP else ended(1, ending="error")
    board.fill(run)
    board.github.edit_issue(board.issue, body=f"{DASHBOARD}\n\n- [x] as ticked")
    assert board.tick(action, run, "tess").startswith("The box is not for tess: ")
    assert board.runs == (run,)
    assert "- [x]" not in (board.issue.body or "") and run.run in (board.issue.body or "")


def test_who_asked_for_a_run_may_stop_it_without_write_access(board: Board) -> None:
    run = a_run(1, user="tess")
    board.fill(run)
    assert board.tick(STOP, run, "Tess") == TAKEN
    failed = ended(2, thread=13, ending="error", user="tess")
    board.fill(failed)
    assert board.tick(RETRY, failed, "tess").startswith("The box is not for tess: ")


@pytest.mark.attack
def test_a_copy_of_the_dashboard_in_another_issue_starts_nothing(board: Board) -> None:
    """A maintainer ticks a box in somebody's copy of the dashboard: no run starts."""
    run = ended(1, ending="error")
    board.fill(run)
    message = board.tick(RETRY, run, dashboard=board.issue.number + 1)
    assert message == "The box does not belong to the dashboard."


def test_without_a_dashboard_no_box_is_read(board: Board) -> None:
    run = ended(1, ending="error")
    board.fill(run)
    assert board.tick(RETRY, run, enabled="false") == "There is no dashboard: the setting is off."
