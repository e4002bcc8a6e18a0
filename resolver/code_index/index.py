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

from resolver.code_index.answers import MARK, BuiltIndex, TermFound, WalkResult
from resolver.code_index.languages import language_of
from resolver.config.templates import render
from resolver.errors import ResolverError, WorkspaceError
from resolver.events import actions as a
from resolver.events.base import ActionBase, ObservationBase
from resolver.events.observations import CodeResult, ErrorObservation
from resolver.git.git import HostGit
from resolver.git.tree import GITLINK, SYMLINK, read_blobs, read_sizes, read_tree
from resolver.models.truncate import truncate_middle

logger = logging.getLogger("resolver.code_index")

_START = "from resolver.code_index.worker import run_worker; run_worker()"
_KEPT = ("LD_LIBRARY_PATH",)
"""Environment variables that a Python outside of the system's folders may need to start; none of
them is a secret."""

_LONGEST_ANSWER = 16 * 1024 * 1024
_OTHERS = frozenset({"node_modules", "vendor", "third_party", "dist", "build", "target"})
"""Names of folders with third-party or generated code, whose files come last."""

_LEAST_WAIT = 0.05
"""Minimum seconds between two checks of the processor time that the worker has used."""

_AT_ONCE = 500
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
class Size:
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
        self._size: Size | None = None
        self._mark = -1
        self._sent: list[str] = []
        self._broken: set[str] = set()

    def __enter__(self) -> "CodeIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build(self) -> Size:
        """Return the size of the index, and build it if it does not exist yet. Raises
        IndexUnavailable."""
        if self._size is None:
            try:
                self._size = self._build()
            finally:
                if self._size is None:
                    self.close()
        return self._size

    def search(self, terms: Sequence[str], below: str = "") -> tuple[TermFound, ...]:
        """Return what was found for each term (a name, an id, PATH:LINE, words), in paths that
        begin with `below`. Raises IndexUnavailable."""
        found: tuple[TermFound, ...] = self._ask(
            {"search": list(terms), "below": below}, tuple[TermFound, ...]
        )
        return found

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
        self._broken |= self._under_way()
        os.close(self._mark)

    def _under_way(self) -> set[str]:
        """Return the file that was being parsed when the process ended, if any, so that the next
        process leaves it out."""
        (number,) = MARK.unpack(os.pread(self._mark, MARK.size, 0).ljust(MARK.size, b"\0"))
        return set(self._sent[number - 1 : number]) if number else set()

    def _ask(self, question: dict[str, Any], kind: Any) -> Any:
        self.build()
        with self._time(self._bounds.answer_seconds):
            return self._answered(question, kind)

    def _build(self) -> Size:
        if self._starts >= self._bounds.starts:
            raise IndexUnavailable(
                "the index of the code could not be built, and is not tried again",
                "search with the shell instead",
            )
        self._starts += 1
        started = time.monotonic()
        with self._time(self._bounds.seconds + self._bounds.end_seconds) as time_left:
            listing = _list_files(self._git, self.commit, self._bounds)
            self._start()
            if not time_left():
                raise self._ended()
            names = ("memory", "file_seconds", "seconds")
            bounds = {name: getattr(self._bounds, name) for name in names}
            self._answered({**bounds, "mark": self._mark}, dict[str, bool])
            self._feed(listing)
            built: BuiltIndex = self._answered({"build": True}, BuiltIndex)
        took = time.monotonic() - started
        logger.info("indexed %d files of %s in %.1f s", built.files, self.commit, took)
        if not built.filtered:
            logger.warning("the kernel takes no filter: the index's process is bounded only")
        left_out = listing.left_out + built.left_out
        return Size(built.files, built.entities, left_out, listing.submodules)

    def _start(self) -> None:
        """Start the worker process."""
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = [folder for folder in sys.path if os.path.isabs(folder)]  # noqa: PTH117
        code = f"import sys; sys.path[:] = {path!r}; {_START}"
        self._sent = []
        # Anonymous memory shared with the worker, which writes the number of the current file
        # there. It can still be read after the worker has crashed, see memfd_create(2).
        self._mark = os.memfd_create("resolver-index")
        os.ftruncate(self._mark, MARK.size)
        # -I ignores PYTHON* variables and the current folder, so that no file of a repository is
        # imported.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            pass_fds=(self._mark,),
            start_new_session=True,
        )

    def _feed(self, listing: "_Listing") -> None:
        """Send the files in the order of their usefulness. The worker may have no time left for the
        last ones."""
        paths = list(listing.blobs)
        for first in range(0, len(paths), _AT_ONCE):
            wanted: dict[str, list[str]] = {}
            for path in paths[first : first + _AT_ONCE]:
                wanted.setdefault(listing.blobs[path], []).append(path)
            for blob, content in read_blobs(self._git, wanted):
                for path in wanted[blob]:
                    if path in self._broken:
                        self._send({"left_out": int(bool(language_of(path)))})
                    else:
                        self._sent.append(path)
                        self._send({"file": path, "size": len(content)}, content)

    def _time(self, seconds: float) -> "ProcessorTimeLimit":
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
            raise self._ended() from None

    def _answered(self, question: dict[str, Any], kind: Any) -> Any:
        self._send(question)
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline(_LONGEST_ANSWER)
        if not line.endswith(b"\n"):
            raise self._ended()
        try:
            return TypeAdapter(kind).validate_json(line)
        except ValidationError:
            raise self._ended() from None

    def _ended(self) -> IndexUnavailable:
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
    """Calls `end` from another thread if the worker uses more than `seconds` of processor time
    while the context is open, or if the context lasts `patience` times as long.

    The context's value is a function that returns True as long as neither has happened. used:
    returns the seconds of processor time that the process has used so far.
    """

    def __init__(
        self, seconds: float, used: Callable[[], float], patience: float, end: Callable[[], None]
    ) -> None:
        self._seconds = seconds
        self._used = used
        self._until = time.monotonic() + seconds * patience
        self._before = used()
        self._end = end
        self._over = False
        self._left = threading.Event()
        self._watch = threading.Thread(target=self._look, name="index-time", daemon=True)

    def __enter__(self) -> Callable[[], bool]:
        self._watch.start()
        return lambda: not self._over

    def __exit__(self, *_: object) -> None:
        self._left.set()

    def _look(self) -> None:
        """Check the processor time until the limit is reached.

        The worker has one thread, so the limit can't be reached before the remaining time has
        elapsed, and there is no need to check earlier.
        """
        rest = self._seconds
        while not self._left.wait(max(rest, _LEAST_WAIT)):
            rest = self._seconds - (self._used() - self._before)
            if rest <= 0 or time.monotonic() >= self._until:
                self._over = True
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
    found: dict[str, str] = {}
    odd = submodules = 0
    for entry in read_tree(git, commit):
        path = entry.path.decode("utf-8", "surrogateescape")
        if entry.mode == GITLINK:
            submodules += 1
        elif entry.mode != SYMLINK and path.isprintable():
            found[path] = entry.id
        elif entry.mode != SYMLINK:
            odd += bool(language_of(path))
    sizes = read_sizes(git, set(found.values()))
    fits = {True: bounds.file_bytes, False: bounds.text_bytes}
    small = (p for p, blob in found.items() if sizes[blob] <= fits[bool(language_of(p))])
    taken = sorted(small, key=_rank)[: bounds.files]
    left_out = sum(bool(language_of(p)) for p in found) - sum(bool(language_of(p)) for p in taken)
    return _Listing({path: found[path] for path in taken}, odd + left_out, submodules)


def _rank(path: str) -> tuple[bool, bool, int, str]:
    """Return a sort key: source files before other texts, the project's own before third-party
    files, and top-level files first."""
    folders = path.split("/")[:-1]
    return not language_of(path), not _OTHERS.isdisjoint(folders), len(folders), path


MOST_TEXT = 24_000
"""Maximum number of characters of one answer."""

_BOTH = ("upstream", "downstream")

Answering = dict[type[ActionBase], Callable[[Any], ObservationBase]]


def index_action_handlers(index: CodeIndex) -> Answering:
    """Return the handlers of the actions that ask the index. They never raise ResolverError: a
    failure is an observation."""

    def answered(ask: Callable[[Any], str]) -> Callable[[Any], ObservationBase]:
        def answer(action: Any) -> ObservationBase:
            try:
                text = ask(action)
                size = index.build()
            except ResolverError as error:
                told = (error.what, error.next_step)
                words = ". ".join(part[:1].upper() + part[1:] for part in told if part)
                return ErrorObservation(content=words, code="index")
            note = render("agent/code_note.md.j2", commit=index.commit, size=size).strip()
            content = f"{truncate_middle(text, MOST_TEXT)}\n\n{note}"
            return CodeResult(content=content, commit=index.commit, left_out=size.left_out)

        return answer

    def search(action: a.CodeSearch) -> str:
        found = index.search(action.terms, action.path)
        return render("agent/code_found.md.j2", found=found, path=action.path).strip()

    def explore(action: a.CodeExplore) -> str:
        directions = _BOTH if action.direction == "both" else (action.direction,)
        walks = index.explore(action.start, directions, action.depth, action.edges)
        return render("agent/code_walks.md.j2", walks=walks).strip()

    return {a.CodeSearch: answered(search), a.CodeExplore: answered(explore)}
