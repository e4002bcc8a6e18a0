"""Handles ticked boxes of the dashboard.

A stop is written to the quota ledger, where the run finds it. A retry is a new run. A box that is
unknown, or that was ticked by somebody who may not do so, is unticked without a comment.
"""

import logging

from resolver.config.settings import Settings
from resolver.errors import ResolverError
from resolver.github.events.dashboard_boxes import has_box
from resolver.github.events.permission import authorize
from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger, normalize_login
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Command, Trigger
from resolver.runs.quotas.dashboard import Dashboard, update_dashboard
from resolver.runs.quotas.ledger_ref import LedgerRef

logger = logging.getLogger("resolver.runs.conversation.ticks")


def apply_dashboard_tick(
    trigger: Trigger, run: str, forge: GitHubForge, settings: Settings, keep: LedgerRef
) -> str:
    """Return the message for the job's log; "" if the box asks for a run, which the caller then
    starts.

    run: id of the run that handles the tick. Raises ForgeError or WorkspaceError.
    """
    if not settings.dashboard:
        return "There is no dashboard: the setting is off."
    ledger = keep.read()
    said = _why_not(trigger, ledger, forge, settings, keep)
    if not said and trigger.command is not Command.STOP:
        return ""
    if not said:
        ledger, said = keep.change(lambda found: _with_stop(found, trigger))
    if ledger.readable:
        update_dashboard(Dashboard(forge.board(), keep, run, settings.mention), ledger)
    return said


def _why_not(
    trigger: Trigger, ledger: QuotaLedger, forge: GitHubForge, settings: Settings, keep: LedgerRef
) -> str:
    """Return why the tick has no effect; "" if it has one."""
    run, now = has_box(ledger, trigger), keep.now()
    if run is None:
        return "The box does not belong to the dashboard."
    # Whoever asked for a run may stop it, also without the right to start another one.
    own = run.user == normalize_login(trigger.actor.login) and trigger.command is Command.STOP
    if not own:
        try:
            authorize(trigger, forge, settings.access_policy)
        except ResolverError as refused:
            return f"The box is not for {trigger.actor.login}: {refused.what}."
    if trigger.command is Command.STOP:
        return "" if run.is_at_work(now) else "The run has ended."
    at_work = any(each.thread == run.thread and each.is_at_work(now) for each in ledger.runs)
    return "A run is already in progress there." if at_work else ""


def _with_stop(
    ledger: QuotaLedger, trigger: Trigger
) -> tuple[QuotaLedger | None, tuple[QuotaLedger, str]]:
    """Return the ledger with the stop in the run's entry."""
    run: LedgerRun | None = has_box(ledger, trigger)
    if run is None or run.ending:
        return None, (ledger, "The run has ended.")
    by = normalize_login(trigger.actor.login)
    stopping = ledger.with_run(run.model_copy(update={"stop_by": by}))
    return stopping, (stopping, "The run in progress reads the stop request from the ledger.")
