"""The conformance suite of the earlier runs of a conversation: in refs of the repository, and on a
server."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from resolver.errors import LogError
from resolver.events.stores import JsonlStore
from resolver.git.git import Credential
from resolver.models.run import Trigger
from resolver.storage import run_refs
from resolver.storage.database import parse_database_url
from resolver.storage.earlier_runs import EVENTS, OUTCOME, EarlierRuns
from resolver.storage.run_index import IndexedRunStore, RunIndex
from resolver.storage.run_refs import RunRefs, archive_log
from resolver.storage.run_store import RunStore
from tests.parts import stored_runs
from tests.parts.github import GitHubServer
from tests.trace import sample

REPOSITORY = "octo/calc"
ISSUE = 7

Keep = Callable[[int, str, str], None]
"""Stores a run of an issue; its log contains the text."""


def run_id(number: int) -> str:
    """The id of a run; a higher number is a later one."""
    return f"20260102-03040{number}-abcde{number}"


@dataclass(frozen=True)
class Kept:
    """A store, and how runs get into it."""

    store: EarlierRuns
    keep: Keep

    def before(self, run: str, issue: int = ISSUE) -> list[str]:
        return [earlier.run for earlier in self.store.runs_before(issue, run)]


def write_run(folder: Path, text: str) -> None:
    """Write the files of a run that has ended."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / EVENTS).unlink(missing_ok=True)
    log = JsonlStore(folder / EVENTS)
    for event in sample.numbered([sample.started(), sample.reply(text)]):
        log.append(event)
    log.close()
    (folder / OUTCOME).write_text("{}")


def in_refs(github: GitHubServer, folder: Path) -> Kept:
    github.create_repository(REPOSITORY, {"a": "1"})
    credential = Credential(github.server_url, github.token_for("octo", REPOSITORY))
    url = f"{github.server_url}/{REPOSITORY}.git"

    def keep(issue: int, run: str, text: str) -> None:
        write_run(folder / "run", text)
        archive_log(folder / "run", url, credential, issue, run)

    return Kept(RunRefs(url, credential, folder / "fetched"), keep)


def on_a_server(index: RunIndex, folder: Path) -> Kept:
    store = RunStore(MemoryStore())

    def keep(issue: int, run: str, text: str) -> None:
        stored_runs.write_run(
            store, run, sample.numbered([sample.started(), sample.reply(text)]), ended=True
        )
        index.put(run, started_on(issue), {})

    return Kept(IndexedRunStore(REPOSITORY.upper(), index, store, folder), keep)


def started_on(issue: int) -> Trigger:
    trigger = sample.started().task.trigger
    return trigger.model_copy(update={"repository": REPOSITORY, "number": issue, "issue": issue})


@pytest.fixture(params=["refs", "server"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    """Each kind of store in turn."""
    if request.param == "refs":
        yield in_refs(request.getfixturevalue("github"), tmp_path)
        return
    index = RunIndex(parse_database_url(f"sqlite:///{tmp_path}/resolver.db"))
    yield on_a_server(index, tmp_path / "fetched")
    index.close()


def test_the_runs_before_a_run_come_newest_first_with_their_files(kept: Kept) -> None:
    for number in (1, 2, 3):
        kept.keep(ISSUE, run_id(number), f"reply {number}")
    assert kept.before(run_id(3)) == [run_id(2), run_id(1)]
    assert kept.before(run_id(2)) == [run_id(1)]
    newest = next(kept.store.runs_before(ISSUE, run_id(9)))
    assert newest.run == run_id(3)
    assert b"reply 3" in newest.log.read_bytes()
    assert newest.outcome.read_text() == "{}"


def test_a_run_that_is_stored_again_is_one_run_with_its_newest_log(kept: Kept) -> None:
    kept.keep(ISSUE, run_id(1), "first attempt")
    kept.keep(ISSUE, run_id(1), "second attempt")
    [earlier] = kept.store.runs_before(ISSUE, run_id(2))
    assert b"second attempt" in earlier.log.read_bytes()
    assert b"first attempt" not in earlier.log.read_bytes()


def test_a_log_that_is_too_large_is_neither_kept_nor_read(
    github: GitHubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = in_refs(github, tmp_path)
    kept.keep(ISSUE, run_id(1), "reply")
    monkeypatch.setattr(run_refs, "MAX_LOG_BYTES", 100)
    with pytest.raises(LogError, match="100 bytes"):
        kept.before(run_id(9))
    with pytest.raises(LogError, match="100 bytes"):
        kept.keep(ISSUE, run_id(2), "reply")
