"""What is done with a delivery: read it for what it asks, and later run it down the same pipeline
as every other door does.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resolver.doors import github_forge, host_of, run_id
from resolver.errors import ResolverError
from resolver.forge.base import Forge
from resolver.forge.report import Failure, Report
from resolver.model import Trigger
from resolver.output import OUTCOME, Output
from resolver.pipeline import resolve
from resolver.record import Job
from resolver.settings import Settings, load_settings
from resolver.triggers.permission import authorize

logger = logging.getLogger("resolver.server")

MOST_ATTEMPTS = 5
"""How often a run is started that each time ends together with the server, as by its memory."""


@dataclass(frozen=True)
class Runs:
    """Does the work of stored deliveries.

    environment, options: the settings of each run are loaded from them.
    folder: below it each run has its own, which is named like the run.
    """

    environment: Mapping[str, str]
    options: Mapping[str, Any]
    folder: Path

    def work_on(self, trigger: Trigger, attempt: int) -> dict[str, Any]:
        """Do one delivery; what came of it, as JSON. Doing it again finds what was done before.

        The run's id and folder are derived from the event, so that a run which was cut off goes on
        under its own name; what its first attempt left is kept beside.
        attempt: 1 for the first.
        """
        settings = self._load({})
        run = run_id(trigger.key, trigger.at)
        what = f"{trigger.repository}#{trigger.number}"
        logger.info("run %s starts for %s, attempt %d", run, what, attempt)
        forge = github_forge(settings, trigger.repository)
        if self._is_done(trigger, run, forge):
            logger.info("run %s was done before", run)
            return {"run": run, "exit_code": 0, "state": "repeated"}
        report = Report(trigger=trigger, run=run, model=settings.model, mention=settings.mention)
        if attempt > MOST_ATTEMPTS:
            what = f"the server ended {MOST_ATTEMPTS} times in the middle of this run"
            return self._give_up(report, what, forge)
        try:
            output = Output(self.folder / run)
        except ResolverError as error:
            logger.error("run %s can't be recorded: %s", run, error.what)
            return self._give_up(report, "the server could not open the log of this run", forge)
        job = Job(trigger, run, output, self._load, host_of(self.environment))
        record = resolve(job, forge)
        logger.info("run %s ended with exit code %d", run, record.exit_code)
        return {"run": run, "exit_code": record.exit_code, "state": record.summary()["state"]}

    def _is_done(self, trigger: Trigger, run: str, forge: Forge) -> bool:
        """Whether the run has ended here and on the forge: then its folder stays as it is."""
        if not (self.folder / run / OUTCOME).exists():
            return False
        try:
            found = forge.find_publication(trigger)
        except ResolverError:
            return False  # the run meets the same trouble, and tells of it
        return found is not None and found.comment_url is not None

    def _load(self, repository: Mapping[str, Any]) -> Settings:
        return load_settings(self.options, self.environment, repository)

    def _give_up(self, report: Report, what: str, forge: Forge) -> dict[str, Any]:
        """Tell the issue that there will be no run, unless an earlier attempt has published."""
        logger.error("run %s is given up: %s", report.run, what)
        failure = Failure(
            kind="error", what=what, next_step="the operator's log says more; then ask again"
        )
        try:
            authorize(report.trigger, forge, self._load({}).allowed_users)
            if forge.find_publication(report.trigger) is None:
                forge.comment(report.model_copy(update={"failure": failure}))
        except ResolverError as error:
            logger.error("run %s could not be told: %s", report.run, error.what)
        return {"run": report.run, "exit_code": 1, "state": "error"}
