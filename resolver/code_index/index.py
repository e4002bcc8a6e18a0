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
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, cast

from pydantic import BaseModel

from resolver.code_index.answers import TermResult, WalkResult
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


@dataclass(frozen=True)
class IndexBounds:
    """Limits of one index.

    file_bytes, text_bytes: maximum size of a source file, and of any other text file.
    total_bytes, files: maximum size and number of all files.
    file_seconds: processor time after which the parsing of one file is given up.
    seconds: processor time after which no further file is read.
    timeout_seconds: elapsed time after which the process is killed, for building the index and for
        one answer.
    memory: bytes of address space of the process.
    """

    file_bytes: int = 512 * 1024
    text_bytes: int = 64 * 1024
    total_bytes: int = 64 * 1024 * 1024
    files: int = 20_000
    file_seconds: float = 2.0
    seconds: float = 60.0
    timeout_seconds: float = 600.0
    memory: int = 1_500_000_000


DEFAULT_BOUNDS = IndexBounds()


@dataclass(frozen=True)
class IndexSize:
    """The size of an index.

    left_out: source files that are missing, completely or in part, because of a limit or because
    their path is not printable. submodules: they are other repositories and not indexed.
    """

    files: int
    left_out: int
    submodules: int


class IndexUnavailable(WorkspaceError):
    """The index can't be built, or its process has ended."""


class _Answer(BaseModel):
    """A line of the worker process: the answer to a question, or the size of the index."""

    found: list[TermResult] = []
    walks: list[WalkResult] = []
    files: int = 0
    left_out: int = 0
    confined: bool = True


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
        self._size: IndexSize | None = None

    def __enter__(self) -> "CodeIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def build(self) -> IndexSize:
        """Return the size of the index, and build it if it does not exist yet. Raises
        IndexUnavailable."""
        if self._size is None:
            blobs, left_out, submodules = self._list_files()
            if self._process is None:
                self._start()
            bounds = {k: getattr(self._bounds, k) for k in ("memory", "file_seconds", "seconds")}
            built = self._ask(bounds, blobs, {"build": True})
            logger.info("indexed %d files of %s", built.files, self.commit)
            if not built.confined:
                logger.warning("the kernel accepts no seccomp filter for the process of the index")
            self._size = IndexSize(built.files, left_out + built.left_out, submodules)
        return self._size

    def search(self, terms: Sequence[str], path_prefix: str = "") -> list[TermResult]:
        """Return what was found for each term (a name, an id, PATH:LINE, words), in paths that
        begin with `path_prefix`. Raises IndexUnavailable."""
        self.build()
        return self._ask({"search": list(terms), "below": path_prefix}).found

    def explore(
        self, starts: Sequence[str], directions: Sequence[str], depth: int, kinds: Sequence[str]
    ) -> list[WalkResult]:
        """Return the walks over the graph from each start (an id, a path, a unique name), in each
        direction.

        Raises IndexUnavailable.
        """
        self.build()
        question = {"directions": list(directions), "depth": depth, "kinds": list(kinds)}
        return self._ask({"explore": list(starts), **question}).walks

    def interrupt(self) -> None:
        """Kill the worker, so that the current question fails. May be called from another
        thread."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """End the process, if there is one."""
        process = self._process
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):  # buffered data can't be written to a dead process
                cast("IO[bytes]", stream).close()
        process.wait()

    def _list_files(self) -> tuple[dict[str, list[str]], int, int]:
        """Return the paths of the files by their blobs, the number of source files that are left
        out, and that of submodules. Symbolic links' targets are listed themselves."""
        blobs: dict[str, str] = {}
        sources = submodules = 0
        for entry in read_tree(self._git, self.commit):
            path = decode_path(entry.path)
            if entry.mode == GITLINK:
                submodules += 1
            elif entry.mode != SYMLINK:
                sources += bool(language_of(path))
                if path.isprintable():
                    blobs[path] = entry.id
        sizes = read_sizes(self._git, blobs.values())
        selected: dict[str, list[str]] = {}
        bytes_left, files_left = self._bounds.total_bytes, self._bounds.files
        for path in sorted(blobs, key=_rank):
            size, is_source = sizes[blobs[path]], bool(language_of(path))
            limit = self._bounds.file_bytes if is_source else self._bounds.text_bytes
            if size <= min(limit, bytes_left) and files_left > 0:
                selected.setdefault(blobs[path], []).append(path)
                bytes_left, files_left = bytes_left - size, files_left - 1
                sources -= is_source
        return selected, sources, submodules

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

    def _ask(
        self,
        first: dict[str, Any],
        blobs: dict[str, list[str]] | None = None,
        question: dict[str, Any] | None = None,
    ) -> _Answer:
        """Send a question, or the limits, all files and then a question, and return the answer."""
        assert self._process is not None
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        timer = threading.Timer(self._bounds.timeout_seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            stdin.write(json.dumps(first).encode() + b"\n")
            for blob, content in read_blobs(self._git, blobs or ()):
                for path in (blobs or {})[blob]:
                    header = json.dumps({"file": path, "size": len(content)})
                    stdin.write(header.encode() + b"\n" + content)
            if question is not None:
                stdin.write(json.dumps(question).encode() + b"\n")
            stdin.flush()
            return _Answer.model_validate_json(stdout.readline(_MAX_ANSWER_BYTES))
        except (OSError, ValueError) as error:  # closed, dead, or no complete answer
            self.close()
            status = self._process.returncode
            logger.warning("the index of %s gave no answer (status %s)", self.commit, status)
            raise IndexUnavailable(
                "the index of the code gave no answer: it ran out of its time or memory, or broke",
                "search with the shell instead",
            ) from error
        finally:
            timer.cancel()


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
        found = index.search(action.terms, action.path or "")
        return render("agent/code_found.md.j2", found=found, path=action.path).strip()

    def explore(action: a.CodeExplore) -> str:
        directions = _BOTH_DIRECTIONS if action.direction == "both" else (action.direction,)
        walks = index.explore(action.start, directions, action.depth, action.edges)
        return render("agent/code_walks.md.j2", walks=walks).strip()

    return {a.CodeSearch: answered(search), a.CodeExplore: answered(explore)}
