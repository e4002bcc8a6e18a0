"""Handles comment commands: they are sent to an active run at once, past the queue. Without an
active run, a command is stored, becomes a run of its own, or is answered."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.issue_history import ActiveRuns, IssueHistories
from resolver.entrypoints.webhook.worker import Unfinished
from resolver.errors import ForgeError, WorkspaceError
from resolver.github.github_forge import GitHubForge
from resolver.models.known_failures import OUTAGES
from resolver.models.run import Command, Trigger
from resolver.runs.common import github_forge, run_id
from resolver.runs.conversation.commands import (
    RESUMING_COMMANDS,
    concerns_earlier_run,
    find_refusal,
    issue_of_command,
    ledger_for_trigger,
    locate_dispatch,
    report_no_active_run,
    report_refused_command,
)
from resolver.runs.conversation.help import post_help
from resolver.runs.conversation.ticks import apply_dashboard_tick
from resolver.runs.wiring.sandbox import RunHost

logger = logging.getLogger("resolver.entrypoints.webhook")


class ConfiguredRepository(Protocol):
    """Provides the settings and the knowledge about earlier runs."""

    def settings(self) -> Settings:
        """Return the current settings."""
        ...

    def host(self) -> RunHost:
        """Return the description of this machine, with tokens for one request."""
        ...

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if the conversation's last run left what the command is about."""
        ...


@dataclass(frozen=True)
class CommentCommands:
    """Executes stored commands. Thread-safe."""

    configured: ConfiguredRepository
    at_work: ActiveRuns
    threads: IssueHistories

    def obey(self, trigger: Trigger, find_unfinished: Unfinished) -> Trigger | None:
        """Execute the command. Return the trigger of a new run if it asks for one.

        Raises ResolverError with a cause in `OUTAGES` if the command is to be executed again later.
        """
        label = f"{trigger.command.value} on {trigger.repository}#{trigger.number}"
        try:
            return self._obey(trigger, find_unfinished)
        except (ForgeError, WorkspaceError) as error:
            if error.cause in OUTAGES:
                raise
            logger.error("%s: %s", label, error.what)
        return None

    def _obey(self, trigger: Trigger, find_unfinished: Unfinished) -> Trigger | None:
        settings = self.configured.settings()
        forge = github_forge(settings, trigger.repository, self.configured.host())
        located = locate_dispatch(trigger, forge, settings)
        trigger = located if isinstance(located, Trigger) else trigger
        issue = self.threads.issue_of(trigger.repository, trigger.number or 0)
        trigger = issue_of_command(trigger, forge, issue)
        label = f"{trigger.command.value} on {trigger.repository}#{trigger.number}"
        unfinished = find_unfinished(trigger)
        if trigger.ticked is not None:
            return self._handle_tick(trigger, forge, settings)
        refusal_error = find_refusal(
            trigger, self._find_older_run(trigger, unfinished), forge, settings
        )
        if refusal_error is not None:
            logger.info("%s: %s", label, refusal_error.what)
            if trigger.command in RESUMING_COMMANDS:
                return trigger  # refused by the run, like any other request for one
            report_refused_command(
                trigger, run_id(trigger.key, trigger.at), refusal_error, forge, settings
            )
            return None
        if trigger.command is Command.HELP:
            post_help(trigger, forge, settings)
            return None
        if forge.is_confirmed(trigger):
            logger.info("%s was handled before", label)
            return None
        if trigger.command is Command.STOP:
            # Stored before the active run is looked up, so that a run that starts at this moment
            # finds it.
            self.threads.stopped(trigger)
        publishes = trigger.command is Command.PUBLISH
        if publishes and self._find_older_run(trigger, unfinished) is not None:
            return trigger  # queued behind the active run
        was_sent = not publishes and self.at_work.steer(trigger)
        if was_sent or self._stops_waiting_run(trigger, unfinished):
            logger.info("%s was passed to its run", label)
            forge.confirm(trigger)
            return None
        starts_run = trigger.command in RESUMING_COMMANDS
        if concerns_earlier_run(trigger):
            starts_run = self.configured.applies_to_run(trigger)
        if starts_run:
            return trigger
        report_no_active_run(trigger, forge, settings)
        logger.info("%s applies to no run in progress", label)
        return None

    def _handle_tick(
        self, trigger: Trigger, forge: GitHubForge, settings: Settings
    ) -> Trigger | None:
        """Handle a ticked box of the dashboard. Return the trigger of a run if it asks for one."""
        run = run_id(trigger.key, trigger.at)
        ledger = ledger_for_trigger(trigger, settings, self.configured.host())
        answer = apply_dashboard_tick(trigger, run, forge, settings, ledger)
        logger.info("box of run %s: %s", run, answer or "goes on")
        return None if answer else trigger

    def _find_older_run(self, trigger: Trigger, unfinished: Collection[Trigger]) -> Trigger | None:
        """Return the trigger of a run that is active or waits.

        If another person asked for one of them, that trigger is returned: a stop applies to all of
        these runs, so having asked for one of them is not enough to stop them all.
        """
        active = self.at_work.started_by(trigger)
        waiting = [run for run in unfinished if _precedes(run, trigger)]
        older = [*([active] if active else []), *waiting]
        requester = trigger.actor.login.casefold()
        others = (run for run in older if run.actor.login.casefold() != requester)
        return next(others, older[0] if older else None)

    @staticmethod
    def _stops_waiting_run(trigger: Trigger, unfinished: Collection[Trigger]) -> bool:
        """Return True if the command stops a run that has not started."""
        is_stop = trigger.command is Command.STOP
        return is_stop and any(_precedes(run, trigger) for run in unfinished)


def _precedes(run: Trigger, command: Trigger) -> bool:
    is_same_repository = run.repository.casefold() == command.repository.casefold()
    return is_same_repository and run.subject == command.subject and command.came_after(run)
