"""The durable queue behind the webhook: one DBOS workflow a delivery, one run a repository.

The delivery's id is the workflow's id, so a redelivery finds the earlier one and does nothing.
After a kill the same executor's unfinished workflows go on when the server starts again.
Source: https://docs.dbos.dev/python/reference/contexts
"""

import logging
from collections.abc import Callable
from typing import Any

from dbos import DBOS, DBOSConfig, SetEnqueueOptions, SetWorkflowID

from resolver import __version__

logger = logging.getLogger("resolver.server")

QUEUE = "runs"
EXECUTOR = "resolver"
"""One server process, one executor: what it left unfinished is its own to go on with."""

Work = Callable[[str, dict[str, Any]], dict[str, Any]]
"""(event name, payload) -> what came of it, as JSON. Must be idempotent."""


class Worker:
    """Owns the DBOS instance of the process.

    database_url: SQLite or PostgreSQL, as SQLAlchemy writes it.
    work: does one delivery; called in a thread of DBOS.
    concurrency: runs at a time over all repositories.
    """

    def __init__(self, database_url: str, work: Work, concurrency: int = 2) -> None:
        self._concurrency = concurrency
        config: DBOSConfig = {
            "name": "resolver",
            "system_database_url": database_url,
            "executor_id": EXECUTOR,
            "application_version": __version__,
            "log_level": "WARNING",
        }
        DBOS(config=config)

        @DBOS.step(name="resolve")
        def resolve(event: str, payload: dict[str, Any]) -> dict[str, Any]:
            return work(event, payload)

        @DBOS.workflow(name="delivery")
        def deliver(event: str, payload: dict[str, Any]) -> dict[str, Any]:
            return resolve(event, payload)

        self._deliver = deliver

    def start(self) -> None:
        """Go on with what an earlier process left, and take new deliveries."""
        DBOS.launch()
        DBOS.register_queue(QUEUE, worker_concurrency=self._concurrency, partition_concurrency=1)

    def stop(self) -> None:
        """Take no more work; what runs is left for the next start."""
        DBOS.destroy()

    def enqueue(self, delivery: str, event: str, repository: str, payload: dict[str, Any]) -> None:
        """Store the delivery. Durable when it returns; a known delivery id changes nothing."""
        with SetWorkflowID(delivery), SetEnqueueOptions(queue_partition_key=repository):
            DBOS.enqueue_workflow(QUEUE, self._deliver, event, payload)
