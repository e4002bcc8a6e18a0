"""Writes the comment of a run that waits behind another one, before it can start."""

import logging
import math
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.entrypoints.webhook.bounded_cache import BoundedCache
from resolver.entrypoints.webhook.request_queue import MAX_LISTED, RequestsAhead
from resolver.errors import Refused, ResolverError
from resolver.github.comments.progress import RunProgress
from resolver.github.events.permission import authorize
from resolver.models.run import Trigger
from resolver.runs.common import github_forge, run_id
from resolver.runs.wiring.sandbox import RunHost

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_WAITING_AGE = timedelta(days=2)
"""Age after which a waiting run counts as lost, together with the server that knew of it."""

MAX_REMEMBERED = 10_000
"""Number of started runs that are remembered. Announcements that are older have been written."""


class QueueNotices:
    """Notifies conversations of their waiting runs. Thread-safe.

    No notice is written for a run that has started: from then on the run writes its own comment.
    Notices for the same request are written one after the other, because the same event can arrive
    in several deliveries at once: the second notice finds the comment of the first and edits it.
    """

    def __init__(self, on_posted: Callable[[Trigger], None] = lambda _: None) -> None:
        self._on_posted = on_posted
        self._changed = threading.Condition()
        self._started = BoundedCache[str, bool](MAX_REMEMBERED)
        self._in_progress: set[str] = set()

    def mark_started(self, trigger: Trigger) -> None:
        """Record that the run starts. Waits until no notice for it is being written."""
        with self._changed:
            self._started.put(trigger.key, True)
            self._changed.wait_for(lambda: trigger.key not in self._in_progress)

    def post(
        self,
        trigger: Trigger,
        ahead: RequestsAhead,
        settings: Settings,
        host: RunHost,
        now: datetime,
    ) -> None:
        """Notify the conversation that its run waits for runs of its repository or of others.

        This is a comment, or only the reaction if the settings want no progress comments. Never
        raises.
        """
        if trigger.number is None:
            return
        with self._changed:
            self._changed.wait_for(lambda: trigger.key not in self._in_progress)
            if self._started.get(trigger.key):
                return
            self._in_progress.add(trigger.key)
        try:
            if _post(trigger, ahead, settings, host, now):
                self._on_posted(trigger)
        finally:
            with self._changed:
                self._in_progress.discard(trigger.key)
                self._changed.notify_all()


def _post(
    trigger: Trigger, ahead: RequestsAhead, settings: Settings, host: RunHost, now: datetime
) -> bool:
    """Post the notice. Return True if a comment was posted."""
    progress = RunProgress(
        trigger=trigger,
        run=run_id(trigger.key, trigger.at),
        since=now,
        until=now + MAX_WAITING_AGE,
        mention=settings.mention,
        waits=_waiting_text(ahead),
    )
    try:
        forge = github_forge(settings, trigger.repository, host)
        authorize(trigger, forge, settings.access_policy)
        forge.acknowledge(trigger)
        # a question in a review thread is answered there and nowhere else
        if settings.progress_comments and not trigger.in_thread:
            forge.progress_writer().begin(progress)
            return True
    except Refused:
        pass  # the run will be refused and report it
    except ResolverError as error:
        logger.warning("the notice about a waiting run could not be posted: %s", error.what)
    return False


def _waiting_text(ahead: RequestsAhead) -> str:
    limited = ahead.count >= MAX_LISTED
    return render(
        "run/waits.md.j2",
        numbers=ahead.numbers,
        count=ahead.count,
        limited=limited,
        active_limit=ahead.active_limit,
        minutes=math.ceil(ahead.count * ahead.run_seconds / 60),
    ).strip()
