"""Tests that nothing stored for one repository is shown or charged to a similarly named one."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from resolver.controller.control import Control
from resolver.entrypoints.webhook.active_runs import ActiveRuns
from resolver.entrypoints.webhook.request_queue import QueuedRequest, RequestKind, RequestQueue
from resolver.github.events.quota_ledger import QuotaLedger
from resolver.models.run import Actor, Command, Trigger, TriggerKind
from resolver.storage.database import parse_database_url
from resolver.storage.quota_table import QuotaTable
from resolver.storage.run_index import RunIndex
from tests.github.events.ledgers import ended

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "webhook-canary-7c2e9b4f6a1d8035"

# GitHub's rules for names: https://docs.github.com/en/rest/repos/repos
owners = st.from_regex(r"[a-z](-?[a-z0-9]){0,8}", fullmatch=True)
names = st.from_regex(r"[a-z0-9._-]{1,10}", fullmatch=True).filter(lambda name: name not in "..")
repositories = st.builds("{}/{}".format, owners, names)


def request(
    repository: str, number: int, command: Command = Command.FIX, seconds: int = 0
) -> Trigger:
    return Trigger(
        key=f"{repository}#{number}:{seconds}",
        kind=TriggerKind.ISSUE_COMMENT,
        repository=repository,
        number=number,
        actor=Actor(login="mona"),
        command=command,
        at=NOW.replace(second=seconds),
        comment_id=seconds,
    )


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.attack
@given(repositories, repositories, st.integers(1, 30), st.integers(1, 30))
@example("octo-calc/a", "octo/calc-a", 1, 1)
@example("octo/calc", "octo/calc-1", 11, 1)
@example("octo/calc.1", "octo/calc", 1, 11)
@example("a/b-c", "a-b/c", 1, 1)
def test_files_and_keys_of_one_repository_are_not_those_of_another(
    folder: Path, ours: str, theirs: str, number: int, other: int
) -> None:
    """A repository with a similar name has an issue: it gets neither runs nor stops nor
    pages of another repository."""
    assume(ours != theirs)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        url = parse_database_url(f"sqlite:///{name}/resolver.db")
        index = RunIndex(url)
        index.put("run-1", request(ours, number), {"pull_number": 90})
        for issue in (number, other, 90):
            assert not index.runs_of(theirs, issue)
        assert index.issue_of(theirs, 90) is None
        index.close()
    active = ActiveRuns()
    active.register(request(ours, number), Control())
    assert not active.send(request(theirs, number, Command.STOP, seconds=5))


@pytest.mark.attack
def test_queue_and_budget_of_one_repository_are_not_those_of_another(tmp_path: Path) -> None:
    """A repository has waiting runs and has used up its budget: no other repository learns of
    them or pays for them."""
    url = parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
    queue, table = RequestQueue(url), QuotaTable(url)
    for repository in ("octo/calc", "octo/calc-1", "octo-calc/1"):
        for number in (1, 2):
            trigger = request(repository, number)
            assert queue.add(QueuedRequest(trigger.key, RequestKind.RUN, trigger))
    for queued in queue.recent():
        assert queued.trigger is not None
        found = queue.unfinished_runs(queued.trigger.repository, queued.trigger.number)
        assert [request.trigger for request in found] == [queued.trigger]
    table.change("octo/calc", NOW, lambda ledger: (ledger.with_run(ended(1, at=NOW)), None))
    for repository in ("octo/calc-1", "octo-calc/1"):
        assert table.read(repository, NOW) == QuotaLedger()
    assert table.read("octo/calc", NOW).runs == (ended(1, at=NOW),)
    queue.close()
    table.close()
