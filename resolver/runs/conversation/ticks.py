"""Handles ticked boxes of the dashboard.

A stop is written to the quota ledger, where the run finds it. A retry is a new run. A box that is
unknown, or that was ticked by somebody who may not do so, is unticked without a comment.
"""

import logging

from resolver.config.settings import Settings
from resolver.errors import ResolverError
from resolver.github.events.dashboard_boxes import find_run_of_box
from resolver.github.events.permission import authorize
from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger, normalize_login
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Command, Trigger
from resolver.runs.quotas.dashboard import Dashboard, update_dashboard
from resolver.storage.ledger_ref import LedgerRef

logger = logging.getLogger("resolver.runs.conversation.ticks")


def apply_dashboard_tick(
    trigger: Trigger, run: str, forge: GitHubForge, settings: Settings, ledger_ref: LedgerRef
) -> str:
    """Return the message for the job's log; "" if the box asks for a run, which the caller then
    starts.

    run: id of the run that handles the tick. Raises ForgeError or WorkspaceError.
    """
    if not settings.dashboard:
        return "There is no dashboard: the setting is off."
    ledger = ledger_ref.read()
    message = _find_obstacle(trigger, ledger, forge, settings, ledger_ref)
    if not message and trigger.command is not Command.STOP:
        return ""
    if not message:
        ledger, message = ledger_ref.change(lambda current: _with_stop(current, trigger))
    if ledger.readable:
        update_dashboard(Dashboard(forge.dashboards(), ledger_ref, run, settings.mention), ledger)
    return message


def _find_obstacle(
    trigger: Trigger,
    ledger: QuotaLedger,
    forge: GitHubForge,
    settings: Settings,
    ledger_ref: LedgerRef,
) -> str:
    """Return why the tick has no effect; "" if it has one."""
    run, now = find_run_of_box(ledger, trigger), ledger_ref.now()
    if run is None:
        return "The box does not belong to the dashboard."
    # Whoever asked for a run may stop it, also without the right to start another one.
    is_own_stop = (
        run.user == normalize_login(trigger.actor.login) and trigger.command is Command.STOP
    )
    if not is_own_stop:
        try:
            authorize(trigger, forge, settings.access_policy)
        except ResolverError as refused:
            return f"The box is not for {trigger.actor.login}: {refused.what}."
    if trigger.command is Command.STOP:
        return "" if run.is_active(now) else "The run has ended."
    is_active = any(other.thread == run.thread and other.is_active(now) for other in ledger.runs)
    return "A run is already in progress there." if is_active else ""


def _with_stop(
    ledger: QuotaLedger, trigger: Trigger
) -> tuple[QuotaLedger | None, tuple[QuotaLedger, str]]:
    """Return the ledger with the stop in the run's entry."""
    run: LedgerRun | None = find_run_of_box(ledger, trigger)
    if run is None or run.ending:
        return None, (ledger, "The run has ended.")
    by = normalize_login(trigger.actor.login)
    updated = ledger.with_run(run.model_copy(update={"stop_by": by}))
    return updated, (updated, "The run in progress reads the stop request from the ledger.")
