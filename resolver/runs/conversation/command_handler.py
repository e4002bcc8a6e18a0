"""Handles comment commands: decides who may give one, passes it to the run that it is addressed to,
answers it, or lets it start a run.

A server knows its own runs. A job of GitHub Actions shares nothing with the job in which a run is
active. Each describes its runs to the handler by `CommandTargets`.
"""

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.config.temporary_directory import temporary_directory
from resolver.errors import ForgeError, LogError, Refused, WorkspaceError
from resolver.github.comments.report import Report, failure_from_error
from resolver.github.github_forge import GitHubForge
from resolver.models.run import Command, Trigger
from resolver.runs.conversation.commands import RESUMING_COMMANDS, find_archived_work
from resolver.runs.conversation.help import post_help
from resolver.runs.conversation.watch import as_request, authorize_steering
from resolver.runs.resuming.continuation import (
    DECISION_COMMANDS,
    has_change,
    is_waiting_for_person,
)
from resolver.runs.wiring.sandbox import RunHost
from resolver.storage.earlier_runs import EarlierRun

CONFIRMATION_WAIT_FACTOR = 1.5
"""Multiple of the watch interval that a job waits for the active run to take a command."""

_STARTING_WITHOUT_RUN = RESUMING_COMMANDS | {Command.MESSAGE}
"""The commands that start a run where none is active."""

logger = logging.getLogger("resolver.runs.conversation.commands")


class CommandTargets(Protocol):
    """The runs that a command may be addressed to."""

    def find_older_run(self, trigger: Trigger) -> Trigger | None:
        """Return the trigger of a run of the conversation that is active or waits, if it is
        known."""
        ...

    def deliver(self, trigger: Trigger, refused: Refused | None) -> bool:
        """Return True if a run has received the command.

        refused: why the person may not give it, as far as that is known without the run.
        """
        ...

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if the conversation's last run left what the command is about: a change that
        is not public, or an action that waits for approval."""
        ...


@dataclass(frozen=True)
class HandledCommand:
    """Result of a command that starts no run. message: for the log."""

    message: str
    state: str
    exit_code: int = 0


@dataclass(frozen=True)
class CommandHandler:
    """Handles the commands of a repository's comments."""

    forge: GitHubForge
    settings: Settings

    def handle(
        self, trigger: Trigger, run: str, targets: CommandTargets
    ) -> HandledCommand | Trigger:
        """Handle the command. Return the trigger of the run that is to be started for it, if any.

        Raises ForgeError or WorkspaceError.
        """
        command = trigger.command
        older_run = targets.find_older_run(trigger)
        refused: Refused | None = None
        try:
            authorize_steering(trigger, older_run, self.forge, self.settings.access_policy)
        except Refused as error:
            refused = error
        if refused is not None and command in _STARTING_WITHOUT_RUN:
            return trigger  # refused by the pipeline, like any other request for a run
        if command is Command.HELP and refused is None:
            post_help(trigger, self.forge, self.settings)
            return HandledCommand("The available commands are listed in a comment.", "help")
        if command is not Command.HELP and targets.deliver(trigger, refused):
            return HandledCommand("The run in progress has received it.", "taken")
        if refused is not None:
            self._report_refusal(trigger, run, refused)
            return HandledCommand(refused.what, "refused", refused.exit_code)
        if command in RESUMING_COMMANDS - {Command.PUBLISH}:
            return trigger
        if command is Command.PUBLISH and older_run is not None:
            return trigger  # queued behind the run
        if command is Command.MESSAGE:
            # A message to a run that waits for approval is an answer to it.
            answers = targets.applies_to_run(trigger)
            return as_request(trigger, Command.CONTINUE if answers else Command.FIX)
        if concerns_earlier_run(trigger) and targets.applies_to_run(trigger):
            return trigger
        report_no_active_run(trigger, self.forge, self.settings)
        return HandledCommand("No run is in progress here.", "nothing")

    def _report_refusal(self, trigger: Trigger, run: str, refused: Refused) -> None:
        """Report the refusal as for any other request: once for each person and conversation."""
        failure = failure_from_error(refused)
        report = Report(trigger=trigger, run=run, mention=self.settings.mention, failure=failure)
        self.forge.comment(report)


@dataclass(frozen=True)
class RunsOfOtherJobs:
    """The runs that a command may be addressed to, seen from a job that its comment has started."""

    forge: GitHubForge
    settings: Settings
    host: RunHost
    run: str

    def find_older_run(self, trigger: Trigger) -> Trigger | None:
        """Return None: this job doesn't know the other jobs' runs."""
        del trigger
        return None

    def deliver(self, trigger: Trigger, refused: Refused | None) -> bool:
        """Return True if an active run in another job takes the command within a short time.

        That job judges by itself who may give it: the person who requested a run may stop it. The
        reaction that it adds to the comment is the signal.
        """
        del refused
        if trigger.command is Command.PUBLISH:
            return False
        seconds = self.settings.pace.command_interval
        end = time.monotonic() + CONFIRMATION_WAIT_FACTOR * seconds
        while not self.forge.is_confirmed(trigger):
            if time.monotonic() >= end:
                return False
            time.sleep(min(2.0, max(0.1, seconds / 5)))
        return True

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if the newest archived run left what the command is about."""
        with temporary_directory() as folder:
            try:
                _, earlier = find_archived_work(
                    trigger, self.run, self.settings, self.host, Path(folder)
                )
            except (WorkspaceError, LogError, ForgeError) as error:
                logger.warning("%s", error.what)
                return False
            return applies_to_run(trigger, earlier)


def concerns_earlier_run(trigger: Trigger) -> bool:
    """Return True if the command is about something that an earlier run left: an action that waits
    for approval, or a change that is not public."""
    return trigger.command in DECISION_COMMANDS or trigger.command is Command.PUBLISH


def applies_to_run(trigger: Trigger, earlier: EarlierRun | None) -> bool:
    """Return True if the earlier run left what such a command is about."""
    if earlier is None:
        return False
    return (
        has_change(earlier)
        if trigger.command is Command.PUBLISH
        else is_waiting_for_person(earlier)
    )


def report_no_active_run(trigger: Trigger, forge: GitHubForge, settings: Settings) -> None:
    """Answer with one line, because the person waits for something to stop or to pause."""
    forge.acknowledge(trigger)
    text = render(
        "comments/no_active_run.md.j2",
        stops=trigger.command is Command.STOP,
        decides=trigger.command in DECISION_COMMANDS,
        publishes=trigger.command is Command.PUBLISH,
        mention=settings.mention,
    )
    forge.post_answer(trigger, text.strip())
