"""The table of requests, and the queries of it that are written in SQL."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, String, Table, Text, text

from resolver.entrypoints.webhook.request_queue import NewRequest, RequestState, priority_of
from resolver.models.run import Trigger
from resolver.runs.common import run_id
from resolver.storage.schema import TABLES

REQUESTS = Table(
    "resolver_requests",
    TABLES,
    Column(
        "position",
        BigInteger().with_variant(Integer(), "sqlite"),
        primary_key=True,
        autoincrement=True,
    ),
    Column("id", String(300), nullable=False, unique=True),
    Column("kind", String(10), nullable=False),
    Column("state", String(10), nullable=False),
    Column("repository", Text, nullable=False),
    Column("number", BigInteger),
    Column("subject", BigInteger),
    Column("key", Text, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("not_before", Float, nullable=False, default=0.0),
    Column("acknowledged", Boolean, nullable=False, default=False),
    Column("claim", Integer, nullable=False, default=0),
    Column("executor", String(36), nullable=False, default=""),
    Column("begun", Boolean, nullable=False, default=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("progress", Integer, nullable=False, default=0),
    Column("crashes", Integer, nullable=False, default=0),
    Column("outages", Integer, nullable=False, default=0),
    Column("outage_began", Float, nullable=False, default=0.0),
    Column("finished_at", Float, nullable=False, default=0.0),
    Column("priority", Integer, nullable=False, default=0),
    Column("actor", Text, nullable=False, default=""),
    Index("resolver_requests_next", "state", "kind", "repository", "priority", "position"),
    Index("resolver_requests_oldest", "state", "kind", "position"),
    Index("resolver_requests_due", "state", "not_before"),
    Index("resolver_requests_acknowledged", "state", "kind", "acknowledged", "position"),
    Index("resolver_requests_thread", "repository", "subject", "state"),
    sqlite_autoincrement=True,
)
"""Columns: key: of the trigger. acknowledged: True if the request of a waiting run has got a
reaction. executor: id of the executor that holds the newest claim; "" if there was none. begun:
True if the work of the claim has started. attempts: how often work has started. progress: of the
run at the last crash; crashes: of the server since the run last made progress. trigger: as JSON; ""
once the request is done. finished_at: 0 until then. priority: a `RequestPriority`. actor: login of
the account that asked, in lower case. Times are seconds since 1970."""


def row_of_request(request: NewRequest) -> dict[str, Any]:
    """Return the columns of a new request."""
    trigger = request.trigger
    return {
        "id": request.id,
        "kind": request.kind.value,
        "repository": trigger.repository.lower(),
        "number": trigger.number,
        "subject": trigger.subject,
        "key": trigger.key,
        "trigger": trigger.model_dump_json(),
        "state": RequestState.WAITING.value,
        "priority": priority_of(trigger).value,
        "actor": trigger.actor.login.lower(),
    }


def run_of_request(trigger: str) -> str:
    """Return the run of a request. trigger: its JSON in the table; "" once the request is done."""
    if not trigger:
        return ""
    parsed = Trigger.model_validate_json(trigger)
    return run_id(parsed.key, parsed.at)


_LANES = f"""lanes(repository) AS (
    SELECT min(repository) FROM {REQUESTS.name} WHERE state = 'waiting' AND kind = 'run'
    UNION ALL
    SELECT (
        SELECT min(following.repository) FROM {REQUESTS.name} AS following
        WHERE following.state = 'waiting' AND following.kind = 'run'
        AND following.repository > lanes.repository
    ) FROM lanes WHERE lanes.repository IS NOT NULL
)"""  # noqa: S608 - the table's own name
"""SQL for the repositories with waiting runs. It jumps from one to the next in the index (a "loose
index scan") and so does not read the runs behind the first.

Source: https://wiki.postgresql.org/wiki/Loose_indexscan
"""

_IS_FREE = f"""lanes.repository IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {REQUESTS.name} AS working
        WHERE working.state = 'working' AND working.kind = 'run'
        AND working.repository = lanes.repository
    )"""  # noqa: S608 - the table's own name
"""SQL for the condition that a repository has no active run."""

FIRST_OF_EACH_REPOSITORY = text(f"""
WITH RECURSIVE {_LANES}
SELECT heads.position FROM (
    SELECT (
        SELECT first.priority FROM {REQUESTS.name} AS first
        WHERE first.state = 'waiting' AND first.kind = 'run'
        AND first.repository = lanes.repository
        ORDER BY first.priority, first.position LIMIT 1
    ) AS priority, (
        SELECT first.position FROM {REQUESTS.name} AS first
        WHERE first.state = 'waiting' AND first.kind = 'run'
        AND first.repository = lanes.repository
        ORDER BY first.priority, first.position LIMIT 1
    ) AS position
    FROM lanes WHERE {_IS_FREE}
) AS heads
ORDER BY heads.priority, heads.position
LIMIT :limit
""")  # noqa: S608 - the table's own name
"""Selects the positions of the runs that can start: the first one of each repository without an
active run. The priority comes before the position."""

FIRST_WITHIN_LIMITS = text(f"""
WITH RECURSIVE {_LANES},
people AS (
    SELECT active.actor AS actor, count(*) AS runs FROM {REQUESTS.name} AS active
    WHERE active.state = 'working' AND active.kind = 'run' GROUP BY 1
),
firsts AS (
    SELECT (
        SELECT first.position FROM {REQUESTS.name} AS first
        WHERE first.state = 'waiting' AND first.kind = 'run'
        AND first.repository = lanes.repository AND first.actor NOT IN (
            SELECT people.actor FROM people WHERE people.runs >= :active_limit
        )
        ORDER BY first.priority, first.position LIMIT 1
    ) AS position
    FROM lanes WHERE {_IS_FREE}
),
heads AS (
    SELECT first.priority, first.position,
        coalesce(people.runs, 0) + row_number() OVER (
            PARTITION BY first.actor ORDER BY first.priority, first.position
        ) AS runs
    FROM firsts JOIN {REQUESTS.name} AS first ON first.position = firsts.position
    LEFT JOIN people ON people.actor = first.actor
)
SELECT heads.position FROM heads WHERE heads.runs <= :active_limit
ORDER BY heads.priority, heads.position
LIMIT :limit
""")  # noqa: S608 - the table's own name
"""Like `FIRST_OF_EACH_REPOSITORY`, without the runs of accounts that have `active_limit` active
ones: those behind them go first. It reads the waiting runs of these accounts."""

ALL_REPOSITORIES = text(f"""
WITH RECURSIVE known(repository) AS (
    SELECT min(repository) FROM {REQUESTS.name}
    UNION ALL
    SELECT (
        SELECT min(following.repository) FROM {REQUESTS.name} AS following
        WHERE following.repository > known.repository
    ) FROM known WHERE known.repository IS NOT NULL
)
SELECT repository FROM known WHERE repository IS NOT NULL LIMIT :limit
""")  # noqa: S608 - the table's own name
