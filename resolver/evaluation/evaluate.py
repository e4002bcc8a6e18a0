"""Runs models on the tasks of a suite: in parallel, within one budget, resumable after a kill."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from resolver import __version__
from resolver.config.settings import Settings
from resolver.controller.control import Control, Stop
from resolver.errors import OverBudget
from resolver.evaluation.attempt import Attempt, LoadSettings, make_attempt
from resolver.evaluation.results import (
    AttemptResult,
    EvaluationFile,
    attempt_folder,
    read_result,
    write_evaluation,
)
from resolver.evaluation.task_format import EvaluationTask
from resolver.runs.wiring.sandbox import RunHost


class SharedBudget:
    """The US dollars that all attempts may spend together. Used by several threads.

    A run starts only if all that it may spend is left. A run with less would fail at a limit that
    others don't have, and the total could be exceeded.
    """

    def __init__(self, total: float, spent: float = 0.0) -> None:
        self._total = total
        self._left = total - spent
        self._active = 0
        self._changed = threading.Condition()

    def reserve(self, amount: float) -> float:
        """Reserve `amount`, at most the total, and return how much.

        Waits while active runs may leave enough. Raises OverBudget if there will not be enough.
        """
        wanted = min(amount, self._total)
        with self._changed:
            while self._left < wanted and self._active:
                self._changed.wait()
            if self._left < wanted:
                raise OverBudget(
                    "the budget of the evaluation is used up",
                    "repeat the command with a larger --total-budget; it continues",
                )
            self._left -= wanted
            self._active += 1
            return wanted

    def release(self, amount: float) -> None:
        """Return what a run that has ended had reserved and not spent."""
        with self._changed:
            self._left += amount
            self._active -= 1
            self._changed.notify_all()


@dataclass(frozen=True)
class EvaluationRequest:
    """The tasks and models to evaluate, and the limits.

    suite: name of the suite. budget: US dollars for all attempts. parallel: attempts at a time.
    report: called with each result that there is, from several threads.
    """

    suite: str
    tasks: tuple[EvaluationTask, ...]
    models: tuple[str, ...]
    folder: Path
    host: RunHost
    load_settings: LoadSettings
    budget: float = float("inf")
    parallel: int = 1
    report: Callable[[AttemptResult], None] = lambda _: None


@dataclass
class _ActiveRuns:
    """The controls of the runs that are active, so that all of them can be stopped."""

    controls: set[Control] = field(default_factory=set)
    is_stopping: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def registered(self, control: Control) -> Iterator[bool]:
        """Register a run while the context is open. Yields False if it must not start."""
        with self.lock:
            may_start = not self.is_stopping
            self.controls.add(control)
        try:
            yield may_start
        finally:
            with self.lock:
                self.controls.discard(control)

    def stop(self) -> None:
        """Stop all runs, and let no other start."""
        with self.lock:
            self.is_stopping = True
            controls = list(self.controls)
        for control in controls:
            control.send(Stop(reason="the evaluation was stopped"))


def evaluate(request: EvaluationRequest) -> tuple[AttemptResult, ...]:
    """Make all attempts that have no result yet, and return the results that there are.

    Results are missing where the budget was used up. Raises UsageError if the folder has results of
    other tasks, and RunStopped if a signal arrives: then all runs are stopped first.
    """
    budget = None if request.budget == float("inf") else request.budget
    write_evaluation(
        request.folder,
        EvaluationFile(
            suite=request.suite,
            tasks=tuple(task.id for task in request.tasks),
            models=request.models,
            budget=budget,
            version=__version__,
        ),
    )
    pairs = [(task, model) for task in request.tasks for model in request.models]
    folders = [attempt_folder(request.folder, model, task.id) for task, model in pairs]
    known = [read_result(folder) for folder in folders]
    spent = sum(result.cost or 0.0 for result in known if result is not None)
    shared = SharedBudget(request.budget, spent)
    active = _ActiveRuns()
    with ThreadPoolExecutor(request.parallel, thread_name_prefix="eval") as pool:
        futures: list[Future[AttemptResult | None]] = [
            pool.submit(_attempt, request, task, model, shared, active) for task, model in pairs
        ]
        try:
            for future in as_completed(futures):
                if (result := future.result()) is not None:
                    request.report(result)
        except BaseException:
            active.stop()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return tuple(result for future in futures if (result := future.result()) is not None)


def _attempt(
    request: EvaluationRequest,
    task: EvaluationTask,
    model: str,
    shared: SharedBudget,
    active: _ActiveRuns,
) -> AttemptResult | None:
    """Make one attempt with what the budget leaves for it."""
    folder = attempt_folder(request.folder, model, task.id)
    control = Control()
    reservations: list[float] = []

    def reserve(settings: Settings) -> float:
        reservations.append(shared.reserve(settings.max_budget))
        return reservations[-1]

    attempt = Attempt(task, model, folder, request.load_settings, request.host, reserve, control)
    with active.registered(control) as may_start:
        result = None
        try:
            result = make_attempt(attempt) if may_start else None
        finally:
            for reserved in reservations:
                # A run that was stopped, or has no known price, counts with all that it had.
                cost = reserved if result is None or result.cost is None else result.cost
                shared.release(max(0.0, reserved - cost))
        return result


def with_hidden_folders(host: RunHost, *folders: Path) -> RunHost:
    """Return the machine with folders that no local sandbox can read, such as the suite."""
    return replace(host, hidden=(*host.hidden, *(str(folder.resolve()) for folder in folders)))
