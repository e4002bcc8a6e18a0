"""What the server remembers of each thread: which runs worked on it, which pull request came of
them, and when somebody said stop. One small file a thread, so that a comment finds the last run.
"""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from resolver.models.run import FrozenModel, Trigger

FOLDER = "threads"


class IssueHistory(FrozenModel):
    """One line: a run that started, a pull request that belongs to an issue, or a stop.

    number: the pull request's issue. stop: the request that said so.
    """

    kind: Literal["run", "issue", "stop"]
    run: str = ""
    number: int | None = None
    stop: Trigger | None = None


class IssueHistories:
    """The files below the server's data folder; safe to use from several threads.

    A line is on disk before the call returns. One that a kill has torn is passed over.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._lock = threading.Lock()

    def started(self, trigger: Trigger, run: str) -> None:
        """Note that `run` works on the thread. Again is a no-op."""
        if run not in self.runs(trigger):
            self._append(trigger.repository, trigger.subject, IssueHistory(kind="run", run=run))

    def opened(self, trigger: Trigger, pull_request: int) -> None:
        """Note that a pull request came of it."""
        if self.issue_of(trigger.repository, pull_request) != trigger.subject:
            entry = IssueHistory(kind="issue", number=trigger.subject)
            self._append(trigger.repository, pull_request, entry)

    def stopped(self, trigger: Trigger) -> None:
        """Note that everything asked for before this request is to stop."""
        stop = trigger.model_copy(update={"snapshot": None})
        self._append(trigger.repository, trigger.subject, IssueHistory(kind="stop", stop=stop))

    def runs(self, trigger: Trigger) -> list[str]:
        """Ids of the thread's runs, oldest first."""
        entries = self._read(trigger.repository, trigger.subject)
        return [entry.run for entry in entries if entry.kind == "run"]

    def issue_of(self, repository: str, pull_request: int) -> int | None:
        """The issue that a pull request of ours came from."""
        entries = self._read(repository, pull_request)
        found = [entry.number for entry in entries if entry.kind == "issue"]
        return found[-1] if found else None

    def stop_after(self, trigger: Trigger) -> str | None:
        """Login of who said stop after this request was made, None when nobody did."""
        for entry in self._read(trigger.repository, trigger.subject):
            if entry.stop is not None and entry.stop.came_after(trigger):
                return entry.stop.actor.login
        return None

    def _file(self, repository: str, number: int | None) -> Path:
        owner, _, name = repository.lower().partition("/")
        return self._folder / f"{owner}~{name}~{number}.jsonl"

    def _append(self, repository: str, number: int | None, entry: IssueHistory) -> None:
        file = self._file(repository, number)
        data = entry.model_dump_json(exclude_none=True).encode()
        with self._lock:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(file, "ab", buffering=0) as opened:
                # a torn line before it must not take this one along
                opened.write(b"\n" + data + b"\n")
                os.fsync(opened.fileno())

    def _read(self, repository: str, number: int | None) -> Iterator[IssueHistory]:
        try:
            lines = self._file(repository, number).read_bytes().splitlines()
        except (FileNotFoundError, NotADirectoryError):
            return
        for line in lines:
            try:
                data: Any = json.loads(line) if line.strip() else None
                if data is not None:
                    yield IssueHistory.model_validate(data)
            except (ValueError, ValidationError):
                continue
