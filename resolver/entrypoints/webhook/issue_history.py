"""The conversations that the server knows: the active runs of this process, and their history.

Comments reach an active run through the first. The second has the runs of a conversation, the pull
requests they opened, and requests to stop. There is one small file for each conversation, so that a
comment finds the last run.
"""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from resolver.controller.control import Control, Request
from resolver.models.run import Command, FrozenModel, Trigger
from resolver.runs.conversation.watch import control_requests


@dataclass
class ActiveRun:
    """One active run. trigger: started it. commands: were sent to it, with their requests."""

    trigger: Trigger
    control: Control
    commands: list[tuple[Trigger, list[Request]]] = field(default_factory=list)


class ActiveRuns:
    """The active runs, at most one for each conversation, because there is only one for each
    repository. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[tuple[str, int | None], ActiveRun] = {}

    def enter(self, trigger: Trigger, control: Control) -> None:
        """Register the run, so that comments reach it."""
        with self._lock:
            self._running[_key(trigger)] = ActiveRun(trigger, control)

    def leave(self, trigger: Trigger) -> list[Trigger]:
        """Remove the run. Return the commands that asked for more work and came too late for it:
        they are to be executed as new runs."""
        with self._lock:
            running = self._running.pop(_key(trigger), None)
        if running is None:
            return []
        unread = []
        while (request := running.control.take()) is not None:
            unread.append(request)
        return [
            command
            for command, sent in running.commands
            if command.command in {Command.CONTINUE, Command.APPROVE, Command.DENY}
            # Identity, not equality: two people may have sent equal requests. "continue" ends with
            # a Resume, which does not count on its own.
            and any(sent_request is r for sent_request in (sent[:-1] or sent) for r in unread)
        ]

    def started_by(self, command: Trigger) -> Trigger | None:
        """Return the trigger of the active run that a comment can be addressed to, which is older
        than the comment; None if there is none."""
        with self._lock:
            running = self._running.get(_key(command))
        trigger = running.trigger if running else None
        return trigger if trigger is not None and command.came_after(trigger) else None

    def steer(self, command: Trigger) -> bool:
        """Send the command to the active run. Return False if there is none (any more)."""
        with self._lock:
            running = self._running.get(_key(command))
            if running is None or not command.came_after(running.trigger):
                return False
            if any(earlier.key == command.key for earlier, _ in running.commands):
                return True
            sent = control_requests(command)
            running.commands.append((command, sent))
            for request in sent:
                running.control.send(request)
        return True


def _key(trigger: Trigger) -> tuple[str, int | None]:
    return trigger.repository.lower(), trigger.subject


FOLDER = "threads"


class IssueHistory(FrozenModel):
    """One line of a history: a run that started, the issue that a pull request belongs to, or a
    stop.

    number: the pull request's issue. stop: the request to stop.
    """

    kind: Literal["run", "issue", "stop"]
    run: str = ""
    number: int | None = None
    stop: Trigger | None = None


class IssueHistories:
    """The history files in the server's data folder. Thread-safe.

    A line is on disk when the call returns. A line that a crash left incomplete is skipped.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self._lock = threading.Lock()

    def started(self, trigger: Trigger, run: str) -> None:
        """Record that `run` works for the conversation. Repeated calls have no effect."""
        if run not in self.runs(trigger):
            self._append(trigger.repository, trigger.subject, IssueHistory(kind="run", run=run))

    def opened(self, trigger: Trigger, pull_request: int) -> None:
        """Record the pull request that a run of the conversation opened."""
        if self.issue_of(trigger.repository, pull_request) != trigger.subject:
            entry = IssueHistory(kind="issue", number=trigger.subject)
            self._append(trigger.repository, pull_request, entry)

    def stopped(self, trigger: Trigger) -> None:
        """Record that everything that was asked for before this request is to stop."""
        stop = trigger.model_copy(update={"snapshot": None})
        self._append(trigger.repository, trigger.subject, IssueHistory(kind="stop", stop=stop))

    def runs(self, trigger: Trigger) -> list[str]:
        """Return the ids of the conversation's runs, oldest first."""
        entries = self._read(trigger.repository, trigger.subject)
        return [entry.run for entry in entries if entry.kind == "run"]

    def issue_of(self, repository: str, pull_request: int) -> int | None:
        """Return the issue that a pull request of Resolver's came from; None if it is unknown."""
        entries = self._read(repository, pull_request)
        issues = [entry.number for entry in entries if entry.kind == "issue"]
        return issues[-1] if issues else None

    def stop_after(self, trigger: Trigger) -> str | None:
        """Return the login of a person who sent a stop after this request; None if nobody did."""
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
                # the leading line break separates this line from an incomplete one before it
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
