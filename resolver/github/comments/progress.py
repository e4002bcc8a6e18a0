"""The progress of a run: its data, the comment that shows it, and the reporter that writes it.

A background thread with a GitHub client of its own writes the comment, so that the run neither
waits for GitHub nor fails with it. After `close` nothing more is written: the pipeline writes the
final comment.
"""

import logging
import re
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from resolver.errors import ResolverError
from resolver.events.lifecycle import (
    CheckExecuted,
    ConfirmationAnswered,
    StageCompleted,
    VerificationCompleted,
)
from resolver.events.log import Event
from resolver.events.observations import AgentStateChanged
from resolver.events.state import State
from resolver.events.stream import Subscriber
from resolver.github.comments.templates import render_comment
from resolver.github.text.comment_markdown import MAX_BODY
from resolver.github.text.markers import ActiveRunMarker, active_run_marker, killed_run_marker
from resolver.models.base import FrozenModel
from resolver.models.run import PlanItem, RunState, Trigger
from resolver.models.verification import VerificationVerdict
from resolver.trace.untrusted_text import utf16_length


class RunProgress(FrozenModel):
    """Represents the progress of a run. Made by `ProgressReporter`, read by the forge.

    Attributes:
        until: The time by which the run has certainly ended, including all extensions that comments
            may grant.
        job: As in `ActiveRunMarker`.
        log_url: Page that shows the run, if any.
        base: Commit that was cloned.
        sandbox: True when the sandbox is ready.
        iterations, max_iterations: Their number so far, and the limit.
        cost: In US dollars, None if a price is unknown.
        changed_files: Number of files that the agent has changed.
        worked: True when the agent's work has ended.
        verifies: True when Resolver executes the project's checks itself.
        verifying: True once it has executed a check.
        verdict: What the checks show about the newest change.
        reproduced: Number of tests that fail without the change and pass with it.
    """

    trigger: Trigger
    run: str
    since: datetime
    until: datetime
    mention: str = "@agent"
    job: str | None = None
    log_url: str | None = None
    read: bool = False
    base: str | None = None
    sandbox: bool = False
    iterations: int = 0
    max_iterations: int = 0
    cost: float | None = 0.0
    paused: bool = False
    plan: tuple[PlanItem, ...] = ()
    changed_files: int = 0
    worked: bool = False
    published: bool = False
    verifies: bool = False
    verifying: bool = False
    verdict: VerificationVerdict | None = None
    reproduced: int = 0

    @property
    def active_run(self) -> ActiveRunMarker:
        """The content of the comment's marker."""
        return ActiveRunMarker(self.run, self.since, self.until, self.job)


def progress_body(progress: RunProgress) -> str:
    """Return the comment of an active run, without the plan if it would be too long."""
    text = render_comment("progress.md.j2", progress=progress, trigger=progress.trigger)
    marker = active_run_marker(progress.trigger.key, progress.active_run)
    text = re.sub(r"\n{3,}", "\n\n", text.strip())
    body = f"{marker}\n\n{text}\n"
    if utf16_length(body) > MAX_BODY:
        return progress_body(progress.model_copy(update={"plan": ()}))
    return body


def killed_run_body(body: str, work: ActiveRunMarker, mention: str, page: str) -> str:
    """Return the text that replaces `body`, the comment of an active run that was killed.

    `page` is the URL of the repository's workflow runs, to which the id of the run is appended.
    """
    url = f"{page}/{work.job.partition('.')[0]}" if work.job else None
    text = render_comment("died.md.j2", work=work, mention=mention, log_url=url)
    return f"{killed_run_marker(body)}\n\n{text.strip()}\n"


logger = logging.getLogger("resolver.github.comments.progress")

MAX_FAILURES = 3
"""Consecutive failed edits after which the reporter stops; the final comment is still written."""

ENDED_STATES = frozenset(
    {RunState.FINISHED, RunState.REJECTED, RunState.LIMIT, RunState.STUCK, RunState.STOPPED}
)
"""States in which the agent has ended."""


_STAGES = {
    "sandbox": {"sandbox": True},
    "change": {"worked": True},
    "published": {"worked": True, "published": True},
    "reviewed": {"worked": True, "published": True},
}
"""The fields of `RunProgress` that the end of a stage sets."""


class ProgressWriter(Protocol):
    """The part of a forge that writes progress comments. It is used by one thread only."""

    def write_progress(self, progress: RunProgress, comment_id: int | None) -> int | None:
        """Write the progress into the run's comment and return the comment's id.

        With `comment_id` None the run's comment is looked up, and created if there is none. Returns
        None if the comment `comment_id` was deleted. Raises ForgeError.
        """
        ...

    def close_killed_runs(
        self, number: int, now: datetime, mention: str, excluded_trigger: Trigger
    ) -> int:
        """See `RunComments.close_killed_runs`."""
        ...


class ProgressReporter:
    """Reports the progress of one run.

    `create_writer` is called in the background thread. `initial` is the state when the run starts.
    `interval` is the number of seconds between two edits. `redact` removes secrets from a text.
    """

    def __init__(
        self,
        create_writer: Callable[[], ProgressWriter],
        initial: RunProgress,
        interval: float,
        redact: Callable[[str], str],
    ) -> None:
        self._create_writer = create_writer
        self._progress = initial
        self._interval = interval
        self._redact = redact
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._paused_writes = threading.Event()
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._comment_id: int | None = None
        self._replies = 0
        self._thread = threading.Thread(target=self._write_all, name="progress", daemon=True)

    @property
    def comment_id(self) -> int | None:
        """The id of the comment, None until it is known."""
        return self._comment_id

    def start(self) -> None:
        """Report that the run is active. Returns at once."""
        self._changed.set()
        self._thread.start()

    def show(self, **changes: Any) -> None:
        """Update these fields of the `RunProgress`. Returns at once."""
        with self._lock:
            changed = RunProgress(**{**dict(self._progress), **changes})
            if changed == self._progress:
                return
            self._progress = changed
        self._changed.set()

    def follow(self, state: State) -> Subscriber:
        """Return a subscriber for the run's log that reports the progress after each event.

        `state` must be updated with an event before the subscriber gets it.
        """

        def take(event: Event) -> None:
            # A delegate answers in its own log; here the next iteration shows that the wait is
            # over.
            if isinstance(event, ConfirmationAnswered) or state.iterations > self._replies:
                self._resume_writes()
            self._replies = state.iterations
            if isinstance(event, StageCompleted):
                self.show(**_STAGES.get(event.stage, {}))
            if isinstance(event, CheckExecuted):
                self.show(verifying=True)
            if isinstance(event, VerificationCompleted):
                evidence = event.evidence
                self.show(verdict=evidence.verdict, reproduced=len(evidence.reproduction))
            if isinstance(event, AgentStateChanged):
                if event.state is RunState.RUNNING:
                    self.show(verifying=False, verdict=None, reproduced=0)
                paused = event.state is RunState.PAUSED
                self.show(worked=event.state in ENDED_STATES, paused=paused)
            self.show(
                iterations=state.iterations,
                max_iterations=state.limits.max_iterations,
                cost=state.cost,
                plan=tuple(
                    i.model_copy(update={"title": self._redact(i.title)}) for i in state.plan
                ),
                changed_files=state.changed_files or 0,
            )

        return take

    def hold(self) -> None:
        """Stop editing the comment while it asks a person for a decision, until that is made."""
        self._paused_writes.set()
        with self._write_lock:
            pass  # wait until an edit in progress has ended

    def _resume_writes(self) -> None:
        """Edit the comment again, which still asks for the decision even if nothing has changed."""
        if self._paused_writes.is_set():
            self._paused_writes.clear()
            self._changed.set()

    def close(self) -> None:
        """Stop writing. When this returns, no edit is in progress."""
        self._closed.set()
        self._changed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _write_all(self) -> None:
        try:
            writer = self._create_writer()
        except ResolverError as error:
            logger.warning("the progress of the run is not reported: %s", error.what)
            return
        failures, closed_killed_runs = 0, False
        while failures < MAX_FAILURES:
            # Changes that arrive during an edit, or within the interval after it, are merged into
            # one edit.
            self._changed.wait()
            if self._closed.is_set():
                return
            self._changed.clear()
            try:
                if not self._write(writer):
                    return
                if not closed_killed_runs:
                    closed_killed_runs = True
                    number, trigger = self._progress.trigger.number or 0, self._progress.trigger
                    since, mention = self._progress.since, self._progress.mention
                    writer.close_killed_runs(number, since, mention, trigger)
                failures = 0
            except ResolverError as error:
                failures += 1
                self._changed.set()
                logger.warning("the progress of the run could not be reported: %s", error.what)
            if self._closed.wait(self._interval):
                return

    def _write(self, writer: ProgressWriter) -> bool:
        """Write the current progress. Returns False if a person deleted the comment.

        A deleted comment is created again only for the final text.
        """
        with self._write_lock:
            if self._paused_writes.is_set() or self._closed.is_set():
                return True
            with self._lock:
                progress = self._progress
            comment_id = self._comment_id
            self._comment_id = writer.write_progress(progress, comment_id)
            return self._comment_id is not None
