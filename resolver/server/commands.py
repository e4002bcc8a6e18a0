"""What is done with a comment that is a command: it goes to the run at work at once, past the
queue; where none is, it is remembered, becomes a run of its own, or is answered.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from resolver.doors import github_forge, run_id
from resolver.errors import ForgeError
from resolver.model import Command, Trigger
from resolver.resuming.continuation import DECIDES
from resolver.server.atwork import AtWork
from resolver.server.threads import Threads
from resolver.settings import Settings
from resolver.thread.commands import (
    GOES_ON,
    about_issue,
    refusal,
    tell_nothing_at_work,
    tell_refused,
)
from resolver.thread.help import tell_help

logger = logging.getLogger("resolver.server")


class Configured(Protocol):
    """Where the settings come from, and what is known of earlier runs."""

    def settings(self) -> Settings:
        """As they are now."""
        ...

    def waits(self, trigger: Trigger) -> bool:
        """Whether the thread's last run waits for a person to agree to an action."""
        ...


@dataclass(frozen=True)
class Commands:
    """Obeys stored commands, in any thread."""

    configured: Configured
    at_work: AtWork
    threads: Threads

    def obey(self, trigger: Trigger, unfinished: Collection[Trigger]) -> Trigger | None:
        """Do what a comment asks of a run. The trigger of a new run, where it asks for one.

        unfinished: what the runs are for that wait or are at work.
        """
        settings = self.configured.settings()
        forge = github_forge(settings, trigger.repository)
        issue = self.threads.issue_of(trigger.repository, trigger.number or 0)
        trigger = about_issue(trigger, forge, issue)
        what = f"{trigger.command.value} on {trigger.repository}#{trigger.number}"
        try:
            refused = refusal(trigger, self._older(trigger, unfinished), forge, settings)
            if refused is not None:
                logger.info("%s: %s", what, refused.what)
                if trigger.command in GOES_ON:
                    return trigger  # as any request for a run, it is refused on the way
                tell_refused(trigger, run_id(trigger.key, trigger.at), refused, forge, settings)
                return None
            if trigger.command is Command.HELP:
                tell_help(trigger, forge, settings)
                return None
            if forge.is_confirmed(trigger):
                logger.info("%s was done before", what)
                return None
            if trigger.command is Command.STOP:
                self.threads.stopped(trigger)
            if self.at_work.steer(trigger) or self._stops_waiting(trigger, unfinished):
                logger.info("%s has reached its run", what)
                forge.confirm(trigger)
                return None
            decides = trigger.command in DECIDES
            if trigger.command in GOES_ON or (decides and self.configured.waits(trigger)):
                return trigger
            tell_nothing_at_work(trigger, forge, settings)
            logger.info("%s finds nothing at work", what)
        except ForgeError as error:
            logger.error("%s: %s", what, error.what)
        return None

    def _older(self, trigger: Trigger, unfinished: Collection[Trigger]) -> Trigger | None:
        """What asked for the run that is at work, or waits."""
        waiting = [each for each in unfinished if _precedes(each, trigger)]
        return self.at_work.started_by(trigger) or (waiting[-1] if waiting else None)

    @staticmethod
    def _stops_waiting(trigger: Trigger, unfinished: Collection[Trigger]) -> bool:
        stops = trigger.command is Command.STOP
        return stops and any(_precedes(each, trigger) for each in unfinished)


def _precedes(run: Trigger, asking: Trigger) -> bool:
    same = run.repository.casefold() == asking.repository.casefold()
    return same and run.subject == asking.subject and asking.came_after(run)
