"""The end of a run: its last word on the thread, and what it leaves in its folder. None of it
raises: what goes wrong here is part of how the run ended.
"""

import errno
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from resolver.errors import NotAllowed, ResolverError, Stopped
from resolver.forge.base import Forge
from resolver.forge.report import Failure, failure_of
from resolver.model import TriggerKind
from resolver.record import Job, Record
from resolver.settings import Settings
from resolver.templates import render
from resolver.triggers.permission import authorize

logger = logging.getLogger("resolver.thread.ending")

NO_ROOM = frozenset({"locked", "issues_off"})
"""Causes for which nobody can be told on the thread: the run is as good as it was, and its outcome
and a job's summary say how it ended."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def give_up(job: Job, settings: Settings, forge: Forge, error: ResolverError) -> Record:
    """The record of a run that could not begin, for its settings or its folder. Who may start work
    is told on the thread; others hear nothing of what is wrong here.

    settings: as far as they can be read.
    """
    record = Record(job, settings)
    try:
        authorize(job.trigger, forge, settings.who_may)
        if job.publish:
            forge.acknowledge(job.trigger)
    except NotAllowed as refused:
        logger.warning("%s", refused.what)
        record.silent = True
    record.fail(failure_of(error), error.exit_code)
    tell(record, forge)
    write(record)
    return record


def failure_of_machine(error: OSError) -> Failure:
    """What the machine would not do, in words for a person."""
    where = f": {error.filename}" if error.filename else ""
    if error.errno in _FULL:
        what = f"the disk of the machine that I work on is full{where}"
        return Failure(kind="error", what=what, next_step="make room on it, then ask again")
    what = f"the machine that I work on failed ({error.strerror or error!r}){where}"
    return Failure(kind="error", what=what, next_step="see to what is named above, then ask again")


def tell(record: Record, forge: Forge) -> None:
    """One comment that says how it ended. Failing to tell is itself a failure of the run."""
    try:
        try:
            _last_word(record, forge)
        except Stopped as stopped:
            # a signal stops once, and this word is what it leaves room for
            record.fail(failure_of(stopped), stopped.exit_code)
            _last_word(record, forge)
    except (ResolverError, Stopped) as error:
        logger.error("run %s could not be told: %s", record.job.run, error.what)
        told = render("run/untold.md.j2", what=error.what).strip()
        if failure_of(error).cause in NO_ROOM:
            record.warnings.append(told)
            return
        record.untold, record.untold_cause = True, failure_of(error).cause
        if record.publication.pull_request is None and record.publication.review is None:
            record.fail(failure_of(error), error.exit_code)
            return
        # what was made public stays so, and is what the job's page has to name
        record.warnings.append(told)
        record.exit_code = record.exit_code or error.exit_code


def _last_word(record: Record, forge: Forge) -> None:
    if record.telling is not None:
        record.telling.close()
    if not record.job.publish or record.publication.comment_url is not None:
        return
    if record.silent and not forge.has_begun(record.job.trigger):
        return  # the thread was told of it today, or is to be told nothing
    untold = record.telling is None or record.telling.told is None
    at_terminal = record.job.trigger.kind is TriggerKind.COMMAND_LINE
    if at_terminal and untold and record.exit_code in {2, 5}:
        return  # the person at the terminal is told there, and nobody else asked
    url = forge.comment(record.report(), record.settings.last_word_time)
    record.publication = record.publication.model_copy(update={"comment_url": url or None})


def write(record: Record) -> None:
    """The output folder, whatever happened; outcome.json last. A part that can't be written leaves
    out no other."""
    output, log = record.job.output, record.log
    opened = record.publication.pull_request
    if log is not None:
        with _noted(record):
            output.write_patch(record.patch.diff if record.patch else b"")
    if opened is not None and opened.body:
        with _noted(record):
            output.write_pull_request(opened)
    with _noted(record):
        if not record.can_be_published:
            output.withdraw_change()
    if log is not None:
        with _noted(record):
            output.write_traces(log.state.events)
        with _noted(record):
            log.close()
    with _noted(record):
        output.write_outcome(record.summary())
    output.close()


@contextmanager
def _noted(record: Record) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failed = failure_of_machine(error)
        logger.error("run %s could not write its output: %s", record.job.run, failed.what)
        record.fail(failed, 1)
