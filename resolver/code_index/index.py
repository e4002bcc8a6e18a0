"""The host's side of the code index: starts the worker process, sends it the files of one commit
and asks it questions, also for the actions of an agent.

The files are read from the host's own bare clone, never from a working tree, and none of them is
executed. They are parsed in a separate, confined process (`resolver.code_index.worker`), because a
parser written in C may have faults that a hostile file can exploit.
"""

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, cast

from pydantic import TypeAdapter, ValidationError

from resolver.code_index.answers import BuiltIndex, TermResult, WalkResult
from resolver.code_index.languages import language_of
from resolver.config.templates import render
from resolver.errors import ResolverError, WorkspaceError
from resolver.events import actions as a
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.observations import CodeResult, ErrorObservation
from resolver.git.git import HostGit
from resolver.git.tree import GITLINK, SYMLINK, decode_path, read_blobs, read_sizes, read_tree
from resolver.models.truncate import truncate_middle

logger = logging.getLogger("resolver.code_index")

_WORKER_CODE = "from resolver.code_index.worker import run_worker; run_worker()"
_PASSED_VARIABLES = ("LD_LIBRARY_PATH",)
"""Environment variables that a Python outside of the system's folders may need to start; none of
them is a secret."""

_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_THIRD_PARTY_FOLDERS = frozenset(
    {"node_modules", "vendor", "third_party", "dist", "build", "target"}
)
"""Names of folders with third-party or generated code, whose files come last."""

_MIN_WAIT_SECONDS = 0.05
"""Minimum seconds between two checks of the processor time that the worker has used."""

_FILES_PER_BATCH = 500
"""Number of files that are read with one git command."""


@dataclass(frozen=True)
class IndexBounds:
    """Limits of one index.

    All seconds are processor time of the worker process, so that a busy machine indexes as much as
    an idle one.

    file_bytes, text_bytes: maximum size of a source file, and of any other text file.
    files: maximum number of files.
    file_seconds: time after which the parsing of one file is given up.
    seconds: time after which no further file is read.
    end_seconds: additional time for building the index from these files.
    answer_seconds: time for one answer.
    patience: maximum elapsed time, as a multiple of each of the limits of processor time.
    memory: bytes of address space of the process.
    starts: how often the process is started if it ends.
    """

    file_bytes: int = 512 * 1024
    text_bytes: int = 64 * 1024
    files: int = 20_000
    file_seconds: float = 2.0
    seconds: float = 60.0
    end_seconds: float = 60.0
    answer_seconds: float = 20.0
    patience: float = 10.0
    memory: int = 1_500_000_000
    starts: int = 2


DEFAULT_BOUNDS = IndexBounds()


@dataclass(frozen=True)
class IndexSize:
    """The size of an index.

    left_out: source files that are missing, completely or in part, because of a limit or because
    their path is not printable. submodules: they are other repositories and not indexed.
    """

    files: int
    entities: int
    left_out: int
    submodules: int


class IndexUnavailable(WorkspaceError):
    """The index can't be built, or its process has ended; the next question may start another
    process."""


class CodeIndex:
    """The index of one commit, built at the first question. Use it as a context manager, or call
    `close`.

    git: works in the bare clone. commit: the commit whose files are indexed.
    """

    def __init__(
        self,
        git: HostGit,
        commit: str,
        bounds: IndexBounds = DEFAULT_BOUNDS,
    ) -> None:
        self._git = git
        self.commit = commit
        self._bounds = bounds
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        self._size: IndexSize | None = None

    def __enter__(self) -> "CodeIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build(self) -> IndexSize:
        """Return the size of the index, and build it if it does not exist yet. Raises
        IndexUnavailable."""
        if self._size is None:
            try:
                self._size = self._build()
            finally:
                if self._size is None:
                    self.close()
        return self._size

    def search(self, terms: Sequence[str], path_prefix: str = "") -> tuple[TermResult, ...]:
        """Return what was found for each term (a name, an id, PATH:LINE, words), in paths that
        begin with `path_prefix`. Raises IndexUnavailable."""
        results: tuple[TermResult, ...] = self._ask(
            {"search": list(terms), "below": path_prefix}, tuple[TermResult, ...]
        )
        return results

    def explore(
        self, starts: Sequence[str], directions: Sequence[str], depth: int, kinds: Sequence[str]
    ) -> tuple[WalkResult, ...]:
        """Return the walks over the graph from each start (an id, a path, a unique name), in each
        direction.

        Raises IndexUnavailable.
        """
        question = {
            "explore": list(starts),
            "directions": list(directions),
            "depth": depth,
            "kinds": list(kinds),
        }
        walks: tuple[WalkResult, ...] = self._ask(question, tuple[WalkResult, ...])
        return walks

    def interrupt(self) -> None:
        """Kill the worker, so that the current question fails. May be called from another
        thread."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process, self._size = self._process, None, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):  # buffered data can't be written to a dead process
                cast("IO[bytes]", stream).close()
        process.wait()

    def _ask(self, question: dict[str, Any], kind: Any) -> Any:
        self.build()
        with self._limit_time(self._bounds.answer_seconds):
            return self._exchange(question, kind)

    def _build(self) -> IndexSize:
        if self._starts >= self._bounds.starts:
            raise IndexUnavailable(
                "the index of the code could not be built, and is not tried again",
                "search with the shell instead",
            )
        self._starts += 1
        start_time = time.monotonic()
        with self._limit_time(self._bounds.seconds + self._bounds.end_seconds) as time_left:
            listing = _list_files(self._git, self.commit, self._bounds)
            self._start()
            if not time_left():
                raise self._end_without_answer()
            bound_names = ("memory", "file_seconds", "seconds")
            bounds = {name: getattr(self._bounds, name) for name in bound_names}
            self._exchange(bounds, dict[str, bool])
            self._feed(listing)
            result: BuiltIndex = self._exchange({"build": True}, BuiltIndex)
        duration = time.monotonic() - start_time
        logger.info("indexed %d files of %s in %.1f s", result.files, self.commit, duration)
        if not result.filtered:
            logger.warning("the kernel accepts no seccomp filter for the process of the index")
        left_out = listing.left_out + result.left_out
        return IndexSize(result.files, result.entities, left_out, listing.submodules)

    def _start(self) -> None:
        """Start the worker process."""
        environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        path = [folder for folder in sys.path if os.path.isabs(folder)]  # noqa: PTH117
        code = f"import sys; sys.path[:] = {path!r}; {_WORKER_CODE}"
        # -I ignores PYTHON* variables and the current folder, so that no file of a repository is
        # imported.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            start_new_session=True,
        )

    def _feed(self, listing: "_Listing") -> None:
        """Send the files in the order of their usefulness. The worker may have no time left for the
        last ones."""
        paths = list(listing.blobs)
        for first in range(0, len(paths), _FILES_PER_BATCH):
            wanted: dict[str, list[str]] = {}
            for path in paths[first : first + _FILES_PER_BATCH]:
                wanted.setdefault(listing.blobs[path], []).append(path)
            for blob, content in read_blobs(self._git, wanted):
                for path in wanted[blob]:
                    self._send({"file": path, "size": len(content)}, content)

    def _limit_time(self, seconds: float) -> "ProcessorTimeLimit":
        used = self._processor_time
        return ProcessorTimeLimit(seconds, used, self._bounds.patience, self.interrupt)

    def _processor_time(self) -> float:
        """Return the seconds of processor time that the process has used; 0 if there is no
        process."""
        try:
            # the id of the process's CPU-time clock, computed as clock_getcpuclockid(3) does on
            # Linux
            return time.clock_gettime((~self._process.pid << 3) | 2) if self._process else 0.0
        except OSError:
            return 0.0  # the process has ended

    def _send(self, line: dict[str, Any], content: bytes = b"") -> None:
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(line).encode() + b"\n" + content)
            self._process.stdin.flush()
        except OSError:
            raise self._end_without_answer() from None

    def _exchange(self, question: dict[str, Any], kind: Any) -> Any:
        self._send(question)
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline(_MAX_ANSWER_BYTES)
        if not line.endswith(b"\n"):
            raise self._end_without_answer()
        try:
            return TypeAdapter(kind).validate_json(line)
        except ValidationError:
            raise self._end_without_answer() from None

    def _end_without_answer(self) -> IndexUnavailable:
        """End the process and return the error for a missing answer."""
        process = self._process
        self.close()
        status = process.returncode if process else None
        logger.warning("the index of %s ended without an answer (%s)", self.commit, status)
        return IndexUnavailable(
            "the index of the code gave no answer: it ran out of its time or memory, or broke",
            "ask for less, or search with the shell",
        )


class ProcessorTimeLimit:
    """Calls `on_exceeded` from another thread if the worker uses more than `seconds` of processor
    time while the context is open, or if the context lasts `patience` times as long.

    The context's value is a function that returns True as long as neither has happened.
    used_seconds: returns the seconds of processor time that the process has used so far.
    """

    def __init__(
        self,
        seconds: float,
        used_seconds: Callable[[], float],
        patience: float,
        on_exceeded: Callable[[], None],
    ) -> None:
        self._seconds = seconds
        self._used_seconds = used_seconds
        self._deadline = time.monotonic() + seconds * patience
        self._used_at_start = used_seconds()
        self._end = on_exceeded
        self._is_exceeded = False
        self._exited = threading.Event()
        self._watch = threading.Thread(target=self._look, name="index-time", daemon=True)

    def __enter__(self) -> Callable[[], bool]:
        self._watch.start()
        return lambda: not self._is_exceeded

    def __exit__(self, *_: object) -> None:
        self._exited.set()

    def _look(self) -> None:
        """Check the processor time until the limit is reached.

        The worker has one thread, so the limit can't be reached before the remaining time has
        elapsed, and there is no need to check earlier.
        """
        seconds_left = self._seconds
        while not self._exited.wait(max(seconds_left, _MIN_WAIT_SECONDS)):
            seconds_left = self._seconds - (self._used_seconds() - self._used_at_start)
            if seconds_left <= 0 or time.monotonic() >= self._deadline:
                self._is_exceeded = True
                self._end()
                return


@dataclass(frozen=True)
class _Listing:
    """The files of a commit. blobs: object ids by path, in the order in which the files are
    sent."""

    blobs: dict[str, str]
    left_out: int
    submodules: int


def _list_files(git: HostGit, commit: str, bounds: IndexBounds) -> _Listing:
    """Return the files of a commit. Symbolic links are left out: their targets are listed
    themselves."""
    blobs: dict[str, str] = {}
    unprintable = submodules = 0
    for entry in read_tree(git, commit):
        path = decode_path(entry.path)
        if entry.mode == GITLINK:
            submodules += 1
        elif entry.mode != SYMLINK and path.isprintable():
            blobs[path] = entry.id
        elif entry.mode != SYMLINK:
            unprintable += bool(language_of(path))
    sizes = read_sizes(git, set(blobs.values()))
    size_limits = {True: bounds.file_bytes, False: bounds.text_bytes}
    paths_within_limits = (
        p for p, blob in blobs.items() if sizes[blob] <= size_limits[bool(language_of(p))]
    )
    selected = sorted(paths_within_limits, key=_rank)[: bounds.files]
    left_out = sum(bool(language_of(p)) for p in blobs) - sum(
        bool(language_of(p)) for p in selected
    )
    return _Listing({path: blobs[path] for path in selected}, unprintable + left_out, submodules)


def _rank(path: str) -> tuple[bool, bool, int, str]:
    """Return a sort key: source files before other texts, the project's own before third-party
    files, and top-level files first."""
    folders = path.split("/")[:-1]
    return not language_of(path), not _THIRD_PARTY_FOLDERS.isdisjoint(folders), len(folders), path


MAX_ANSWER_CHARACTERS = 24_000
"""Maximum number of characters of one answer."""

_BOTH_DIRECTIONS = ("upstream", "downstream")

ActionHandlers = dict[type[ActionBase], Callable[[Any], ObservationBase]]


def index_action_handlers(index: CodeIndex) -> ActionHandlers:
    """Return the handlers of the actions that ask the index. They never raise ResolverError: a
    failure is an observation."""

    def answered(handler: Callable[[Any], str]) -> Callable[[Any], ObservationBase]:
        def answer(action: Any) -> ObservationBase:
            try:
                text = handler(action)
                size = index.build()
            except ResolverError as error:
                parts = (error.what, error.next_step)
                message = ". ".join(part[:1].upper() + part[1:] for part in parts if part)
                return ErrorObservation(content=message, code="index")
            note = render("agent/code_note.md.j2", commit=index.commit, size=size).strip()
            content = f"{truncate_middle(text, MAX_ANSWER_CHARACTERS)}\n\n{note}"
            return CodeResult(content=content, commit=index.commit, left_out=size.left_out)

        return answer

    def search(action: a.CodeSearch) -> str:
        results = index.search(action.terms, action.path)
        return render("agent/code_found.md.j2", found=results, path=action.path).strip()

    def explore(action: a.CodeExplore) -> str:
        directions = _BOTH_DIRECTIONS if action.direction == "both" else (action.direction,)
        walks = index.explore(action.start, directions, action.depth, action.edges)
        return render("agent/code_walks.md.j2", walks=walks).strip()

    return {a.CodeSearch: answered(search), a.CodeExplore: answered(explore)}
