"""Tests of repositories that were renamed or transferred: GitHub redirects, with 301 and 307."""

from datetime import timedelta

import pytest

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.app import AppAccess, AppKey, InstallationTokens
from resolver.github.comments.progress import RunProgress
from resolver.github.github_forge import GitHubForge
from tests.github import reports
from tests.github.test_github_reading import NAME, ask, forge_for, issue
from tests.parts.clock import PassingTime
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue

__all__ = ["issue"]

NEW_NAME = "octo/renamed"
LISTED = [f"{number}" for number in range(120)]


def comments_of(forge: GitHubForge, number: int) -> list[str]:
    return [comment.body for comment in forge.recent_comments(number)]


@pytest.mark.parametrize("new_name", [NEW_NAME, "other/demo"])
def test_what_is_written_during_a_run_is_written_to_the_present_repository(
    github: GitHubServer, issue: Issue, new_name: str
) -> None:
    trigger = ask(github, issue)
    forge = forge_for(github)
    progress = RunProgress(
        trigger=trigger, run="run-1", since=trigger.at, until=trigger.at + timedelta(hours=1)
    )
    comment_id = forge.progress_writer().write_progress(progress, None)
    github.move_repository(NAME, new_name)
    forge.confirm(trigger)
    url = forge.comment(reports.report(trigger=trigger, progress_comment_id=comment_id))
    created = forge.comment(reports.report(trigger=trigger.model_copy(update={"key": "another"})))
    request, first, second = issue.comments
    assert [reaction.content for reaction in request.reactions] == ["+1"]
    assert "ending=progress" not in first.body
    assert (url, created) == (
        f"{github.server_url}/{new_name}/issues/1#issuecomment-{first.id}",
        f"{github.server_url}/{new_name}/issues/1#issuecomment-{second.id}",
    )


def test_a_list_is_read_with_its_parameters(github: GitHubServer, issue: Issue) -> None:
    for body in LISTED:
        github.add_comment(issue, body, "carol")
    github.move_repository(NAME, NEW_NAME)
    assert comments_of(forge_for(github), issue.number) == LISTED[:-101:-1]


def test_a_request_under_the_old_name_ends_with_the_new_one(
    github: GitHubServer, issue: Issue
) -> None:
    trigger = ask(github, issue)
    github.move_repository(NAME, NEW_NAME)
    with pytest.raises(ForgeError, match=f"{NAME} has moved to {NEW_NAME}") as moved:
        forge_for(github).read(trigger)
    assert "make the request there" in moved.value.next_step


@pytest.mark.attack
@pytest.mark.parametrize(
    ("status", "location"),
    [
        (301, "http://127.0.0.1:9/api/v3/repositories/1/issues/1/comments"),
        (302, "{api}/users/mallory"),
        (303, "{api}/repositories/../user"),
        (307, "http://127.0.0.1:9/api/v3/repositories/1/issues/1/comments"),
        (307, "{api}/users/mallory"),
        (308, ""),
    ],
)
def test_a_redirect_to_anything_else_is_an_error_and_never_a_success(
    github: GitHubServer, issue: Issue, status: int, location: str
) -> None:
    """Somebody answers in GitHub's place, or a proxy redirects: no token is sent elsewhere."""
    headers = {"Location": location.format(api=github.api_url)}
    github.fail_next("POST", "/comments$", status, headers, times=9)
    with pytest.raises(ForgeError, match="the repository moved") as moved:
        forge_for(github).comment(reports.report(trigger=reports.trigger(number=issue.number)))
    assert moved.value.cause == "moved" and "new name" in moved.value.next_step
    assert [r.path for r in github.requests if "comments" not in r.path] == []


def test_a_redirect_is_followed_once(github: GitHubServer, issue: Issue) -> None:
    here = f"{github.api_url}/repositories/{github.repository(NAME).id}/issues/1/comments"
    github.fail_next("POST", "/comments$", 307, {"Location": here}, times=9)
    with pytest.raises(ForgeError, match="the repository moved"):
        forge_for(github).comment(reports.report(trigger=reports.trigger(number=issue.number)))


def test_a_server_gets_tokens_for_a_repository_that_was_renamed_but_not_for_one_transferred(
    github: GitHubServer, issue: Issue
) -> None:
    app = github.add_app("resolver", NAME)
    time = PassingTime()
    key = AppKey(str(app.id), app.private_key, lambda *_: None, github.world.now)
    access = GitHubAccess(key, github.api_url, github.server_url, github.graphql_url)
    github.move_repository(NAME, NEW_NAME)
    tokens = InstallationTokens(AppAccess(access), NAME, lambda *_: None, github.world.now)
    forge = forge_for(github, tokens, retries=time.retries())
    trigger = reports.trigger(number=issue.number)
    assert NEW_NAME in forge.comment(reports.report(trigger=trigger))
    github.move_repository(NEW_NAME, "other/demo")
    github.advance(timedelta(hours=2).total_seconds())
    with pytest.raises(ForgeError, match=r"belongs to .other.|not installed"):
        tokens.token()
