"""Tests of logs archived in the repository: they come back unchanged, unless they are too large."""

from pathlib import Path

import pytest

from resolver.errors import LogError
from resolver.git.git import Credential
from resolver.storage import run_refs
from resolver.storage.run_refs import RunRefs, archive_log
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


def test_a_log_that_is_too_large_is_neither_kept_nor_read(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.keep(RUN.format(1), b"x" * 3_000)
    monkeypatch.setattr(run_refs, "MAX_LOG_BYTES", 2_000)
    with pytest.raises(LogError, match="2,000 bytes"):
        kept.last()
    with pytest.raises(LogError, match="2,000 bytes"):
        kept.keep(RUN.format(2), b"x" * 3_000)
