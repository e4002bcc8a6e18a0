"""What a run relies on of a forge, of GitHub and of the forge in memory alike.

The tests of the stages use the one in memory, so both have to agree.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from resolver.github.comments.report import Report
from resolver.github.github_forge import GitHubForge
from resolver.models.pull_request import Review
from resolver.models.run import Trigger, TriggerKind
from tests.github import reports
from tests.github.test_github_reading import NAME, forge_for
from tests.parts.github import GitHubServer
from tests.parts.memory_forge import MemoryForge

BRANCH = "agent/1-it-breaks"


class Place:
    """A repository with an issue and a pushed branch, on GitHub or in memory."""

    def __init__(self, github: GitHubServer, folder: Path, kind: str) -> None:
        github.create_repository(NAME, files={"README.md": "hello"})
        github.grant("alice", NAME, "write")
        self.issue = github.create_issue(NAME, "It breaks", "Please help", author="mallory")
        self.tip = github.commit(NAME, BRANCH, {"a.py": "fixed"})
        (folder / "issue.md").write_text("# It breaks\n\nPlease help\n")
        memory = MemoryForge(folder / "issue.md", tips={BRANCH: self.tip})
        self.forge: Callable[[], GitHubForge] = {
            "github": lambda: forge_for(github),
            "memory": lambda: memory,
        }[kind]

    def trigger(self, key: str = "issue_comment:77") -> Trigger:
        return reports.trigger(number=self.issue.number, comment_id=None, key=key)

    def report(self, trigger: Trigger) -> Report:
        return reports.report(trigger=trigger, task=reports.task(trigger))


@pytest.fixture(params=["github", "memory"])
def place(github: GitHubServer, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(github, tmp_path, request.param)


def test_it_names_its_account_and_everybodys_permission(place: Place) -> None:
    forge = place.forge()
    assert forge.whoami() == forge.account().login == "resolver[bot]"
    assert forge.permission("alice") == "write"


def test_a_pull_request_is_opened_once_and_found_by_its_request(place: Place) -> None:
    first_trigger, other = place.trigger(), place.trigger("issue_comment:78")
    assert place.forge().find_publication(first_trigger) is None
    pull = place.forge().open_pull_request(place.report(first_trigger), BRANCH, is_new=True)
    again = place.forge().open_pull_request(place.report(first_trigger), BRANCH)
    assert pull.number == again.number and pull.url and "/pull/" in pull.url
    found = place.forge().find_publication(first_trigger)
    assert found is not None and found.repeated
    assert (found.branch, found.commit, found.comment_url) == (BRANCH, place.tip, None)
    assert found.pull_request is not None and found.pull_request.number == pull.number
    assert place.forge().find_publication(other) is None


def test_branches_are_listed_by_prefix_and_their_pull_request_is_found(place: Place) -> None:
    forge = place.forge()
    assert forge.branches("agent/1-") == {BRANCH}
    assert forge.branches("agent/2-") == set()
    assert forge.heads().open_from(BRANCH) is None
    pull = forge.open_pull_request(place.report(place.trigger()), BRANCH)
    assert place.forge().heads().open_from(BRANCH) == pull.number


def test_there_is_one_final_comment_for_each_request(place: Place) -> None:
    trigger = place.trigger()
    url = place.forge().comment(place.report(trigger))
    assert f"/issues/{place.issue.number}#issuecomment-" in url
    assert place.forge().comment(place.report(trigger)) == url
    assert place.forge().comment(place.report(place.trigger("issue_comment:78"))) != url
    found = place.forge().find_publication(trigger)
    assert found is not None and found.comment_url == url and found.pull_request is None


def test_a_review_is_published_once(github: GitHubServer, place: Place) -> None:
    pull = github.create_pull(NAME, BRANCH, "Fix it", "")
    trigger = reports.trigger(
        number=pull.number, is_pull_request=True, comment_id=None, kind=TriggerKind.ISSUE_COMMENT
    )
    review = Review(commit=place.tip)
    first = place.forge().publish_review(place.report(trigger), review)
    again = place.forge().publish_review(place.report(trigger), review)
    assert first.url == again.url and first.commit == again.commit == place.tip
