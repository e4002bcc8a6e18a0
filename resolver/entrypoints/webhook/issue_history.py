"""The conversations that the server knows: the active runs of this process, and their history.

Comments reach an active run through the first. The second has the runs of a conversation, the pull
requests they opened, and requests to stop. It is a table of the database of the server, so that a
comment finds the last run on any machine.
"""

import hashlib
import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ValidationError
from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from resolver.controller.control import Control, Request
from resolver.entrypoints.webhook.database import ServerDatabase
from resolver.models.run import Command, FrozenModel, Trigger
from resolver.runs.conversation.watch import control_requests

logger = logging.getLogger("resolver.entrypoints.webhook")


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


HISTORY = Table(
    "resolver_issue_history",
    MetaData(),
    Column(
        "position",
        BigInteger().with_variant(Integer(), "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    Column("conversation", String(400), nullable=False, index=True),
    Column("entry", Text, nullable=False),
    Column("identity", String(64), nullable=False, unique=True),
)
"""conversation: OWNER/NAME#NUMBER in lower case. entry: an `IssueHistory` as JSON. identity: digest
that is the same if an entry is recorded a second time."""

MAX_ENTRIES = 10_000
"""Maximum number of entries of a conversation that are read: its newest ones."""

FOLDER = "threads"
"""Folder with the histories of earlier releases, one file for each conversation."""

IMPORTED_FOLDER = "threads.imported"

MAX_FILE_BYTES = 50_000_000
"""Maximum size in bytes of a file of an earlier release."""


class IssueHistory(FrozenModel):
    """One entry of a history: a run that started, the issue that a pull request belongs to, or a
    stop.

    number: the pull request's issue. stop: the request to stop.
    """

    kind: Literal["run", "issue", "stop"]
    run: str = ""
    number: int | None = None
    stop: Trigger | None = None


class IssueHistories:
    """The table of histories, created if it does not exist. Thread-safe.

    url: as returned by `database.parse_database_url`. An entry is durable when the call returns.
    Methods raise DatabaseError if the database can't be used.
    """

    def __init__(self, url: URL) -> None:
        self._database = ServerDatabase(url)
        insert = sqlite.insert if url.get_backend_name() == "sqlite" else postgresql.insert
        self._insertion = insert(HISTORY).on_conflict_do_nothing(index_elements=["identity"])

    def started(self, trigger: Trigger, run: str) -> None:
        """Record that `run` works for the conversation. Repeated calls have no effect."""
        entry = IssueHistory(kind="run", run=run)
        self._append(_conversation(trigger.repository, trigger.subject), [entry])

    def opened(self, trigger: Trigger, pull_request: int) -> None:
        """Record the pull request that a run of the conversation opened."""
        entry = IssueHistory(kind="issue", number=trigger.subject)
        self._append(_conversation(trigger.repository, pull_request), [entry])

    def stopped(self, trigger: Trigger) -> None:
        """Record that everything that was asked for before this request is to stop."""
        stop = trigger.model_copy(update={"snapshot": None})
        entry = IssueHistory(kind="stop", stop=stop)
        self._append(_conversation(trigger.repository, trigger.subject), [entry])

    def runs(self, trigger: Trigger) -> list[str]:
        """Return the ids of the conversation's runs, oldest first."""
        entries = self._read(_conversation(trigger.repository, trigger.subject))
        return [entry.run for entry in entries if entry.kind == "run"]

    def issue_of(self, repository: str, pull_request: int) -> int | None:
        """Return the issue that a pull request of Resolver's came from; None if it is unknown."""
        return _last_issue(self._read(_conversation(repository, pull_request)))

    def stop_after(self, trigger: Trigger) -> str | None:
        """Return the login of a person who sent a stop after this request; None if nobody did."""
        for entry in self._read(_conversation(trigger.repository, trigger.subject)):
            if entry.stop is not None and entry.stop.came_after(trigger):
                return entry.stop.actor.login
        return None

    def import_files(self, data_folder: Path) -> int:
        """Import the histories that an earlier release kept as files in the data folder, and return
        their number.

        The folder is renamed afterwards, so that this happens once. It has no effect on entries
        that are in the table already. A line that a crash left incomplete is skipped.
        """
        folder = data_folder / FOLDER
        files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else []
        for file in files:
            # `owner~name~number.jsonl`; neither part of a repository's name can contain a tilde
            owner, _, rest = file.stem.partition("~")
            name, _, number = rest.rpartition("~")
            self._append(f"{owner}/{name}#{number}", _read_file(file))
        if files:
            folder.rename(data_folder / IMPORTED_FOLDER)
            logger.info("the histories of %d conversations were imported", len(files))
        return len(files)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def _append(self, conversation: str, entries: Iterable[IssueHistory]) -> None:
        with self._database.writing() as connection:
            issue = _last_issue(_read_rows(connection, conversation))
            for entry in entries:
                data = entry.model_dump_json(exclude_none=True)
                if entry.kind == "issue":
                    if entry.number == issue:
                        continue
                    # the issue may change and change back, so an equal entry may be a new one
                    identity, issue = f"{conversation} {issue} {data}", entry.number
                else:
                    identity = f"{conversation} {data}"
                digest = hashlib.sha256(identity.encode()).hexdigest()
                row = {"conversation": conversation, "entry": data, "identity": digest}
                connection.execute(self._insertion, row)

    def _read(self, conversation: str) -> list[IssueHistory]:
        with self._database.reading() as connection:
            return _read_rows(connection, conversation)


def _conversation(repository: str, number: int | None) -> str:
    return f"{repository.lower()}#{number}"


def _last_issue(entries: Iterable[IssueHistory]) -> int | None:
    issues = [entry.number for entry in entries if entry.kind == "issue"]
    return issues[-1] if issues else None


def _read_rows(connection: Connection, conversation: str) -> list[IssueHistory]:
    """Return the newest entries of a conversation, oldest first."""
    table = HISTORY.c
    query = select(table.entry).where(table.conversation == conversation)
    newest = connection.scalars(query.order_by(table.position.desc()).limit(MAX_ENTRIES)).all()
    return list(_parse(reversed(newest)))


def _read_file(file: Path) -> list[IssueHistory]:
    """Return the entries of a file of an earlier release."""
    try:
        with open(file, "rb") as opened:
            return list(_parse(opened.read(MAX_FILE_BYTES).splitlines()))
    except OSError as error:
        logger.error("the history %s can't be imported: %s", file, error.strerror)
        return []


def _parse(lines: Iterable[bytes | str]) -> Iterator[IssueHistory]:
    """Yield the entries of the lines that can be read."""
    for line in lines:
        try:
            if line.strip():
                yield IssueHistory.model_validate_json(line)
        except ValidationError:
            continue
