"""Writes into the comments of active runs that they pause, when their process is asked to end."""

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from functools import partial

from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.errors import ResolverError
from resolver.github.comments.progress import RunProgress
from resolver.github.comments.run_comments import RunComments
from resolver.models.run import Trigger
from resolver.runs.common import github_forge, run_id
from resolver.runs.wiring.sandbox import RunHost

logger = logging.getLogger("resolver.entrypoints.webhook")

MAX_PAUSE_NOTICES = 8
"""Maximum number of notices that are written at the same time."""

MAX_WAITING_AGE = timedelta(days=2)
"""Age after which a paused run counts as lost, together with the server that knew of it."""


def post_pause_notices(
    triggers: Iterable[Trigger], settings: Settings, host: RunHost, now: datetime, seconds: float
) -> None:
    """Write the notices of the runs with these triggers. Returns after `seconds` at the latest.

    Nobody else writes the comments of these runs meanwhile, and their claims are still held, so
    that the run does not continue elsewhere before its notice is written. Never raises.
    """
    writers = ThreadPoolExecutor(MAX_PAUSE_NOTICES, "pause")
    post = partial(_post_pause_notice, settings=settings, host=host, now=now)
    wait([writers.submit(post, trigger) for trigger in triggers], seconds)
    writers.shutdown(wait=False, cancel_futures=True)


def write_pause(comments: RunComments, progress: RunProgress) -> bool:
    """Replace the run's comment if it says that the run is active. Return False otherwise."""
    if comments.find_active_run(progress.trigger) is None:
        return False
    comments.write_progress(progress, None)
    return True


def _post_pause_notice(trigger: Trigger, settings: Settings, host: RunHost, now: datetime) -> None:
    if trigger.number is None:
        return
    progress = RunProgress(
        trigger=trigger,
        run=run_id(trigger.key, trigger.at),
        since=now,
        until=now + MAX_WAITING_AGE,
        mention=settings.mention,
        waits=render("run/interrupted.md.j2").strip(),
        verifies=settings.verify,
    )
    try:
        write_pause(github_forge(settings, trigger.repository, host).progress_writer(), progress)
    except ResolverError as error:
        logger.warning(
            "the notice that run %s pauses could not be posted: %s", progress.run, error.what
        )
