"""Tests of the quota ledger in the repository: real git over HTTP, and concurrent writers."""

import multiprocessing
import subprocess
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

from resolver.errors import WorkspaceError
from resolver.git.remote import OrphanCommit
from resolver.github.events.quota_ledger import LedgerRun, QuotaLedger
from resolver.storage.ledger_ref import FILE, REF, RETRIES, AccompanyingPush, LedgerRef
from tests.parts.github import GitHubServer
from tests.quotas.booking import Place, book, entry

REPOSITORY = "octo/demo"
AT_ONCE = 7


@pytest.fixture
def place(github: GitHubServer) -> Place:
    github.create_repository(REPOSITORY)
    return Place(github.server_url, REPOSITORY, github.token_for("octo", REPOSITORY))


def add(keep: LedgerRef, *runs: LedgerRun) -> None:
    def change(ledger: QuotaLedger) -> tuple[QuotaLedger, None]:
        for run in runs:
            ledger = ledger.with_run(run)
        return ledger, None

    keep.change(change)


def put(github: GitHubServer, data: bytes, name: str = FILE) -> str:
    """Push a ledger, as anybody with write access can, and return its commit."""
    git = github.repository(REPOSITORY).git

    def text(*args: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", "-C", str(git.path), *args], input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    blob = text("hash-object", "-w", "--stdin", stdin=data)
    tree = text("mktree", stdin=f"100644 blob {blob}\t{name}\n".encode())
    identity = ("-c", "user.name=eve", "-c", "user.email=eve@example.org")
    commit = text(*identity, "commit-tree", "-m", "mine", tree)
    text("update-ref", REF, commit)
    return commit


def test_what_is_booked_is_read_by_others_and_is_one_commit_outside_of_branches(
    place: Place, github: GitHubServer
) -> None:
    add(place.ledger(), entry(1))
    add(place.ledger(), entry(2))
    assert place.ledger().read().runs == (entry(1), entry(2))
    git = github.repository(REPOSITORY).git
    assert git.text("rev-list", "--count", REF).strip() == "1"
    names = git.text("for-each-ref", "--format=%(refname)").split()
    assert names == ["refs/heads/main", REF]


def test_who_comes_second_decides_again(place: Place) -> None:
    """Somebody else books between the reading and the writing."""
    keep, seen = place.ledger(), []

    def change(ledger: QuotaLedger) -> tuple[QuotaLedger, None]:
        seen.append(len(ledger.runs))
        if len(seen) == 1:
            add(place.ledger(), entry(1))
        return ledger.with_run(entry(2)), None

    keep.change(change)
    assert seen == [0, 1]
    assert len(keep.read().runs) == 2


@pytest.mark.parametrize("after", [False, True], ids=["not done", "done all the same"])
def test_trouble_of_the_server_is_tried_again_and_booked_once(
    place: Place, github: GitHubServer, after: bool
) -> None:
    github.fail_next("POST", "git-receive-pack", 502, after=after)
    keep = replace(place.ledger(), retries=replace(RETRIES, sleep=lambda _: None))
    add(keep, entry(1))
    assert keep.read().runs == (entry(1),)


def test_a_token_that_may_not_write_says_so_at_once(github: GitHubServer) -> None:
    github.create_repository(REPOSITORY)
    token = github.token_for("octo", REPOSITORY, permissions={"contents": "read"})
    keep = Place(github.server_url, REPOSITORY, token).ledger()
    with pytest.raises(WorkspaceError, match="403"):
        add(keep, entry(1))
    pushes = [
        request for request in github.requests if request.query.get("service") == "git-receive-pack"
    ]
    assert len(pushes) == 1
    assert keep.read() == QuotaLedger()
    assert token not in str(keep)


def test_of_a_damaged_ledger_the_valid_entries_count(place: Place, github: GitHubServer) -> None:
    add(place.ledger(), entry(1))
    whole = github.repository(REPOSITORY).git.text("cat-file", "blob", f"{REF}:{FILE}")
    put(github, b"<<<<<<< garbage\n" + whole.encode() + b'\n{"kind":"run"}\n')
    add(place.ledger(), entry(2))
    found = place.ledger().read()
    assert [run.key for run in found.runs] == [entry(1).key, entry(2).key]
    assert not found.is_damaged


@pytest.mark.parametrize("name", [FILE, "other.txt"])
def test_what_is_no_ledger_at_all_can_not_be_read_and_is_replaced(
    place: Place, github: GitHubServer, name: str
) -> None:
    put(github, b"\0\1\2 no ledger", name)
    assert not place.ledger().read().readable
    add(place.ledger(), entry(1))
    assert place.ledger().read().runs == (entry(1),)


@pytest.mark.attack
def test_concurrent_runs_lose_no_entry_and_exceed_no_quota(
    place: Place, github: GitHubServer
) -> None:
    """Many runs start at once: no quota is exceeded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.quotas.booking"])
    with ProcessPoolExecutor(AT_ONCE, mp_context=context) as pool:
        given = list(pool.map(book, [place] * AT_ONCE, range(AT_ONCE)))
    booked = [number for number, reserved in enumerate(given) if reserved is not None]
    assert len(booked) == 5
    ledger = place.ledger().read()
    assert sorted(int(run.key, 16) for run in ledger.runs) == booked


def with_entry(number: int) -> Callable[[QuotaLedger], tuple[QuotaLedger, None]]:
    return lambda ledger: (ledger.with_run(entry(number)), None)


LOG = AccompanyingPush((OrphanCommit("refs/resolver/runs/7/new", "Log", {"log": b"one\n"}),))


def test_a_log_is_pushed_with_the_ledger(place: Place, github: GitHubServer) -> None:
    _, kept = place.ledger().change(with_entry(1))
    asked = len(github.requests)
    place.ledger().change(with_entry(2), kept, LOG)
    assert len(github.requests[asked:]) == 2
    bare = github.repository(place.repository).git
    assert bare.text("show", "refs/resolver/runs/7/new:log") == "one"
    assert place.ledger().read().runs == (entry(1), entry(2))


def test_a_log_is_pushed_if_others_have_changed_the_ledger(
    place: Place, github: GitHubServer
) -> None:
    _, kept = place.ledger().change(with_entry(1))
    add(place.ledger(), entry(2))
    place.ledger().change(with_entry(3), kept, LOG)
    assert "refs/resolver/runs/7/new" in github.repository(place.repository).git.refs("refs/")
    assert place.ledger().read().runs == (entry(1), entry(2), entry(3))
