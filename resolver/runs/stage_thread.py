"""Executes the stages of a run in a thread of their own, so that a stop never waits for them.

A stop reaches a run in three steps. What runs is interrupted, and the run has a moment to end in
order: the agent's change is taken out of the sandbox, or the verification ends. Then whatever it
uses is ended at once: its sandboxes and git. What even then has not ended, such as a request to a
server that does not answer, is left behind; it can publish nothing any more.
"""

import logging
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import closing

from resolver.config.background import call_in_background
from resolver.controller.control import Control, Stop
from resolver.errors import LeaseLost, RunStopped
from resolver.git.git import kill_git_of
from resolver.models.run import RunState
from resolver.runs.stages import StageValues

logger = logging.getLogger("resolver.runs.stage_thread")

POLL_SECONDS = 0.2
"""Seconds between two looks for a stop and at the time limit."""

ORDERLY_SECONDS = 3.5
"""Time for an orderly end after a stop, if there is work that can be kept."""

END_SECONDS = 0.8
"""Time that the run has to end after its sandboxes were ended."""


class StageThread:
    """Executes the stages. `values` are those of the last stage that has ended.

    stages: returns the iterator of all values that are known after each stage.
    """

    def __init__(
        self,
        values: StageValues,
        stages: Callable[[StageValues], Generator[StageValues, None, None]],
    ) -> None:
        self.values = values
        self._stages = stages
        self._control: Control = values.request.control
        self._thread_id: int | None = None

    def run(self) -> None:
        """Execute the stages. Raises what a stage raises, and RunStopped after a stop.

        A signal raises RunStopped in this thread, which does nothing but wait (`stop_on_signals`).
        """
        future: Future[None] = Future()
        try:
            future = call_in_background(self._execute, "stages")
            while not _has_ended(future, POLL_SECONDS) and not self._control.is_stopped:
                self._enforce_time_limit()
        except RunStopped as stopped:
            self._control.send(Stop(error=stopped))
        try:
            if not future.done():
                self._stop(future)
        finally:
            self._control.close()
        if not future.done():
            self._control.raise_if_stopped()
        error = future.exception()
        # After a stop, an error is one of what was ended.
        if error is not None and not isinstance(error, RunStopped | LeaseLost):
            self._control.raise_if_stopped()
        future.result()

    def _execute(self) -> None:
        self._thread_id = threading.get_ident()
        with closing(self._stages(self.values)) as stages:
            for newest in stages:
                newest.request.observe(newest)
                self.values = newest
                # The agent's work ends with a state of its own, and what follows asks itself.
                if newest.executed is None:
                    self._control.raise_if_stopped()

    def _stop(self, future: Future[None]) -> None:
        """Wait for an orderly end, then end what the run uses."""
        # A resumed run has its log before anything is at work.
        has_work = self.values.log is not None and self.values.prepared is not None
        if has_work and _has_ended(future, ORDERLY_SECONDS):
            return
        call_in_background(self._control.end, "end")
        kill_git_of(self._thread_id)
        if not _has_ended(future, END_SECONDS):
            run = self.values.request.run
            logger.warning("run %s was stopped, and left behind what it was waiting for", run)

    def _enforce_time_limit(self) -> None:
        """Interrupt what the agent waits for when its time is over: the controller then sees it."""
        log = self.values.log
        if log is None or log.state.run_state is not RunState.RUNNING:
            return
        now = self.values.request.now()
        if log.state.elapsed(now) >= log.state.limits.max_time:
            self._control.interrupt()


def _has_ended(future: Future[None], seconds: float) -> bool:
    """Wait for at most so many seconds, and return True if the result is there."""
    return bool(wait([future], seconds).done)
