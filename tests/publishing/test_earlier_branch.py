"""Tests of adding a change to the branch of an earlier run, and of what is published instead."""

from dataclasses import replace
from pathlib import Path

import pytest

from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from resolver.models.pull_request import OpenPullRequest
from resolver.models.run import Continuation, Publication, PullRequest
from resolver.publishing.commit_builder import CommitBuilder, PublishRequest, PushedChange
from resolver.publishing.pull_request import publish
from tests.git.scenario import plain_git
from tests.github import reports
from tests.github.test_github_reading import BOT, NAME, forge_for
from tests.parts.github import GitHubServer
from tests.publishing.test_commit_builder import publish_request

START = "first\n2\n3\n4\n5\n6\nlast\n"
FIXED = START.replace("first", "fixed")
BOTH = FIXED.replace("last", "new")


class EarlierWork:
    """Resolver's open pull request for an issue, and a run that changes the last line there."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        self.github = github
        repository = github.create_repository(NAME, {"calc.py": START})
        self.base = str(repository.git.tip("main"))
        github.grant(BOT, NAME, "write")
        github.create_issue(NAME, "It breaks", "Please help", author="alice")
        self.branch = "agent/issue-1-it-breaks"
        self.head = github.commit(NAME, self.branch, {"calc.py": FIXED}, "Fix it", BOT)
        self.pull = github.create_pull(NAME, self.branch, "Fix it", "", author=BOT)
        self.url = f"{github.server_url}/{NAME}.git"
        self.workspace = Workspace.clone(self.url, folder / "clone", branch=self.branch)

    def tree(self, text: str) -> str:
        """Write the tree with this text to the clone, and return its id."""
        folder = self.workspace.folder
        blob = plain_git(folder, "hash-object", "-w", "--stdin", stdin=text.encode())
        return plain_git(folder, "mktree", stdin=f"100644 blob {blob}\tcalc.py\n".encode())

    def pushed(self, text: str, branch: str = "") -> str:
        """Return a commit of a person that gives the file this text."""
        files = {"calc.py": text}
        return str(self.github.commit(NAME, branch or self.branch, files, "Late", "alice"))

    def request(self, text: str, base: str) -> PublishRequest:
        trigger = reports.trigger(number=1)
        task = reports.task(trigger, source=self.url)
        patch = reports.patch("calc.py")
        token = self.github.token_for(BOT, NAME)
        return replace(
            publish_request(),
            trigger=trigger,
            task=task,
            patch=patch.model_copy(update={"base": base, "tree": self.tree(text)}),
            credential=lambda: Credential(self.github.server_url, token),
            report=reports.report(trigger=trigger, task=task),
        )

    def follow_up(self, text: str = BOTH) -> PushedChange:
        """Publish the work of a new request that started from the pull request."""
        request = self.request(text, self.head)
        follows = OpenPullRequest(
            number=self.pull.number,
            title="Fix it",
            branch=self.branch,
            head=self.head,
            base_branch="main",
        )
        task = request.task.model_copy(update={"follows": follows})
        return self.published(replace(request, task=task))

    def publication(self, commit: str, tree: str) -> Publication:
        pull = PullRequest(title="Fix it", body="", number=self.pull.number)
        return Publication(branch=self.branch, commit=commit, tree=tree, pull_request=pull)

    def continued(self, text: str = BOTH, branch: str = "") -> PushedChange:
        """Publish the work of a run that continued the earlier one from its log.

        branch: the one that the log names, which anybody who may push can write.
        """
        publication = self.publication(self.head, self.tree(FIXED))
        named = publication.model_copy(update={"branch": branch or self.branch})
        return self.continued_after(named, text, self.base)

    def continued_after(self, earlier: Publication, text: str, base: str) -> PushedChange:
        """Publish the work of a run that continued one with this publication. base: of both."""
        continuation = Continuation(run="run-0", by="alice", publication=earlier)
        return self.published(replace(self.request(text, base), continuation=continuation), base)

    def published(self, request: PublishRequest, base: str = "") -> PushedChange:
        workspace = replace(self.workspace, base=base or self.head, branch="main")
        builder = CommitBuilder(request, forge_for(self.github), workspace)
        return list(publish(builder))[-1]

    def tip(self, branch: str | None) -> str | None:
        found: str | None = self.github.repository(NAME).git.tip(branch or "")
        return found

    def text(self, commit: str) -> str:
        found: str = self.github.repository(NAME).git.text("show", f"{commit}:calc.py")
        return f"{found.rstrip()}\n"

    def parent(self, commit: str) -> str:
        found: str = self.github.repository(NAME).git.text("rev-parse", f"{commit}^")
        return found.strip()


@pytest.fixture
def earlier(github: GitHubServer, tmp_path: Path) -> EarlierWork:
    return EarlierWork(github, tmp_path)


@pytest.mark.parametrize("how", ["follow_up", "continued"])
def test_the_change_is_a_commit_on_the_earlier_branch(earlier: EarlierWork, how: str) -> None:
    done = getattr(earlier, how)()
    publication, tip = done.publication, earlier.tip(earlier.branch) or ""
    assert (publication.how, publication.branch, publication.commit) == (
        "added",
        earlier.branch,
        tip,
    )
    assert earlier.parent(tip) == earlier.head and earlier.text(tip) == BOTH
    assert done.notices == () and len(earlier.github.repository(NAME).issues) == 2


def test_a_branch_whose_new_commits_conflict_is_left_for_a_new_pull_request(
    earlier: EarlierWork,
) -> None:
    late = earlier.pushed(FIXED.replace("last", "other"))
    done = earlier.continued()
    assert earlier.tip(earlier.branch) == late
    assert done.publication.branch == f"{earlier.branch}-2" and done.proposed_base == "main"
    assert earlier.text(done.publication.commit or "") == BOTH, "it has the whole change"
    [notice] = done.notices
    assert "got new commits during the run that can't be combined" in notice


def test_a_closed_pull_request_is_followed_by_a_new_one_with_its_whole_change(
    earlier: EarlierWork,
) -> None:
    earlier.pull.state = "closed"
    done = earlier.continued()
    commit = done.publication.commit or ""
    assert earlier.tip(earlier.branch) == earlier.head
    assert done.publication.branch == f"{earlier.branch}-2"
    assert earlier.parent(commit) == earlier.base and earlier.text(commit) == BOTH
    assert done.notices == (
        f"#{earlier.pull.number} is merged or closed, so this is a new pull request. "
        f"It also contains the whole change of #{earlier.pull.number}.",
    )


def test_a_protected_branch_is_left_for_a_new_pull_request(earlier: EarlierWork) -> None:
    with (earlier.github.repository(NAME).git_dir / "protected").open("a") as protected:
        protected.write(f"refs/heads/{earlier.branch}\n")
    done = earlier.follow_up()
    assert earlier.tip(earlier.branch) == earlier.head
    assert done.publication.branch == f"{earlier.branch}-2" and done.proposed_base == "main"
    assert earlier.text(done.publication.commit or "") == BOTH
    [notice] = done.notices
    assert "is protected and Resolver is not allowed to push to it" in notice


def test_a_branch_that_resolver_did_not_create_is_not_written(earlier: EarlierWork) -> None:
    """A log that somebody has planted may name any branch."""
    theirs = earlier.pushed(FIXED, "theirs")
    earlier.github.create_pull(NAME, "theirs", "Mine", "", author=BOT)
    done = earlier.continued(branch="theirs")
    assert earlier.tip("theirs") == theirs
    assert done.publication.branch == f"{earlier.branch}-2"


def test_work_on_top_of_commits_that_it_does_not_know_gets_a_branch_of_its_own(
    earlier: EarlierWork,
) -> None:
    """Others had pushed before the earlier run did, so the sandbox of the continued run has its
    change without their commits."""
    own = FIXED.replace("2", "two")
    earlier.pushed(FIXED.replace("4", "four"))
    commit = earlier.pushed(own.replace("4", "four"))
    text = own.replace("last", "new")
    publication = earlier.publication(commit, earlier.tree(own))
    done = earlier.continued_after(publication, text, earlier.head)
    assert earlier.tip(earlier.branch) == commit
    assert done.publication.branch == f"{earlier.branch}-2"
    assert earlier.text(done.publication.commit or "") == text
