"""Tests of logs archived in the repository: they come back unchanged, unless they are too large."""

import os
import zlib
from pathlib import Path

import pytest

from resolver.errors import LogError
from resolver.git.git import Credential
from resolver.storage.run_refs import (
    MAX_COMPRESSED_BYTES,
    MAX_UNCOMPRESSED_BYTES,
    RUNS,
    RunRefs,
    archive_log,
)
from tests.parts.github import GitHubServer

RUN = "20260102-030405-abc12{}"


class Kept:
    def __init__(self, github: GitHubServer, folder: Path) -> None:
        self.repository = github.create_repository("octo/calc", {"a": "1"})
        token = github.token_for("octo", "octo/calc")
        self.url = f"{github.server_url}/octo/calc.git"
        self.credential = Credential(github.server_url, token)
        self.folder = folder

    def keep(self, run: str, log: bytes) -> None:
        (self.folder / "events.jsonl").write_bytes(log)
        (self.folder / "outcome.json").write_text("{}")
        archive_log(self.folder, self.url, self.credential, 7, run)

    def last(self, before: str = RUN.format(9)) -> tuple[str, bytes] | None:
        into = self.folder / "into"
        found = next(RunRefs(self.url, self.credential, into).runs_before(7, before), None)
        return (found.run, found.log.read_bytes()) if found else None


@pytest.fixture
def kept(github: GitHubServer, tmp_path: Path) -> Kept:
    return Kept(github, tmp_path)


def test_a_long_log_is_compressed(kept: Kept) -> None:
    long = b"x" * 2 * MAX_UNCOMPRESSED_BYTES + b"\n"
    kept.keep(RUN.format(2), long)
    assert kept.last() == (RUN.format(2), long)
    names = kept.repository.git.text("ls-tree", "--name-only", f"{RUNS}/7/{RUN.format(2)}")
    assert names.split() == ["events.jsonl.gz", "outcome.json"]


def test_a_log_that_cannot_be_made_small_is_not_kept(kept: Kept) -> None:
    with pytest.raises(LogError, match="bytes"):
        kept.keep(RUN.format(1), os.urandom(MAX_COMPRESSED_BYTES + MAX_UNCOMPRESSED_BYTES))
    assert kept.last() is None


def test_a_log_that_unpacks_to_more_than_is_read_is_refused(kept: Kept) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(80)) + packer.flush()
    git = kept.repository.git
    blob = git.git("hash-object", "-w", "--stdin", input=bomb).decode().strip()
    tree = git.git("mktree", input=f"100644 blob {blob}\tevents.jsonl.gz\n".encode()).decode()
    who = {f"GIT_{n}_{k}": "eve@x" for n in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    commit = git.git("commit-tree", "-m", "x", tree.strip(), env=who).decode().strip()
    git.git("update-ref", f"{RUNS}/7/{RUN.format(3)}", commit)
    with pytest.raises(LogError, match="more than"):
        kept.last()
