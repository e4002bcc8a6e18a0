"""Handles comment commands: they are sent to an active run at once, past the queue. Without an
active run, a command is stored, becomes a run of its own, or is answered."""

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

    runs: has the active and earlier runs. queue: has those that wait, and leads to those of other
    processes. executor: id of this process.
    """

    runs: RequestRunner
    queue: RequestQueue
    executor: str

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
            unfinished = self.queue.unfinished_runs(command.repository, command.subject)
            older = [run for run in unfinished if command.came_after(run.trigger)]
            targets = _RunsOfServer(self, forge, older)
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


@dataclass(frozen=True)
class _RunsOfServer:
    """The server's active and waiting runs that a command may be addressed to. older: those of the
    queue that were asked for before it."""

    commands: CommentCommands
    forge: GitHubForge
    older: Sequence[QueuedRequest]

    def find_older_run(self, trigger: Trigger) -> Trigger | None:
        """Return the trigger of a run that is active or waits.

        If another person asked for one of them, that trigger is returned: a stop applies to all of
        these runs, so having asked for one of them is not enough to stop them all.
        """
        active = self.commands.runs.active_runs.find_older_run(trigger)
        older = [*([active] if active else []), *(run.trigger for run in self.older)]
        requester = trigger.actor.login.casefold()
        others = (run for run in older if run.actor.login.casefold() != requester)
        return next(others, older[0] if older else None)

    def deliver(self, trigger: Trigger, refused: Refused | None) -> bool:
        """Pass the command to the active run, in any process; a stop also to the runs that wait.

        Returns True if a run has received it, now or before the server was restarted.
        """
        if refused is not None or trigger.command is Command.PUBLISH:
            return False
        if self.forge.is_confirmed(trigger):
            logger.info("%s was handled before", trigger.key)
            return True
        here = self.commands.executor
        # A stop is left before the active run is looked up, so that a run that starts at this
        # moment finds it.
        left_for = list(self.older) if trigger.command is Command.STOP else []
        self.commands.queue.leave_command(left_for, trigger)
        was_sent = self.commands.runs.active_runs.send(trigger)
        if not was_sent and not left_for:
            is_working = (run for run in self.older if run.state is RequestState.WORKING)
            left_for = [run for run in is_working if run.executor != here]
            self.commands.queue.leave_command(left_for, trigger)
        if was_sent or left_for:
            self.forge.confirm(trigger)
        return was_sent or bool(left_for)

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if the conversation's last run left something for the command to act on."""
        return self.commands.runs.applies_to_run(trigger)
