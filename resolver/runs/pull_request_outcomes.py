"""Finds out what became of Resolver's pull requests, and records it in the quota ledger.

The ledger keeps final outcomes, so that each refresh asks GitHub only about pull requests whose
outcome can still change.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from resolver.config.settings import Settings
from resolver.errors import ForgeError, ResolverError, UsageError, WorkspaceError
from resolver.git.git import Credential
from resolver.git.push import PREFIX
from resolver.github.context.own_pull_requests import ListedPullRequest, OwnPullRequests
from resolver.github.events.quota_ledger import QuotaLedger
from resolver.github.github_forge import GitHubForge
from resolver.models.outcome import PullRequestFacts, PullRequestOutcome, Replacement
from resolver.outcomes.classify import choose_replacement, classify_outcome, is_final
from resolver.outcomes.merged_lines import MergedLines
from resolver.runs.common import run_id
from resolver.runs.quotas.dashboard import Dashboard, update_dashboard
from resolver.runs.quotas.pull_request_entries import (
    add_outcomes_to_ledger,
    recorded_outcome,
    recorded_work,
)
from resolver.runs.wiring.sandbox import RunHost, access_of
from resolver.storage.ledger_ref import LedgerRef

logger = logging.getLogger("resolver.runs.pull_request_outcomes")

OUTCOME_PERIOD = timedelta(days=180)
"""How far back pull requests are looked at."""


@dataclass(frozen=True)
class OutcomeReader:
    """Reads the outcomes of the pull requests of one repository.

    pulls: reads them from GitHub. lines: compares them with git. ledger_ref: the quota ledger.
    """

    pulls: OwnPullRequests
    lines: MergedLines
    ledger_ref: LedgerRef

    def read(self, since: datetime, now: datetime) -> tuple[PullRequestOutcome, ...]:
        """Return the outcomes of the pull requests that were opened since then, newest first.

        A ledger that can't be read counts as an empty one. Raises ForgeError and WorkspaceError.
        """
        ledger = self._read_ledger()
        listed = [
            pull
            for pull in self.pulls.listed(since)
            if pull.has_marker or ledger.pull_request(pull.number)
        ]
        outcomes: dict[int, PullRequestOutcome] = {}
        for pull in listed:
            entry = ledger.pull_request(pull.number)
            outcome = recorded_outcome(entry, pull.title, pull.url) if entry else None
            if outcome is not None and is_final(outcome, pull.state, now):
                outcomes[pull.number] = outcome
        unsettled = [pull for pull in listed if pull.number not in outcomes]
        for outcome in self._find_out(unsettled, ledger, now):
            outcomes[outcome.number] = outcome
        return tuple(outcomes[number] for number in sorted(outcomes, reverse=True))

    def _read_ledger(self) -> QuotaLedger:
        try:
            return self.ledger_ref.read()
        except (WorkspaceError, ForgeError) as error:
            logger.warning("%s", error.what)
            return QuotaLedger(readable=False)

    def _find_out(
        self, listed: Sequence[ListedPullRequest], ledger: QuotaLedger, now: datetime
    ) -> list[PullRequestOutcome]:
        work = {pull.number: recorded_work(pull) for pull in ledger.pull_requests}
        facts = list(self.pulls.facts(listed, work))
        evidence = self.lines.measure(facts, now)
        replacements = self._find_replacements(facts)
        return [
            classify_outcome(pull, now, evidence.get(pull.number), replacements.get(pull.number))
            for pull in facts
        ]

    def _find_replacements(self, facts: Sequence[PullRequestFacts]) -> dict[int, Replacement]:
        """Return what was merged instead of the closed pull requests, by their numbers."""
        closed = [pull for pull in facts if pull.state == "closed" and pull.issue]
        by_issue = self.pulls.replacements({pull.issue for pull in closed if pull.issue})
        chosen = {
            pull.number: choose_replacement(pull, by_issue.get(pull.issue or 0, ()))
            for pull in closed
        }
        return {number: other for number, other in chosen.items() if other is not None}

    def record(self, outcomes: Sequence[PullRequestOutcome]) -> QuotaLedger | None:
        """Record the outcomes in the ledger and return it.

        Returns None if it can't be read or written: they are found out again then.
        """

        def change(ledger: QuotaLedger) -> tuple[QuotaLedger | None, QuotaLedger | None]:
            if not ledger.readable:
                # Only a run that a person starts may replace it: it stops bots until then.
                return None, None
            updated = add_outcomes_to_ledger(ledger, outcomes)
            return (None if updated == ledger else updated), updated

        try:
            return self.ledger_ref.change(change)
        except ResolverError as error:
            logger.warning("the outcomes could not be recorded: %s", error.what)
            return None


def _open_reader(
    settings: Settings, repository: str, host: RunHost, forge: GitHubForge
) -> OutcomeReader:
    """Return the reader of the outcomes of a repository. forge: its client.

    Raises UsageError if there is no token.
    """
    source = host.tokens.source(settings, repository)
    if source is None:
        raise UsageError("there is no GitHub token", "set GITHUB_TOKEN")
    access = access_of(settings, source)

    def credential() -> Credential | None:
        return host.tokens.credential(settings, repository)

    url = settings.clone_url(repository)
    return OutcomeReader(
        OwnPullRequests(access, access.client().get_repo(repository), forge.whoami(), PREFIX),
        MergedLines(url, credential, forge.whoami()),
        LedgerRef(url, credential),
    )


def refresh_outcomes(
    settings: Settings,
    repository: str,
    host: RunHost,
    forge: GitHubForge,
    now: datetime,
    *,
    since: datetime | None = None,
    records: bool = True,
) -> tuple[PullRequestOutcome, ...]:
    """Find out, record and return the outcomes of a repository's pull requests, newest first. They
    are shown on its dashboard, if the settings want one.

    since: of the pull requests that were opened since then; by default, of `OUTCOME_PERIOD`.
    records: False to only return them. Raises ForgeError and WorkspaceError if they can't be found
    out, and UsageError if there is no token.
    """
    reader = _open_reader(settings, repository, host, forge)
    outcomes = reader.read(since or now - OUTCOME_PERIOD, now)
    ledger = reader.record(outcomes) if records else None
    if ledger is not None and settings.dashboard:
        run = run_id(f"outcomes of {repository}", now)
        board = Dashboard(forge.dashboards(), reader.ledger_ref, run, settings.mention)
        update_dashboard(board, ledger)
    return outcomes
