"""Stops an active run when its box on the dashboard was ticked, by polling the ledger."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from resolver.config.settings import Settings
from resolver.controller.control import Control, Stop
from resolver.errors import ResolverError
from resolver.github.forge import Forge
from resolver.runs.common import background_poll
from resolver.runs.quotas.admission import ledger_for_run, show_run_on_dashboard
from resolver.runs.quotas.ledger_ref import LedgerRef
from resolver.runs.stages import AcceptedRun, RunRequest

logger = logging.getLogger("resolver.runs.quotas")

MIN_POLL_SECONDS = 1.0
"""Minimum seconds between two polls; each makes up to two small git requests."""


@dataclass(frozen=True)
class DashboardStopPoller:
    """Polls the ledger for a stop of the run with this key. seconds: between two polls."""

    ledger_ref: LedgerRef
    key: str
    control: Control
    seconds: float

    def run(self, ended: threading.Event) -> None:
        """Poll until `ended` is set or the run was stopped. Errors are logged."""
        last = ""
        while not ended.wait(self.seconds):
            try:
                # The ledger is only fetched if its ref has changed since the last poll.
                tip = self.ledger_ref.tip()
                run = self.ledger_ref.read().run_of(self.key) if tip != last else None
            except ResolverError as error:
                logger.warning("%s", error.what)
                continue
            last = tip
            if run is not None and run.stop_by:
                self.control.send(Stop(by=run.stop_by))
                return


@contextmanager
def watch_dashboard_stops(
    request: RunRequest, settings: Settings, accepted: AcceptedRun, forge: Forge
) -> Iterator[None]:
    """Show the run on the dashboard, and poll for its stop box while the block runs."""
    show_run_on_dashboard(request, settings, accepted, forge)
    interval = settings.comment_interval_seconds.commands
    if accepted.reservation is None or not settings.dashboard or not interval:
        yield
        return
    seconds = max(interval, MIN_POLL_SECONDS)
    ledger_ref = ledger_for_run(request, settings)
    poller = DashboardStopPoller(ledger_ref, accepted.reservation.key, request.control, seconds)
    with background_poll(poller.run, "stops"):
        yield
