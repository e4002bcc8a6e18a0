"""Keeps the outcomes of pull requests up to date, in the server's database.

A repository gets a row when one of Resolver's pull requests is closed there. Its outcomes are then
read from GitHub, and again every day, because later commits show if a merged change has held.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from sqlalchemy import (
    URL,
    Column,
    Float,
    String,
    Table,
    Text,
    select,
    update,
)

from resolver.errors import ResolverError
from resolver.events.stream import Clock, utc_now
from resolver.git.push import PREFIX
from resolver.models.known_failures import OUTAGES
from resolver.models.outcome import PullRequestOutcome
from resolver.storage.database import ServerDatabase, open_database, upsert
from resolver.storage.schema import TABLES

logger = logging.getLogger("resolver.entrypoints.webhook")

REFRESH_INTERVAL = timedelta(days=1)
RETRY_INTERVAL = timedelta(hours=1)

OUTCOME_POLL_SECONDS = 600.0
"""Interval in seconds at which the table is searched for rows that are due."""

OUTCOMES = Table(
    "resolver_outcomes",
    TABLES,
    Column("repository", String(300), primary_key=True),
    Column("due", Float, nullable=False, index=True),
    Column("outcomes", Text, nullable=False),
)
"""due: when the outcomes are to be read again (seconds since 1970). outcomes: a JSON list."""

_LIST = TypeAdapter(tuple[PullRequestOutcome, ...], config=ConfigDict(defer_build=True))

ReadOutcomes = Callable[[str], Sequence[PullRequestOutcome]]
"""Reads the outcomes of a repository from GitHub. Raises ResolverError."""


def repository_of_closed_pull_request(
    event: str, payload: Mapping[str, Any], own_login: str = ""
) -> str:
    """Return the repository if one of Resolver's pull requests was closed or merged, else "".

    own_login: Resolver's login, "" if it is unknown. The branch decides then, since only people
    with write access can push it; what counts is found out when the outcomes are read.
    """
    if event != "pull_request" or payload.get("action") != "closed":
        return ""
    try:
        head = payload["pull_request"]["head"]
        author = payload["pull_request"]["user"]["login"]
        repository = payload["repository"]["full_name"]
        is_own = (
            head["ref"].startswith(PREFIX)
            and head["repo"]["full_name"] == repository
            and (not own_login or author.casefold() == own_login.casefold())
        )
    except (KeyError, TypeError, AttributeError):
        return ""
    return repository if is_own and isinstance(repository, str) else ""


class OutcomeStore:
    """The table of outcomes. Thread-safe.

    database: open, or its URL from `parse_database_url`. Methods raise DatabaseError.
    """

    def __init__(self, database: URL | ServerDatabase) -> None:
        self._database = open_database(database)

    def set_due(self, repository: str, due: datetime) -> None:
        """Set when the outcomes of the repository are to be read again."""
        self._put(repository, {"due": due.timestamp()})

    def due(self, now: datetime) -> list[str]:
        """Return the repositories whose outcomes are to be read, the longest waiting first."""
        query = select(OUTCOMES.c.repository).where(OUTCOMES.c.due <= now.timestamp())
        with self._database.reading() as connection:
            return list(connection.scalars(query.order_by(OUTCOMES.c.due)))

    def take(self, repository: str, now: datetime) -> bool:
        """Postpone outcomes that are due, so that no other process reads them meanwhile. Return
        False if they are not due any more, because another one does."""
        is_due = (OUTCOMES.c.repository == repository, OUTCOMES.c.due <= now.timestamp())
        later = (now + RETRY_INTERVAL).timestamp()
        with self._database.writing() as connection:
            postponed = connection.execute(update(OUTCOMES).where(*is_due).values(due=later))
            return postponed.rowcount == 1

    def put(self, repository: str, outcomes: Sequence[PullRequestOutcome], due: datetime) -> None:
        """Store the outcomes. due: when they are to be read again."""
        text = _LIST.dump_json(tuple(outcomes)).decode()
        self._put(repository, {"due": due.timestamp(), "outcomes": text})

    def _put(self, repository: str, values: dict[str, Any]) -> None:
        new = {"repository": repository.lower(), "outcomes": "[]"}
        with self._database.writing() as connection:
            upsert(connection, OUTCOMES, new | values, values)

    def get(self, repository: str) -> tuple[PullRequestOutcome, ...] | None:
        """Return the outcomes of a repository, newest first; None if there are none.

        repository: in any case of letters.
        """
        query = select(OUTCOMES.c.outcomes).where(OUTCOMES.c.repository == repository.lower())
        with self._database.reading() as connection:
            text = connection.scalar(query)
        try:
            return None if text is None else _LIST.validate_json(text)
        except ValidationError:
            logger.warning("the stored outcomes of %s can't be read", repository)
            return None

    def close(self) -> None:
        """Close all connections."""
        self._database.close()


class OutcomeRefresher:
    """Reads the outcomes that are due, in a thread of its own."""

    def __init__(self, store: OutcomeStore, read: ReadOutcomes, now: Clock = utc_now) -> None:
        self._store, self._read, self._now = store, read, now
        self._wanted = threading.Event()

    def start(self) -> None:
        """Start to read in the background."""
        threading.Thread(target=self._refresh_forever, name="outcomes", daemon=True).start()

    def schedule(self, repository: str) -> None:
        """Let the outcomes of the repository be read as soon as possible, because a pull request
        was closed. This is durable when it returns."""
        self._store.set_due(repository, self._now())
        self._wanted.set()

    def _refresh_forever(self) -> None:
        while True:
            try:
                self.refresh_due()
            except ResolverError as error:
                logger.warning("outcomes could not be stored: %s", error.what)
            self._wanted.wait(OUTCOME_POLL_SECONDS)
            self._wanted.clear()

    def refresh_due(self) -> int:
        """Read the outcomes of the repositories that are due, and return their number.

        Raises DatabaseError.
        """
        count = 0
        for repository in self._store.due(self._now()):
            if not self._store.take(repository, self._now()):
                continue
            count += 1
            try:
                outcomes = self._read(repository)
            except ResolverError as error:
                logger.warning("the outcomes of %s could not be read: %s", repository, error.what)
                # Without access to the repository, it is tried again every day only.
                is_outage = error.cause in OUTAGES
                pause = RETRY_INTERVAL if is_outage else REFRESH_INTERVAL
                self._store.set_due(repository, self._now() + pause)
            else:
                self._store.put(repository, outcomes, self._now() + REFRESH_INTERVAL)
        return count
