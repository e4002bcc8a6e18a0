"""Tests of what is published to a pull request's branch that others change during the run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.errors import ForgeError
from resolver.git.git import Credential
from resolver.git.merge import merge
from resolver.git.push import fetch_tip
from resolver.git.workspace import Workspace
from resolver.models.pull_request import PullRequestContext, PullRequestSource
from resolver.models.run import Patch, Publication, PullRequest
from resolver.publishing.commit_builder import CommitBuilder, PushedChange
from resolver.publishing.pull_request import propose
from resolver.publishing.push_to_pull_request import publish_to_pull_request
from resolver.publishing.update_branch import (
    publish_clean_merge,
    publish_merge,
)
from tests.git.scenario import plain_git
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.publishing.test_commit_builder import publish_request
from tests.publishing.test_push_to_pull_request import ForgeWithPull

NAME = "octo/demo"
FORK = "zoe/demo"
CI = ".github/workflows/ci.yml"
LINES = "".join(f"{n}\n" for n in range(9))
Files = dict[str, Any]


class Branch:
    """The branch `half` of a pull request, and the clone of a run that has changed its head."""

    def __init__(self, github: GitHubServer, folder: Path, repository: str = NAME) -> None:
        self.github = github
        self._folder = folder
        self._repository = repository
        github.create_repository(NAME, {"lines.py": LINES})
        if repository != NAME:
            github.create_repository(repository, parent=NAME)
        self.start = self.tip("main", NAME)
        self.head = self.commit({"half.py": "1\n"})

    def tip(self, branch: str = "half", repository: str = "") -> str:
        return str(self.github.repository(repository or self._repository).git.tip(branch))

    def parents(self, branch: str = "half", repository: str = "") -> list[str]:
        git = self.github.repository(repository or self._repository).git
        return str(git.text("log", "-1", "--format=%P", branch)).split()

    def commit(self, files: Files, branch: str = "half") -> str:
        """Commit to the branch of the pull request, or to one with the change of the run."""
        return str(self.github.commit(self._repository, branch, files, "Change", "mona"))

    def rewrite(self, start: str, files: Files) -> str:
        """Replace the history of the branch with one commit on top of `start`."""
        self.github.force_push(self._repository, "half", start)
        return self.commit(files)

    def builder(
        self, files: Files, token: str = "", can_modify: bool = True, **settings: Any
    ) -> CommitBuilder:
        """Return the builder of a run that starts at the head as it is now and changes `files`."""
        server, url = self.github.server_url, f"{self.github.server_url}/{self._repository}.git"
        self.github.force_push(self._repository, "changed", self.head)
        changed = self.commit(files, "changed")
        workspace = Workspace.clone(url, self._folder / "clone.git", branch="half")
        base_url = f"{server}/{NAME}.git"
        assert fetch_tip(workspace.git, url, "changed", None) == changed
        base = fetch_tip(workspace.git, base_url, "main", None)
        assert base is not None
        is_fork = self._repository != NAME
        pull = PullRequestContext(
            number=12,
            head=self.head,
            base=base,
            merge_base=self.start,
            base_branch="main",
            default_branch="main",
            head_branch="half",
            head_repository=self._repository,
            is_fork=is_fork,
        )
        source = PullRequestSource(
            is_open=True,
            repository=self._repository,
            branch="half",
            is_fork=is_fork,
            can_modify=can_modify,
        )
        credential = Credential(server, token or self.github.token_for("octo"))
        request = replace(
            publish_request(),
            task=reports.task(reports.trigger(), source=base_url),
            patch=Patch(base=self.head, tree=workspace.tree(changed)),
            settings=load_settings(settings, {"GITHUB_SERVER_URL": server}),
            credential=lambda: credential,
        )
        forge = ForgeWithPull(pull_source=source)
        return CommitBuilder(request, forge, replace(workspace, pull=pull))


@pytest.fixture
def branch(github: GitHubServer, tmp_path: Path) -> Branch:
    return Branch(github, tmp_path)


@pytest.fixture
def fork(github: GitHubServer, tmp_path: Path) -> Branch:
    """The branch of a fork, to which the owner of the repository may push as well."""
    branch = Branch(github, tmp_path, FORK)
    github.grant("octo", FORK, "write")
    return branch


CHANGE: Files = {"half.py": "0.5\n"}


# Changes


@pytest.mark.parametrize("name", ["branch", "fork"])
def test_the_change_is_one_commit_on_the_head_in_the_repository_of_the_branch(
    request: pytest.FixtureRequest, name: str
) -> None:
    branch: Branch = request.getfixturevalue(name)
    done = publish_to_pull_request(branch.builder(CHANGE))
    assert (done.publication.how, done.publication.commit) == ("pushed", branch.tip())
    assert branch.parents() == [branch.head] and done.notices == ()


def test_a_rewritten_branch_stays_and_the_change_becomes_a_separate_pull_request(
    branch: Branch,
) -> None:
    builder = branch.builder(CHANGE)
    pushed_commit = branch.rewrite(branch.start, {"other.py": "1\n"})
    done = publish_to_pull_request(builder)
    assert (done.publication.how, done.proposed_base) == ("separate", "half")
    assert branch.tip() == pushed_commit
    assert "somebody pushed to half during the run" in done.publication.why
    [notice] = done.notices
    assert "#12" in notice and "somebody pushed" in notice
    assert branch.parents(str(done.publication.branch)) == [branch.head]


def test_a_commit_is_built_anew_on_a_branch_that_was_moved_in_between(branch: Branch) -> None:
    builder, late = branch.builder(CHANGE), list[str]()

    def before_push() -> None:
        if not late:
            late.append(branch.commit({"late.py": "1\n"}))

    request = replace(builder.request, before_push=before_push)
    done = publish_to_pull_request(replace(builder, request=request))
    assert (done.publication.how, done.publication.commit) == ("pushed", branch.tip())
    assert branch.parents() == late


def test_a_change_that_an_interrupted_attempt_has_pushed_is_not_pushed_again(
    branch: Branch,
) -> None:
    builder = branch.builder(CHANGE)
    first = publish_to_pull_request(builder)
    later = branch.commit({"half.py": "2\n"})
    assert publish_to_pull_request(builder).publication == first.publication
    assert branch.tip() == later


def test_the_patch_of_a_fork_can_be_applied_to_its_branch(fork: Branch, tmp_path: Path) -> None:
    done = publish_to_pull_request(fork.builder(CHANGE, can_modify=False))
    assert done.publication.how == "patch" and fork.tip() == fork.head
    source = fork.github.repository(FORK).git_dir
    plain_git(tmp_path, "clone", "-q", "--branch", "half", str(source), "work")
    plain_git(tmp_path / "work", "am", "-q", stdin=done.publication.patch.encode())
    assert (tmp_path / "work" / "half.py").read_text() == CHANGE["half.py"]


@pytest.mark.attack
def test_a_fork_can_not_bring_its_workflows_into_this_repository(fork: Branch) -> None:
    """A fork's pull request contains workflows: they are not pushed to this repository."""
    fork.head = fork.commit({CI: "on: push\n"})
    done = publish_to_pull_request(fork.builder(CHANGE, can_modify=False))
    assert (done.publication.how, done.publication.branch) == ("patch", None)
    assert "+0.5" in done.publication.patch
    upstream = fork.github.repository(NAME).git
    assert upstream.text("for-each-ref", "refs/heads/agent") == ""


class ProposingForge(ForgeWithPull):
    """A forge that says which commit the base branch has when a pull request is opened."""

    base_commit: str = ""

    def open_pull_request(self, *_: object, is_new: bool = False) -> PullRequest:
        return PullRequest(title="Fix it", body="", number=13, base_commit=self.base_commit)


@pytest.mark.parametrize(
    ("files", "conflicts"),
    [({}, ()), ({"other.py": "1\n"}, ()), ({"half.py": "3\n"}, ("half.py",))],
)
def test_a_base_that_got_conflicting_commits_during_the_run_is_named(
    branch: Branch, files: Files, conflicts: tuple[str, ...]
) -> None:
    builder = branch.builder(CHANGE)
    commit = builder.commit(builder.request.patch.tree, branch.head)
    forge = ProposingForge()
    if files:
        branch.github.commit(NAME, "main", files)
    forge.base_commit = branch.tip("main")
    pushed = PushedChange(Publication(branch="agent/1", commit=commit), proposed_base="main")
    *_, done = propose(replace(builder, optional_forge=forge), pushed, 0.0)
    assert len(done.notices) == len(conflicts)
    for notice, path in zip(done.notices, conflicts, strict=True):
        assert notice == (
            f"`main` got commits during the run that conflict with this change, in {path}. "
            "Comment `@agent update` on the pull request to have the conflicts resolved."
        )


# Updates


@pytest.mark.parametrize("name", ["branch", "fork"])
def test_a_clean_merge_contains_what_was_pushed_meanwhile(
    request: pytest.FixtureRequest, name: str
) -> None:
    branch: Branch = request.getfixturevalue(name)
    main = branch.github.commit(NAME, "main", {"new.py": "1\n"})
    builder = branch.builder({})
    pushed_commit = branch.commit({"more.py": "1\n"})
    done = publish_clean_merge(builder)
    assert (done.publication.how, done.publication.commit) == ("updated", branch.tip())
    assert branch.parents() == [pushed_commit, main]


@pytest.mark.parametrize("publish", [publish_clean_merge, publish_merge])
def test_a_merge_for_a_fork_that_the_token_can_not_push_to_never_becomes_a_patch(
    fork: Branch, publish: Callable[[CommitBuilder], PushedChange]
) -> None:
    """A patch has no second parent: applied, it would add the base's changes a second time."""
    fork.github.commit(NAME, "main", {"new.py": "1\n"})
    fork.github.add_user("eve")
    builder = fork.builder({"new.py": "1\n"}, token=fork.github.token_for("eve"))
    with pytest.raises(ForgeError, match="#12 can't be updated from here, because") as refused:
        publish(builder)
    assert "let its author merge main into it" in refused.value.next_step
    assert fork.tip() == fork.head


def in_conflict(branch: Branch, ours: Any, theirs: Any, path: str = "lines.py") -> str:
    """Return the head of main, which is in conflict with the branch's new head at that path."""
    branch.head = branch.commit({path: ours})
    return str(branch.github.commit(NAME, "main", {path: theirs}))


def test_a_resolution_for_a_branch_that_has_moved_becomes_a_separate_pull_request(
    branch: Branch,
) -> None:
    main = in_conflict(branch, f"ours\n{LINES}", f"theirs\n{LINES}")
    builder = branch.builder({"lines.py": f"ours\ntheirs\n{LINES}"})
    pushed_commit = branch.commit({"more.py": "1\n"})
    done = publish_merge(builder)
    assert (done.publication.how, done.proposed_base) == ("separate", "half")
    assert branch.tip() == pushed_commit
    assert branch.parents(str(done.publication.branch)) == [branch.head, main]


@pytest.mark.parametrize("signed_commits", [False, True])
def test_a_merge_that_an_interrupted_attempt_has_pushed_is_not_pushed_again(
    branch: Branch, signed_commits: bool
) -> None:
    main = in_conflict(branch, f"ours\n{LINES}", f"theirs\n{LINES}")
    builder = branch.builder({"lines.py": f"ours\ntheirs\n{LINES}"}, signed_commits=signed_commits)
    first, again = publish_merge(builder), publish_merge(builder)
    assert (again.publication.how, again.publication.commit) == ("updated", branch.tip())
    assert again.publication == first.publication and again.proposed_base is None
    assert branch.parents() == [branch.head, main]


def test_a_conflict_that_the_agent_did_not_edit_leaves_the_merge_unverified(
    branch: Branch,
) -> None:
    in_conflict(branch, b"\x00ours\xff", b"\x00theirs\xfe", "logo.bin")
    builder = branch.builder({})
    pull, patch = builder.workspace.pull, builder.request.patch
    assert pull is not None
    tree = merge(builder.workspace.git, pull.head, pull.base).tree
    unedited = replace(builder.request, patch=patch.model_copy(update={"tree": tree}))
    done = publish_merge(replace(builder, request=unedited))
    [conflict] = done.publication.conflicts
    assert (conflict.path, conflict.kept, conflict.untouched) == ("logo.bin", "ours", True)
    assert unedited.report_with(done).unverified == "unedited_conflict"
