"""Tests of putting a change on a branch to which others may push in the meantime."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import Settings, load_settings
from resolver.errors import ForgeError, PolicyViolation, PushRefused
from resolver.git.workspace import Workspace
from resolver.models.repository import PublishedCommit
from resolver.models.run import Patch
from resolver.publishing.branches import push_signed_commits
from resolver.publishing.commit_builder import CommitBuilder, PushedCommit
from tests.git.scenario import commit_all, make_repository, plain_git, write
from tests.parts.memory_forge import MemoryForge
from tests.publishing.test_commit_builder import publish_request

LINES = "".join(f"{n}\n" for n in range(9))


@dataclass
class Moving:
    """A branch, a change of its first line in a clone, and commits that others push."""

    source: Path
    builder: CommitBuilder
    start: str

    def pushed(self, path: str, content: str) -> str:
        """Return a commit of another person on top of the branch."""
        plain_git(self.source, "checkout", "-q", self.start)
        write(self.source, path, content)
        return self.fetched(commit_all(self.source, "Late"))

    def fetched(self, commit: str) -> str:
        self.builder.workspace.git.run("fetch", "-q", str(self.source), commit)
        return commit

    def with_settings(self, settings: Settings) -> CommitBuilder:
        return replace(self.builder, request=replace(self.builder.request, settings=settings))

    def git(self, *args: str) -> str:
        return self.builder.workspace.git.text(*args).strip()


@pytest.fixture
def moving(tmp_path: Path) -> Moving:
    source = make_repository(tmp_path / "source")
    plain_git(source, "config", "uploadpack.allowAnySHA1InWant", "true")
    write(source, "calc.py", LINES)
    start = commit_all(source, "start")
    workspace = Workspace.clone(str(source), tmp_path / "clone")
    builder = CommitBuilder(publish_request(), MemoryForge(tmp_path, "main"), workspace)
    made = Moving(source, builder, start)
    mended = made.pushed("calc.py", f"first\n{LINES}")
    patch = Patch(base=start, tree=workspace.tree(mended))
    made.builder = replace(builder, request=replace(builder.request, patch=patch))
    return made


def test_the_result_on_another_commit_is_judged_again(moving: Moving) -> None:
    late = moving.pushed("late.txt", "x\n")
    builder = moving.with_settings(Settings(protected_paths=("calc.py",)))
    with pytest.raises(PolicyViolation, match="on top of the commits pushed during the run"):
        builder.apply(moving.start, late)


def test_a_rename_by_others_can_not_carry_a_change_into_a_workflow(moving: Moving) -> None:
    """Git applies the change to the file under its new name."""
    plain_git(moving.source, "checkout", "-q", moving.start)
    (moving.source / ".github/workflows").mkdir(parents=True)
    plain_git(moving.source, "mv", "calc.py", ".github/workflows/calc.yml")
    late = moving.fetched(commit_all(moving.source, "Move"))
    with pytest.raises(PolicyViolation, match=r"during the run, .*workflows/calc\.yml"):
        moving.builder.apply(moving.start, late)


@dataclass(frozen=True)
class RefusedSigner:
    """Signs nothing, for a reason of GitHub. If there is none, an account that can't sign."""

    message: str = ""

    def put(self, *_: object) -> PublishedCommit:
        if self.message:
            raise ForgeError(self.message, "try again")
        return PublishedCommit(id="c" * 40, signed=False)


@dataclass
class SigningForge(MemoryForge):
    own_signer: RefusedSigner = RefusedSigner()

    def signer(self) -> Any:
        return self.own_signer


def sign(moving: Moving, message: str = "") -> PushedCommit | None:
    forge = SigningForge(own_signer=RefusedSigner(message))
    settings = load_settings({"signed_commits": True}, {})
    builder = replace(moving.with_settings(settings), optional_forge=forge)
    commit = builder.commit(moving.builder.request.patch.tree, moving.start)
    return push_signed_commits(builder, commit, "agent/1", "")


def test_a_rule_against_signed_commits_refuses_them_as_it_would_a_push(moving: Moving) -> None:
    with pytest.raises(PushRefused) as raised:
        sign(moving, "Repository rule violations found: Cannot create ref.")
    assert raised.value.why == "a rule of the repository forbids it"
    assert "Rulesets" in raised.value.next_step
    with pytest.raises(ForgeError, match="out of order"):
        sign(moving, "out of order")


def test_commits_that_the_account_can_not_sign_are_published_with_a_notice(moving: Moving) -> None:
    pushed = sign(moving)
    assert pushed is not None
    assert "did not sign them" in " ".join(pushed.notices)
