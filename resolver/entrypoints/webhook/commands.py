"""Handles comment commands: each is left in the queue for the run that it is addressed to, becomes
a run of its own, or is answered."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from resolver.entrypoints.webhook.request_queue import (
    QueuedRequest,
    RequestQueue,
    RequestState,
)
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.errors import ForgeError, Refused, WorkspaceError
from resolver.github.github_forge import GitHubForge
from resolver.models.known_failures import OUTAGES
from resolver.models.run import Command, Trigger
from resolver.runs.common import github_forge, run_id
from resolver.runs.conversation.command_handler import CommandHandler
from resolver.runs.conversation.commands import (
    issue_of_command,
    locate_dispatch,
)

logger = logging.getLogger("resolver.entrypoints.webhook")


@dataclass(frozen=True)
class CommentCommands:
    """Executes stored commands. Thread-safe.

    runs: has the earlier runs. queue: has those that wait or are active, in any process.
    """

    runs: RequestRunner
    queue: RequestQueue

    def execute(self, trigger: Trigger) -> Trigger | None:
        """Execute the command. Return the trigger of a new run if it asks for one.

        Raises ResolverError with a cause in `OUTAGES` if the command is to be executed again later.
        """
        label = f"{trigger.command.value} on {trigger.repository}#{trigger.number}"
        settings, host = self.runs.settings(), self.runs.host()
        try:
            forge = github_forge(settings, trigger.repository, host)
            located = locate_dispatch(trigger, forge)
            trigger = located if isinstance(located, Trigger) else trigger
            issue = self.runs.index.issue_of(trigger.repository, trigger.number or 0)
            command = issue_of_command(trigger, forge, issue)
            targets = _RunsOfServer(self, forge, self._older_runs(command))
            run = run_id(command.key, command.at)
            handled = CommandHandler(forge, settings).handle(command, run, targets)
        except (ForgeError, WorkspaceError) as error:
            if error.cause in OUTAGES:
                raise
            logger.error("%s: %s", label, error.what)
            return None
        if isinstance(handled, Trigger):
            logger.info("%s: starts a run", label)
            return handled
        logger.info("%s: %s", label, handled.message)
        return None

    def _older_runs(self, command: Trigger) -> list[QueuedRequest]:
        """Return the unfinished runs of the conversation that were asked for before the command."""
        repository, subject = command.repository, command.subject
        found = [*self.queue.unfinished_runs(repository, subject)]
        # The conversation of a failed check is known when its run has started.
        unnumbered = self.queue.unfinished_runs(repository, None)
        if subject is not None and unnumbered:
            runs = self.runs.index.runs_of(repository, subject)
            found += (run for run in unnumbered if run.run in runs)
        return [run for run in found if command.came_after(run.trigger)]


@dataclass(frozen=True)
class _RunsOfServer:
    """The server's active and waiting runs that a command may be addressed to. older: those that
    were asked for before it."""

    commands: CommentCommands
    forge: GitHubForge
    older: Sequence[QueuedRequest]

    def find_older_run(self, trigger: Trigger) -> Trigger | None:
        """Return the trigger of a run that is active or waits.

        If another person asked for one of them, that trigger is returned: a stop applies to all of
        these runs, so having asked for one of them is not enough to stop them all.
        """
        older = [run.trigger for run in self.older]
        requester = trigger.actor.login.casefold()
        others = (run for run in older if run.actor.login.casefold() != requester)
        return next(others, older[0] if older else None)

    def deliver(self, trigger: Trigger, refused: Refused | None) -> bool:
        """Leave the command for the active run, in any process; a stop also for the runs that wait.

        Returns True if there is such a run, now or before the server was restarted.
        """
        if refused is not None or trigger.command is Command.PUBLISH:
            return False
        if self.forge.is_confirmed(trigger):
            logger.info("%s was handled before", trigger.key)
            return True
        is_stop = trigger.command is Command.STOP
        runs = [run for run in self.older if is_stop or run.state is RequestState.WORKING]
        if runs:
            self.commands.queue.leave_command(runs, trigger)
            self.forge.confirm(trigger)
        return bool(runs)

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if the conversation's last run left something for the command to act on."""
        return self.commands.runs.applies_to_run(trigger)
