"""What is told of a run that waits behind another one: its comment, before it can begin."""

import logging
import threading
from collections.abc import Collection
from datetime import datetime, timedelta

from resolver.assembly.sandbox import Host
from resolver.doors import github_forge, run_id
from resolver.errors import Refused, ResolverError
from resolver.forge.progress import Progress
from resolver.model import Trigger
from resolver.settings import Settings
from resolver.templates import render
from resolver.triggers.permission import authorize

logger = logging.getLogger("resolver.server")

LONGEST = timedelta(days=2)
"""A run that has waited so long was lost with the server that knew of it."""

MOST_BEGUN = 10_000
"""Runs that are remembered as begun; what was announced so long ago has been said."""


class Waiting:
    """Says of each request that waits that it does. Safe to use from several threads.

    A run that has begun is never spoken of: from then on its comment is its own.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._begun: dict[str, None] = {}
        self._written: set[str] = set()

    def begins(self, trigger: Trigger) -> None:
        """From now on nothing is written for it here. Returns when nothing is being written."""
        with self._changed:
            self._begun[trigger.key] = None
            while len(self._begun) > MOST_BEGUN:
                del self._begun[next(iter(self._begun))]
            self._changed.wait_for(lambda: trigger.key not in self._written)

    def announce(
        self,
        trigger: Trigger,
        unfinished: Collection[Trigger],
        settings: Settings,
        host: Host,
        now: datetime,
    ) -> None:
        """Say that it waits, where another run of its repository comes first. Never raises.

        unfinished: what the runs are for that wait or are at work.
        """
        ahead = runs_ahead(unfinished, trigger)
        if not ahead or not settings.progress_comments or trigger.number is None:
            return
        with self._changed:
            if trigger.key in self._begun:
                return
            self._written.add(trigger.key)
        try:
            _announce(trigger, ahead, settings, host, now)
        finally:
            with self._changed:
                self._written.discard(trigger.key)
                self._changed.notify_all()


def _announce(
    trigger: Trigger, ahead: Collection[Trigger], settings: Settings, host: Host, now: datetime
) -> None:
    progress = Progress(
        trigger=trigger,
        run=run_id(trigger.key, trigger.at),
        since=now,
        until=now + LONGEST,
        mention=settings.mention,
        waits=_why(ahead),
    )
    try:
        forge = github_forge(settings, trigger.repository, host)
        authorize(trigger, forge, settings.who_may)
        forge.apart().begin(progress)
    except Refused:
        return  # the run is refused, and says so
    except ResolverError as error:
        logger.warning("that a run waits could not be told: %s", error.what)


def runs_ahead(unfinished: Collection[Trigger], trigger: Trigger) -> list[Trigger]:
    """Return what comes before `trigger` on its repository, each request once: one event may have
    been delivered, and stored, several times."""
    return list({each.key: each for each in unfinished if _comes_first(each, trigger)}.values())


def _comes_first(run: Trigger, trigger: Trigger) -> bool:
    same = run.repository.casefold() == trigger.repository.casefold()
    return same and run.key != trigger.key and trigger.came_after(run)


def _why(ahead: Collection[Trigger]) -> str:
    numbers = list(dict.fromkeys(each.number for each in ahead if each.number is not None))
    return render("run/waits.md.j2", numbers=numbers, count=len(ahead)).strip()
