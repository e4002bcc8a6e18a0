"""The DBOS workflows in which a process executes its claimed requests.

Only processes that execute requests import DBOS, connect it to the database, and have its threads.

Source: https://docs.dbos.dev/python/reference/contexts
"""

import logging
from collections.abc import Callable

import dbos
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError

from resolver import __version__
from resolver.entrypoints.webhook.dbos_log import DbosLogFilter
from resolver.errors import UsageError
from resolver.storage.database import DatabaseError, first_line

ExecuteClaim = Callable[[str, int], None]
"""Takes the id of a request and the number of its claim."""


class RequestWorkflows:
    """Owns the DBOS instance of the process.

    url: as returned by `database.parse_database_url`. executor: id of this process.
    """

    def __init__(self, url: URL, executor: str, execute_claim: ExecuteClaim) -> None:
        self._url = url
        # DBOS adds its own handler to a logger without one, and that handler would not redact
        # secrets.
        logging.getLogger("dbos").addHandler(logging.NullHandler())
        logging.getLogger("dbos").addFilter(DbosLogFilter())
        config: dbos.DBOSConfig = {
            "name": "resolver",
            "system_database_url": url.render_as_string(hide_password=False),
            "executor_id": executor,
            "application_version": __version__,
            "log_level": "CRITICAL",  # a failed launch is reported by `launch`
        }
        dbos.DBOS(config=config)

        # The work is a DBOS step, so that its completion is recorded. Recovery of an interrupted
        # workflow is harmless: `SqlRequestQueue.start` returns None for a claim that was revoked.
        # `None` disables DBOS's own limit of recoveries, since the queue counts crashes itself.
        @dbos.DBOS.step(name="process")
        def processed(id: str, claim: int) -> None:
            execute_claim(id, claim)

        @dbos.DBOS.workflow(name="request", max_recovery_attempts=None)
        def request(id: str, claim: int) -> None:
            processed(id, claim)

        self._request = request

    def launch(self) -> None:
        """Start the threads of DBOS. Raises UsageError if the database can't be used."""
        try:
            dbos.DBOS.launch()
        except (SQLAlchemyError, dbos.error.DBOSException, OSError) as error:
            raise UsageError(
                f"the database {self._url} can't be used: {first_line(error)}",
                "check RESOLVER_DATABASE_URL, and that the database runs",
            ) from error
        logging.getLogger("dbos").setLevel(logging.WARNING)

    def start(self, id: str, claim: int) -> None:
        """Start a workflow for a claimed request in this process. Raises DatabaseError."""
        try:
            # The claim is part of the workflow's id: DBOS executes an id only once, and a request
            # that is claimed again must be executed again.
            with dbos.SetWorkflowID(f"{id}#{claim}"):
                dbos.DBOS.start_workflow(self._request, id, claim)
        except (SQLAlchemyError, dbos.error.DBOSException) as error:
            raise DatabaseError(str(error) or type(error).__name__) from error
