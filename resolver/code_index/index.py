"""The index of one commit, as the host sees it: a child process that is fed with the commit's files
out of the host's own bare clone, and asked. No file of a working tree is read, nothing of it is
run, and what parses it can do no harm: see child.py.
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
from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from resolver.git.tree import GITLINK, SYMLINK, read_blobs, read_sizes, read_tree

logger = logging.getLogger("resolver.code_index")

_START = "from resolver.code_index.worker import run_worker; run_worker()"
_KEPT = ("LD_LIBRARY_PATH",)
"""Variables that a Python outside of the system's folders may need to start; none is a secret."""

_LONGEST_ANSWER = 16 * 1024 * 1024
_OTHERS = frozenset({"node_modules", "vendor", "third_party", "dist", "build", "target"})
"""Folders that hold others' code, or made code: their files come last."""

_LEAST_WAIT = 0.05
"""Seconds between two looks at the time that the process has used."""

_AT_ONCE = 500
"""Files that are read with one command of git."""


@dataclass(frozen=True)
class IndexBounds:
    """What one index may take.

    file_bytes, text_bytes: larger sources, and larger texts of other kinds, are left out. files:
    how many are read. file_seconds: after them a file's parsing is given up. seconds: after them
    no further file is read. end_seconds, answer_seconds: after so many more the index, or an
    answer, is given up. All seconds are processor time of the index's process, so that a busy
    machine finds as much as a quiet one. patience: how many times as long by the clock all of it
    may take. memory: bytes of the process. starts: how often it is started when it ends.
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
    """How much an index holds. left_out: sources that a bound, or a path that is no plain text,
    kept out, whole or in part. submodules: they are other repositories, and not in it."""

    files: int
    entities: int
    left_out: int
    submodules: int


class IndexUnavailable(WorkspaceError):
    """The index can't be built, or its process has ended; asking again may start another."""


class CodeIndex:
    """Built at the first question. Use it as a context, or `close` it.

    git: in the bare clone. commit: whose files are read.
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
        """Its size; built now if it is not yet. Raises IndexUnavailable."""
        if self._size is None:
            try:
                self._size = self._build()
            finally:
                if self._size is None:
                    self.close()
        return self._size

    def search(self, terms: Sequence[str], below: str = "") -> tuple[TermFound, ...]:
        """What is found for each term (a name, an id, PATH:LINE, words), in paths that begin with
        `below`. Raises IndexUnavailable."""
        found: tuple[TermFound, ...] = self._ask(
            {"search": list(terms), "below": below}, tuple[TermFound, ...]
        )
        return found

    def explore(
        self, starts: Sequence[str], directions: Sequence[str], depth: int, kinds: Sequence[str]
    ) -> tuple[WalkResult, ...]:
        """The walks over the graph from each start (an id, a path, a name that is unique), in each
        direction. Raises IndexUnavailable."""
        question = {
            "explore": list(starts),
            "directions": list(directions),
            "depth": depth,
            "kinds": list(kinds),
        }
        walks: tuple[WalkResult, ...] = self._ask(question, tuple[WalkResult, ...])
        return walks

    def interrupt(self) -> None:
        """End what is under way; for another thread. The question fails."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process. Nothing happens when there is none."""
        process, self._process, self._size = self._process, None, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):  # what was not sent yet has no reader any more
                cast("IO[bytes]", stream).close()
        process.wait()
        self._broken |= self._under_way()
        os.close(self._mark)

    def _under_way(self) -> set[str]:
        """The file that was being read when the process ended, if any: the next does without."""
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
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = [folder for folder in sys.path if os.path.isabs(folder)]  # noqa: PTH117
        code = f"import sys; sys.path[:] = {path!r}; {_START}"
        self._sent = []
        self._mark = os.memfd_create("resolver-index")
        os.ftruncate(self._mark, MARK.size)
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
        """Send the files, the most telling first; some the process has no time left for."""
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
        """Seconds of processor time that the process has used; 0 where there is none."""
        try:
            # its clock, as clock_getcpuclockid(3) names it on Linux
            return time.clock_gettime((~self._process.pid << 3) | 2) if self._process else 0.0
        except OSError:
            return 0.0  # it has ended

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
        """The error for a process that gave no answer; it is gone for good."""
        process = self._process
        self.close()
        status = process.returncode if process else None
        logger.warning("the index of %s ended without an answer (%s)", self.commit, status)
        return IndexUnavailable(
            "the index of the code gave no answer: it ran out of its time or memory, or broke",
            "ask for less, or search with the shell",
        )


class ProcessorTimeLimit:
    """Calls `end` from another thread when the index's process uses more than `seconds` of
    processor time in the context, or the context lasts `patience` times as long. What it gives says
    whether that has not come yet.

    used: the seconds that the process has used so far.
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
        """Look again each time it may have come: with one core no sooner than what is left."""
        rest = self._seconds
        while not self._left.wait(max(rest, _LEAST_WAIT)):
            rest = self._seconds - (self._used() - self._before)
            if rest <= 0 or time.monotonic() >= self._until:
                self._over = True
                self._end()
                return


@dataclass(frozen=True)
class _Listing:
    """blobs: object ids by path, in the order in which they are read."""

    blobs: dict[str, str]
    left_out: int
    submodules: int


def _list_files(git: HostGit, commit: str, bounds: IndexBounds) -> _Listing:
    """The files of a commit. A symlink is none: what it leads to has its own place."""
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
    """Sources before other texts, the project's own before what it carries along, top first."""
    folders = path.split("/")[:-1]
    return not language_of(path), not _OTHERS.isdisjoint(folders), len(folders), path
