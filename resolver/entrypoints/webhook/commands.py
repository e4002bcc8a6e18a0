"""Handles comment commands: they are sent to an active run at once, past the queue. Without an
active run, a command is stored, becomes a run of its own, or is answered."""

import logging
from collections.abc import Collection
from dataclasses import dataclass

from resolver.entrypoints.webhook.request_queue import RequestQueue
from resolver.entrypoints.webhook.request_runner import RequestRunner
from resolver.errors import ForgeError, Refused, WorkspaceError
from resolver.github.github_forge import GitHubForge
from resolver.models.known_failures import OUTAGES
from resolver.models.run import Command, Trigger, TriggerKind
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

    def send(self, trigger: Trigger) -> bool:
        """Pass the command to the active run of its conversation, in any process. Return False if
        there is none."""
        is_here = self.runs.active_runs.send(trigger)
        return is_here or self.queue.send_to_other(self.executor, trigger)

    def execute(self, trigger: Trigger) -> Trigger | None:
        """Execute the command. Return the trigger of a new run if it asks for one.

        Raises ResolverError with a cause in `OUTAGES` if the command is to be executed again later.
        """
        label = f"{trigger.command.value} on {trigger.repository}#{trigger.number}"
        try:
            return self._execute(trigger)
        except (ForgeError, WorkspaceError) as error:
            if error.cause in OUTAGES:
                raise
            logger.error("%s: %s", label, error.what)
        return None

    def _execute(self, trigger: Trigger) -> Trigger | None:
        if trigger.kind is TriggerKind.OPERATOR:
            self._stop_for_operator(trigger)
            return None
        settings, host = self.runs.settings(), self.runs.host()
        forge = github_forge(settings, trigger.repository, host)
        located = locate_dispatch(trigger, forge)
        trigger = located if isinstance(located, Trigger) else trigger
        issue = self.runs.index.issue_of(trigger.repository, trigger.number or 0)
        command = issue_of_command(trigger, forge, issue)
        handler = CommandHandler(forge, settings)
        unfinished = self.queue.unfinished_runs(command.repository, command.subject)
        targets = _RunsOfServer(self, forge, [request.trigger for request in unfinished])
        handled = handler.handle(command, run_id(command.key, command.at), targets)
        label = f"{command.command.value} on {command.repository}#{command.number}"
        if isinstance(handled, Trigger):
            logger.info("%s: starts a run", label)
            return handled
        logger.info("%s: %s", label, handled.message)
        return None

    def _stop_for_operator(self, trigger: Trigger) -> None:
        """Stop the conversation's run. Only `resolver admin` stores such a command, so that nobody
        has to be authorized."""
        # Stored first, for a run that is between two attempts.
        self.runs.index.record_stop(trigger)
        was_sent = self.send(trigger)
        where = f"{trigger.repository}#{trigger.number}"
        result = "has received it" if was_sent else "is not active, and ends when it is resumed"
        logger.info("the operator stops the run of %s, which %s", where, result)


@dataclass(frozen=True)
class _RunsOfServer:
    """The server's active and waiting runs. unfinished: their triggers."""

    commands: CommentCommands
    forge: GitHubForge
    unfinished: Collection[Trigger]

    def find_older_run(self, trigger: Trigger) -> Trigger | None:
        """Return the trigger of a run that is active or waits.

        If another person asked for one of them, that trigger is returned: a stop applies to all of
        these runs, so having asked for one of them is not enough to stop them all.
        """
        active = self.commands.runs.active_runs.find_older_run(trigger)
        waiting = [run for run in self.unfinished if _precedes(run, trigger)]
        older = [*([active] if active else []), *waiting]
        requester = trigger.actor.login.casefold()
        others = (run for run in older if run.actor.login.casefold() != requester)
        return next(others, older[0] if older else None)

    def deliver(self, trigger: Trigger, refused: Refused | None) -> bool:
        """Pass the command to the active run, or stop the runs that wait.

        Returns True if a run has received it, now or before the server was restarted.
        """
        if refused is not None:
            return False
        if self.forge.is_confirmed(trigger):
            logger.info("%s was handled before", trigger.key)
            return True
        is_stop = trigger.command is Command.STOP
        if is_stop:
            # Stored before the active run is looked up, so that a run that starts at this moment
            # finds it.
            self.commands.runs.index.record_stop(trigger)
        if trigger.command is Command.PUBLISH:
            return False
        was_sent = self.commands.send(trigger)
        stops_waiting = is_stop and any(_precedes(run, trigger) for run in self.unfinished)
        if was_sent or stops_waiting:
            self.forge.confirm(trigger)
        return was_sent or stops_waiting

    def applies_to_run(self, trigger: Trigger) -> bool:
        """Return True if the conversation's last run left something for the command to act on."""
        return self.commands.runs.applies_to_run(trigger)


def _precedes(run: Trigger, command: Trigger) -> bool:
    is_same_repository = run.repository.casefold() == command.repository.casefold()
    return is_same_repository and run.subject == command.subject and command.came_after(run)
