"""The table of requests, and the queries of it that are written in SQL."""

from sqlalchemy import BigInteger, Boolean, Column, Float, Index, Integer, String, Table, Text, text

from resolver.entrypoints.webhook.executors import EXECUTORS

REQUESTS = Table(
    "resolver_requests",
    EXECUTORS.metadata,
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
    Column("login", Text, nullable=False),
    Column("not_before", Float, nullable=False, default=0.0),
    Column("announced", Boolean, nullable=False, default=False),
    Column("notice_until", Float, nullable=False, default=0.0, server_default="0"),
    Column("claim", Integer, nullable=False, default=0),
    Column("executor", String(36), nullable=False, default="", server_default=""),
    Column("begun", Boolean, nullable=False, default=False),
    Column("attempts", Integer, nullable=False, default=0),
    Column("progress", Integer, nullable=False, default=0),
    Column("crashes", Integer, nullable=False, default=0),
    Column("outages", Integer, nullable=False, default=0),
    Column("outage_began", Float, nullable=False, default=0.0),
    Column("finished_at", Float, nullable=False, default=0.0, server_default="0"),
    Index("resolver_requests_next", "state", "kind", "repository", "position"),
    Index("resolver_requests_oldest", "state", "kind", "position"),
    Index("resolver_requests_due", "state", "not_before"),
    Index("resolver_requests_announced", "state", "kind", "announced", "position"),
    Index("resolver_requests_thread", "repository", "subject", "state"),
    sqlite_autoincrement=True,
)
"""Columns: key: of the trigger. notice_until: time until which an executor may be writing that the
run waits. executor: id of the executor that holds the newest claim; "" in rows of releases without
executors. begun: True if the work of the claim has started. attempts: how
often work has started. progress: of the run at the last crash; crashes: of the server since the run
last made progress. trigger: as JSON; "" once the request is done. finished_at: 0 in rows of
releases that did not record it. Times are seconds since 1970."""

_OWNER = "rtrim({0}.repository, replace({0}.repository, '/', ''))"
"""SQL for the owner of a repository, with a slash at its end. `rtrim` removes all characters of its
second argument; SQLite and PostgreSQL have no other function for this in common."""

FIRST_OF_EACH_REPOSITORY = text(f"""
WITH RECURSIVE lanes(repository) AS (
    SELECT min(repository) FROM {REQUESTS.name} WHERE state = 'waiting' AND kind = 'run'
    UNION ALL
    SELECT (
        SELECT min(following.repository) FROM {REQUESTS.name} AS following
        WHERE following.state = 'waiting' AND following.kind = 'run'
        AND following.repository > lanes.repository
    ) FROM lanes WHERE lanes.repository IS NOT NULL
)
SELECT heads.position FROM (
    SELECT {_OWNER.format("lanes")} AS owner, (
        SELECT min(first.position) FROM {REQUESTS.name} AS first
        WHERE first.state = 'waiting' AND first.kind = 'run'
        AND first.repository = lanes.repository
    ) AS position
    FROM lanes WHERE lanes.repository IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM {REQUESTS.name} AS working
        WHERE working.state = 'working' AND working.kind = 'run'
        AND working.repository = lanes.repository
    )
) AS heads LEFT JOIN (
    SELECT {_OWNER.format("active")} AS owner, count(*) AS runs FROM {REQUESTS.name} AS active
    WHERE active.state = 'working' AND active.kind = 'run' GROUP BY 1
) AS busy ON busy.owner = heads.owner
ORDER BY coalesce(busy.runs, 0)
    + row_number() OVER (PARTITION BY heads.owner ORDER BY heads.position), heads.position
LIMIT :limit
""")  # noqa: S608 - the table's own name
"""Selects the positions of the runs that can start: the first one of each repository without an
active run. Owners take turns: the run whose owner would then have the fewest active runs comes
first, so that an owner with many busy repositories does not keep the others waiting.

It jumps from one repository to the next in the index (a "loose index scan") and so does not read
the runs behind the first.

Source: https://wiki.postgresql.org/wiki/Loose_indexscan
"""

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
