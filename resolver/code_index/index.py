"""Builds the index of one commit, and answers the actions of an agent from it.

The files are read from the host's own bare clone, never from a working tree, and none of them is
executed. They are parsed in a separate, confined process (`resolver.code_index.worker`), because a
parser written in C may have faults that a hostile file can exploit.
"""

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from resolver.code_index.answers import SourceFile
from resolver.code_index.codebase import CodeBase
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

MAX_ANSWER_CHARACTERS = 24_000
"""Maximum number of characters of one answer."""

_WORKER_CODE = "from resolver.code_index.worker import run_worker; run_worker()"
_PASSED_VARIABLES = ("LD_LIBRARY_PATH",)
"""Environment variables that a Python outside of the system's folders may need to start; none of
them is a secret."""

_THIRD_PARTY_FOLDERS = frozenset(
    {"node_modules", "vendor", "third_party", "dist", "build", "target"}
)
"""Names of folders with third-party or generated code, whose files come last."""

_SOURCE_FILE = TypeAdapter(SourceFile)
_BOTH_DIRECTIONS = ("upstream", "downstream")

ActionHandlers = dict[type[ActionBase], Callable[[Any], ObservationBase]]


@dataclass(frozen=True)
class IndexBounds:
    """Limits of one index.

    file_bytes: maximum size of a file. total_bytes, files: maximum size and number of all files.
    file_seconds, seconds: processor time for parsing one file, and all of them.
    timeout_seconds: elapsed time after which parsing is given up.
    memory, output: bytes of address space of the process that parses, and of what it writes.
    facts: definitions and references that are kept in memory, about a kilobyte each.
    """

    file_bytes: int = 1024 * 1024
    total_bytes: int = 64 * 1024 * 1024
    files: int = 20_000
    file_seconds: float = 2.0
    seconds: int = 60
    timeout_seconds: float = 600.0
    memory: int = 1_500_000_000
    output: int = 64 * 1024 * 1024
    facts: int = 500_000


class CodeIndex:
    """The index of one commit, built at the first question.

    git: works in the bare clone. commit: the commit whose files are indexed.
    """

    def __init__(self, git: HostGit, commit: str, bounds: IndexBounds | None = None) -> None:
        self._git = git
        self.commit = commit
        self._bounds = bounds or IndexBounds()
        self._process: subprocess.Popen[bytes] | None = None
        self._codebase: CodeBase | None = None
        self.left_out = 0
        """Number of source files that are missing, completely or in part."""

    def build(self) -> CodeBase:
        """Return the code, and index it if that has not been done yet.

        Raises ResolverError if the commit can't be read or `interrupt` was called.
        """
        if self._codebase is None:
            paths = self._select_files()
            blobs = dict(read_blobs(self._git, paths.values()))
            texts = {path: blobs[id] for path, id in paths.items() if b"\0" not in blobs[id][:8000]}
            parsed = self._parse({path: text for path, text in texts.items() if language_of(path)})
            self.left_out += sum(not source.complete for source in parsed.values())
            self._codebase = CodeBase(texts, parsed)
            logger.info("indexed %d files of %s", len(texts), self.commit)
        return self._codebase

    def interrupt(self) -> None:
        """End the parsing, so that the current question fails. May be called from another
        thread."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def _select_files(self) -> dict[str, str]:
        """Return the blobs of the files within the limits by path, the most important first."""
        entries = {
            decode_path(entry.path): entry.id
            for entry in read_tree(self._git, self.commit)
            if entry.mode not in {GITLINK, SYMLINK}
        }
        sizes = read_sizes(self._git, entries.values())
        selected: dict[str, str] = {}
        bytes_left = self._bounds.total_bytes
        for path in sorted(filter(str.isprintable, entries), key=_rank):
            size = sizes[entries[path]]
            if size <= min(self._bounds.file_bytes, bytes_left) and (
                len(selected) < self._bounds.files
            ):
                selected[path] = entries[path]
                bytes_left -= size
        self.left_out = sum(bool(language_of(path)) for path in entries.keys() - selected.keys())
        return selected

    def _parse(self, texts: Mapping[str, bytes]) -> dict[str, SourceFile]:
        """Return the facts about each file. If the process ends early, because of a limit or a
        fault, or there are too many facts, those of the last files are empty."""
        environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        path = [folder for folder in sys.path if os.path.isabs(folder)]  # noqa: PTH117
        code = f"import sys; sys.path[:] = {path!r}; {_WORKER_CODE}"
        limits = ("memory", "output", "file_seconds", "seconds")
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output:
            source.write(_line({name: getattr(self._bounds, name) for name in limits}))
            for name, text in texts.items():
                source.write(_line({"language": language_of(name), "size": len(text)}) + text)
            source.seek(0)
            # -I ignores PYTHON* variables and the current folder, so that no file of a repository
            # is imported.
            self._process = process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", "-c", code],
                stdin=source,
                stdout=output,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
            try:
                status = process.wait(self._bounds.timeout_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                status = process.wait()
            if self._process is None:
                raise WorkspaceError("the index of the code was interrupted")
            if status != 0:
                logger.warning("the indexer of %s ended early (status %d)", self.commit, status)
            self._process = None
            output.seek(0)
            facts = dict.fromkeys(texts, SourceFile(complete=False))
            remaining = self._bounds.facts
            with suppress(ValueError):  # the last line may be incomplete
                for name, line in zip(texts, output, strict=False):
                    found = _SOURCE_FILE.validate_json(line)
                    remaining -= len(found.definitions) + len(found.references)
                    if remaining < 0:
                        break
                    facts[name] = found
        return facts


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def _rank(path: str) -> tuple[bool, bool, int, str]:
    """Return a sort key: source files before other texts, the project's own before third-party
    files, and top-level files first."""
    folders = path.split("/")[:-1]
    return not language_of(path), not _THIRD_PARTY_FOLDERS.isdisjoint(folders), len(folders), path


def index_action_handlers(index: CodeIndex) -> ActionHandlers:
    """Return the handlers of the actions that ask the index. They never raise ResolverError: a
    failure is an observation."""

    def answered(handler: Callable[[Any], str]) -> Callable[[Any], ObservationBase]:
        def answer(action: Any) -> ObservationBase:
            try:
                text = handler(action)
            except ResolverError as error:
                parts = (error.what, error.next_step)
                message = ". ".join(part[:1].upper() + part[1:] for part in parts if part)
                return ErrorObservation(content=message, code="index")
            note = render(
                "agent/code_note.md.j2", commit=index.commit, left_out=index.left_out
            ).strip()
            content = f"{truncate_middle(text, MAX_ANSWER_CHARACTERS)}\n\n{note}"
            return CodeResult(content=content, commit=index.commit, left_out=index.left_out)

        return answer

    def search(action: a.CodeSearch) -> str:
        found = index.build().search(action.terms, action.path or "")
        return render("agent/code_found.md.j2", found=found, path=action.path).strip()

    def explore(action: a.CodeExplore) -> str:
        directions = _BOTH_DIRECTIONS if action.direction == "both" else (action.direction,)
        walks = index.build().explore(action.start, directions, action.depth, action.edges)
        return render("agent/code_walks.md.j2", walks=walks).strip()

    return {a.CodeSearch: answered(search), a.CodeExplore: answered(explore)}
