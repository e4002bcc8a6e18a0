"""Executes the checks of a project at several trees, each in a sandbox of its own.

Executions that the run's event log or the store of base results already has are not repeated. A
change can't influence that store: only executions at a base commit are written, and the key is made
of the repository, the commit's tree, the environment and the command.
"""

import contextlib
import hashlib
import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from resolver.events.lifecycle import CheckExecuted
from resolver.models.verification import CheckExecution, ProjectCheck, TreeName

FORMAT = 4
"""Version of the stored form and of the way in which checks are executed; a part of the key."""

MAX_FILES = 500
"""Number of results that are kept; the oldest are removed first."""

MIN_SECONDS = 1.0
"""A check is not started if less time is left."""


def execution_key(environment: str, tree: str, check: ProjectCheck, repetition: int = 0) -> str:
    """Return the digest of everything that decides the result of an execution.

    environment: identifies the repository, the image with its set-up, and the sandbox's limits.
    """
    place = {"format": FORMAT, "environment": environment, "tree": tree}
    executed = check.model_dump(exclude={"name", "narrowed", "paths", "origin"})
    return digest_of({**place, "check": executed, "repetition": repetition})


def digest_of(parts: Mapping[str, object]) -> str:
    """Return the digest of named values that describe an environment."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class BaseResults:
    """Results of checks at base commits, one file each in `folder`.

    A result that can't be read or written is only executed again.
    """

    folder: Path

    def find(self, key: str) -> CheckExecution | None:
        """Return the stored result, None if there is none."""
        try:
            return CheckExecution.model_validate_json(self._file(key).read_bytes())
        except (OSError, ValidationError):
            return None

    def store(self, key: str, execution: CheckExecution) -> None:
        """Store a complete result. One that was ended at its time limit is not stored."""
        if execution.exit_code is None or not execution.report_complete:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile("wb", dir=self.folder, delete=False) as file:
                file.write(execution.model_dump_json().encode())
            Path(file.name).replace(self._file(key))
            self._remove_oldest()

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _remove_oldest(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda f: f.stat().st_mtime)
        for file in files[:-MAX_FILES]:
            file.unlink(missing_ok=True)


class CheckExecutor(Protocol):
    """Executes checks in a sandbox in which one tree is checked out."""

    def execute(self, check: ProjectCheck, seconds: float) -> CheckExecution:
        """Return the result. Raises SandboxError if the sandbox is lost."""
        ...

    def interrupt(self) -> None:
        """End the running check. Called from another thread."""
        ...


OpenExecutor = Callable[[TreeName], AbstractContextManager[CheckExecutor]]
"""Starts a fresh sandbox with the tree and the project's set-up. Raises SandboxError."""


@dataclass(frozen=True)
class CheckRequest:
    """A check to execute at a tree.

    repetition: number of earlier, identical executions.
    reserve: seconds of the runner's time that must be left after it.
    """

    tree: TreeName
    check: ProjectCheck
    repetition: int = 0
    reserve: float = 0.0


@dataclass
class CheckRunner:
    """Executes checks, and starts a tree's sandbox when its first check is executed.

    Use it as a context manager: leaving ends what still runs and removes the sandboxes.

    trees: ids of the git trees.
    environment: identifies the repository, the environment and the sandbox's limits.
    record: adds an execution to the event log; called from several threads.
    seconds: time limit of all executions together.
    recorded: results that the event log has, by key.
    base_results: results of earlier runs; None to neither read nor write any.
    parallel: True to execute checks at two trees at the same time.
    """

    trees: Mapping[TreeName, str]
    environment: str
    open_executor: OpenExecutor
    record: Callable[[CheckExecuted], object]
    seconds: float
    recorded: Mapping[str, CheckExecution] = field(default_factory=dict)
    base_results: BaseResults | None = None
    parallel: bool = False
    clock: Callable[[], float] = time.monotonic
    _open: ExitStack = field(default_factory=ExitStack)
    _executors: dict[TreeName, CheckExecutor] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _deadline: float = 0.0

    def __enter__(self) -> "CheckRunner":
        self._deadline = self.clock() + self.seconds
        return self

    def __exit__(self, *exc: object) -> None:
        self._open.close()

    @property
    def is_cancelled(self) -> bool:
        """True once `interrupt` was called."""
        return self._cancelled.is_set()

    def interrupt(self) -> None:
        """End all executions, and start no other. May be called from any thread."""
        self._cancelled.set()
        with self._lock:
            executors = list(self._executors.values())
        # Side by side: each may need a second to kill what ignores Ctrl-C.
        with ThreadPoolExecutor(max(1, len(executors))) as pool:
            list(pool.map(lambda executor: executor.interrupt(), executors))

    def execute(self, requests: Sequence[CheckRequest]) -> list[CheckExecution | None]:
        """Return the results in the same order; None for a check that there was no time for.

        Checks at one tree are executed one after the other, those at different trees side by side
        if there is room. Raises SandboxError.
        """
        results: dict[int, CheckExecution | None] = {}
        groups: dict[TreeName, list[int]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(request.tree, []).append(number)
        # After a lost sandbox, executions at other trees would decide nothing.
        is_lost = threading.Event()

        def work(tree: TreeName) -> None:
            try:
                for number in groups[tree]:
                    if not is_lost.is_set():
                        results[number] = self._execute(requests[number])
            except BaseException:
                is_lost.set()
                raise

        with ThreadPoolExecutor(2 if self.parallel else 1) as pool:
            # The change goes first, because most checks are executed there.
            futures = [pool.submit(work, tree) for tree in sorted(groups, reverse=True)]
        for future in futures:
            future.result()
        return [results[number] for number in range(len(requests))]

    def _execute(self, request: CheckRequest) -> CheckExecution | None:
        """Return the known result of an execution, or execute the check."""
        check, tree = request.check, self.trees[request.tree]
        key = execution_key(self.environment, tree, check, request.repetition)
        if (known := self.recorded.get(key)) is not None:
            return known
        # Whole checks at the base commit are kept for other runs.
        store = self.base_results if (request.tree, request.repetition) == ("base", 0) else None
        stored = store.find(key) if store else None
        execution = stored or self._start(request)
        if execution is None or self.is_cancelled:
            return None
        if store and stored is None:
            store.store(key, execution)
        self.record(
            CheckExecuted(
                key=key,
                name=check.name,
                command=check.command,
                at=request.tree,
                tree=tree,
                repetition=request.repetition,
                is_cached=stored is not None,
                execution=execution,
            )
        )
        return execution

    def _start(self, request: CheckRequest) -> CheckExecution | None:
        if self._seconds_for(request) < MIN_SECONDS:
            return None
        executor = self._executor(request.tree)
        seconds = self._seconds_for(request)
        return executor.execute(request.check, seconds) if seconds >= MIN_SECONDS else None

    def _seconds_for(self, request: CheckRequest) -> float:
        """Return the time limit of an execution; 0 if there is to be none."""
        if self.is_cancelled:
            return 0.0
        remaining = self._deadline - self.clock() - request.reserve
        return min(request.check.timeout_seconds or remaining, remaining)

    def _executor(self, tree: TreeName) -> CheckExecutor:
        """Return the tree's executor. Only one thread at a time works on a tree."""
        if tree not in self._executors:
            opened = self.open_executor(tree)
            executor = opened.__enter__()
            with self._lock:
                self._open.push(opened)
                self._executors[tree] = executor
        return self._executors[tree]
