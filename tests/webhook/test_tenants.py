"""Tests that nothing stored for one repository is shown or charged to a similarly named one."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestKind, RequestQueue
from resolver.github.events.quota_ledger import QuotaLedger
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import ServerDatabase, parse_database_url
from resolver.storage.quota_table import QuotaTable
from resolver.storage.run_index import RunIndex
from tests.github.events.ledgers import ended

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SIMILAR = (
    ("octo/calc", 1), ("octo/calc", 11), ("octo/calc-1", 1), ("octo-calc/1", 1), ("octo/calc.1", 1),
    ("octo_calc/1", 1), ("octo/calc%", 1),
)  # fmt: skip
"""Conversations whose keys could be taken for those of another one."""


def request(repository: str, number: int, command: Command = Command.FIX) -> Trigger:
    return Trigger(
        key=f"{repository}#{number}:{command}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=repository,
        number=number,
        actor=Actor(login="mona"),
        command=command,
        at=NOW.replace(second=5 if command is Command.STOP else 0),
    )


@pytest.mark.attack
def test_what_is_stored_for_one_repository_is_not_shown_or_charged_to_another(
    tmp_path: Path,
) -> None:
    """Repositories with similar names have runs, stops and costs: none of them gets anything of
    another."""
    database = ServerDatabase(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    queue, table, index = RequestQueue(database), QuotaTable(database), RunIndex(database)
    for place in SIMILAR:
        assert queue.add(QueuedRequest("d-1", RequestKind.RUN, request(*place)))
    for repository, number in SIMILAR:
        index.put(
            f"{repository}#{number}", request(repository, number), {"pull_number": 90 + number}
        )
    for repository, number in SIMILAR:
        [found] = queue.unfinished_runs(repository, number)
        assert found.trigger == request(repository, number)
        assert index.runs_of(repository, number) == [f"{repository}#{number}"]
        assert index.issue_of(repository, 90 + number) == number
        queue.leave_command([found], request(repository, number, Command.STOP))
    for repository, number in SIMILAR:
        [found] = queue.unfinished_runs(repository, number)
        [taken] = queue.take_commands(found.first_id)
        assert (taken.repository, taken.number) == (repository, number)
    table.change("octo/calc", NOW, lambda ledger: (ledger.with_run(ended(1, at=NOW)), None))
    charged = {name for name, _ in SIMILAR if table.read(name, NOW) != QuotaLedger()}
    assert charged == {"octo/calc"}
    queue.close()
    database.close()
