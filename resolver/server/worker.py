"""The durable queue behind the webhook: one DBOS workflow a delivery, one run a repository.

The delivery's id is the workflow's id, so a redelivery finds the earlier one and does nothing.
After a kill the same executor's unfinished workflows go on when the server starts again.
Source: https://docs.dbos.dev/python/reference/contexts
"""

import hashlib
import logging
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID
from dbos import error as dbos_error
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from resolver.errors import UsageError
from resolver.model import Trigger, TriggerKind
from resolver.thread.steering import STARTS

logger = logging.getLogger("resolver.server")

QUEUE = "runs"
COMMANDS = "commands"
"""Comments for a run at work don't wait behind it."""

UNDECIDED = "undecided"
"""Requests of which it is not known yet whether they are for us."""

COMMANDS_AT_A_TIME = 4
UNDECIDED_AT_A_TIME = 8
"""They do nothing but wait for GitHub."""

EXECUTOR = "resolver"
"""One server process, one executor: what it left unfinished is its own to go on with."""

STORED_FORM = "1"
"""What DBOS calls the application's version: it takes up stored work of the same one only. A new
release must go on with the deliveries of the last, so this changes with their stored form alone."""

POLL_SECONDS = 0.25
"""Between two looks at the queue: the person who asked waits for a sign."""

LEFT = "left"
"""Field of a run's result: triggers, as JSON, that are to be done after it."""

Work = Callable[[Trigger, int], dict[str, Any]]
"""(trigger, attempt from 1) -> what came of it, as JSON. Must be idempotent."""

Announce = Callable[[Trigger, Collection[Trigger]], None]
"""(what a run is for, the runs that wait or are at work). Must be idempotent."""

Obey = Callable[[Trigger, Collection[Trigger]], Trigger | None]
"""(command, the runs that wait or are at work) -> the run that it asks for, if any."""

Ours = Callable[[Trigger, str], bool]
"""(request, login) -> whether that is our own login, however long it takes to know."""


def database(url: str, to_write: bool = True) -> URL:
    """The address of the database; a SQLite file's is made absolute.

    to_write: make the file, and its folder, where they are missing. Raises UsageError when it is
    no address, or the file can't be written.
    """
    advice = "set RESOLVER_DATABASE_URL, like sqlite:///resolver.db or postgresql://HOST/NAME"
    try:
        parsed = make_url(url)
    except (SQLAlchemyError, ValueError):
        raise UsageError("the database's address can't be read", advice) from None
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise UsageError(f"{parsed.drivername} is not a database that can be used", advice)
    if parsed.get_backend_name() != "sqlite":
        return parsed
    if not parsed.database or parsed.database == ":memory:":
        raise UsageError("a database in memory would forget what it was sent", advice)
    file = Path(parsed.database).absolute()
    if not to_write:
        return parsed.set(database=str(file))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # What people wrote in private repositories is in there.
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError as error:
        raise UsageError(
            f"the database {file} can't be written: {error.strerror}", advice
        ) from error
    return parsed.set(database=str(file))


class Worker:
    """Owns the DBOS instance of the process.

    url: as `database` gives it.
    work: does one delivery; called in a thread of DBOS. obey: does one command. announce: says of
        a run that it waits, where it does. ours: decides whether a request is for us.
    concurrency: runs at a time over all repositories.
    """

    def __init__(
        self,
        url: URL,
        work: Work,
        obey: Obey,
        announce: Announce,
        ours: Ours,
        concurrency: int = 2,
    ) -> None:
        self._concurrency = concurrency
        self._url = url
        # DBOS adds a handler of its own where there is none, past the one that redacts.
        logging.getLogger("dbos").addHandler(logging.NullHandler())
        config: DBOSConfig = {
            "name": "resolver",
            "system_database_url": url.render_as_string(hide_password=False),
            "executor_id": EXECUTOR,
            "application_version": STORED_FORM,
            "log_level": "CRITICAL",  # a failing launch is told by `start`
        }
        DBOS(config=config)

        @DBOS.step(name="resolve")
        def resolve(trigger: str) -> dict[str, Any]:
            return work(Trigger.model_validate_json(trigger), _attempt())

        @DBOS.workflow(name="delivery", max_recovery_attempts=None)
        def deliver(trigger: str) -> dict[str, Any]:
            done = resolve(trigger)
            for number, left in enumerate(done.get(LEFT, [])):
                self._enqueue_run(f"{DBOS.workflow_id}.{number}", left)
            return done

        @DBOS.step(name="obey")
        def obeyed(trigger: str) -> str | None:
            left = obey(Trigger.model_validate_json(trigger), self._unfinished())
            return left.model_dump_json() if left else None

        @DBOS.workflow(name="command", max_recovery_attempts=None)
        def command(trigger: str) -> bool:
            left = obeyed(trigger)
            if left is not None:
                self._enqueue_run(f"{DBOS.workflow_id}.run", left)
            return left is None

        @DBOS.step(name="announced")
        def announced(trigger: str) -> None:
            announce(Trigger.model_validate_json(trigger), self._unfinished())

        @DBOS.workflow(name="announce", max_recovery_attempts=None)
        def announcing(trigger: str) -> None:
            announced(trigger)

        self._deliver, self._command, self._announce = deliver, command, announcing
        self._undecided = self._deciding(ours)

    def _deciding(self, ours: Ours) -> Callable[[str, str, str], bool]:
        """The workflow for what may not be for us; (id of the run's, request, login)."""

        @DBOS.step(name="ours")
        def decided(trigger: str, login: str) -> bool:
            return ours(Trigger.model_validate_json(trigger), login)

        @DBOS.workflow(name="undecided", max_recovery_attempts=None)
        def undecided(id: str, trigger: str, login: str) -> bool:
            for_us = decided(trigger, login)
            if for_us:
                self._enqueue_run(id, trigger)
            return for_us

        return undecided

    def start(self) -> None:
        """Go on with what an earlier process left, and take new deliveries.

        Raises UsageError when the database can't be used.
        """
        try:
            DBOS.launch()
            DBOS.register_queue(
                QUEUE,
                worker_concurrency=self._concurrency,
                partition_concurrency=1,
                polling_interval_sec=POLL_SECONDS,
            )
            DBOS.register_queue(
                COMMANDS,
                worker_concurrency=COMMANDS_AT_A_TIME,
                polling_interval_sec=POLL_SECONDS,
            )
            DBOS.register_queue(
                UNDECIDED,
                worker_concurrency=UNDECIDED_AT_A_TIME,
                polling_interval_sec=POLL_SECONDS,
            )
        except (SQLAlchemyError, dbos_error.DBOSException, OSError) as error:
            reason = str(getattr(error, "orig", None) or error).strip().split("\n", 1)[0]
            raise UsageError(
                f"the database {self._url} can't be used: {reason}",
                "check RESOLVER_DATABASE_URL, and that the database runs",
            ) from error
        logging.getLogger("dbos").setLevel(logging.WARNING)

    def enqueue(self, delivery: str, trigger: Trigger) -> None:
        """Store the delivery. Durable when it returns; a known delivery id changes nothing, and
        neither does another event of what is one request by its nature."""
        id = _id_of_request(trigger) or delivery
        if trigger.command in STARTS:
            self._enqueue_run(id, trigger.model_dump_json())
        else:
            with SetWorkflowID(id):
                DBOS.enqueue_workflow(COMMANDS, self._command, trigger.model_dump_json())

    def enqueue_undecided(self, delivery: str, trigger: Trigger, login: str) -> None:
        """As `enqueue`, of a request to start work that is for us if the login is ours."""
        with SetWorkflowID(f"{delivery}.ours"):
            DBOS.enqueue_workflow(
                UNDECIDED, self._undecided, delivery, trigger.model_dump_json(), login
            )

    def _enqueue_run(self, id: str, trigger: str) -> None:
        repository = Trigger.model_validate_json(trigger).repository.lower()
        with SetWorkflowID(id), SetEnqueueOptions(queue_partition_key=repository):
            DBOS.enqueue_workflow(QUEUE, self._deliver, trigger)
        with SetWorkflowID(f"{id}.waits"):
            DBOS.enqueue_workflow(COMMANDS, self._announce, trigger)

    def _unfinished(self) -> list[Trigger]:
        """What the runs are for that wait, or are at work."""
        listed = DBOS.list_workflows(
            status=["ENQUEUED", "PENDING"], name="delivery", load_output=False
        )
        inputs = [status.input["args"][0] for status in listed if status.input]
        return [Trigger.model_validate_json(each) for each in inputs]


def _id_of_request(trigger: Trigger) -> str:
    """The same for all events of a submitted review, and of the checks of one commit; "" for what
    has one event only. Whoever wants one of those done again asks again."""
    if trigger.review_id is None and trigger.kind is not TriggerKind.CHECK_FAILED:
        return ""
    named = f"{trigger.repository.lower()} {trigger.key}"
    return f"request-{hashlib.sha256(named.encode()).hexdigest()[:40]}"


def _attempt() -> int:
    """How often the workflow around the running step was started, this time included."""
    workflow = DBOS.workflow_id
    status = DBOS.get_workflow_status(workflow) if workflow else None
    return (status.recovery_attempts or 1) if status else 1
