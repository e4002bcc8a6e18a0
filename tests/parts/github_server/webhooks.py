"""Full webhook payloads, as GitHub sends them, made from the server's state."""

from typing import Any

from tests.parts.github_server import documents_core as core
from tests.parts.github_server import documents_git
from tests.parts.github_server.exchange import Site
from tests.parts.github_server.state import (
    Account,
    App,
    Comment,
    Issue,
    Repository,
    Review,
    ReviewComment,
)

Payload = dict[str, Any]


def _around(site: Site, repository: Repository, sender: Account, app: App | None) -> Payload:
    payload: Payload = {
        "repository": core.repository(site, repository),
        "sender": core.account(site, sender),
    }
    if app is not None:
        id = app.installation_id
        payload["installation"] = {"id": id, "node_id": core.node_id("Installation", id)}
    return payload


def issue_comment(
    site: Site, comment: Comment, action: str, sender: Account, app: App | None
) -> Payload:
    repository = comment.repository
    payload: Payload = {
        "action": action,
        "issue": core.issue(site, repository.issues[comment.number]),
        "comment": core.comment(site, comment),
        **_around(site, repository, sender, app),
    }
    if action == "edited":
        payload["changes"] = {"body": {"from": comment.body}}
    return payload


def issues(site: Site, issue: Issue, action: str, sender: Account, app: App | None) -> Payload:
    payload: Payload = {
        "action": action,
        "issue": core.issue(site, issue),
        **_around(site, issue.repository, sender, app),
    }
    if action == "edited":
        payload["changes"] = {}
    return payload


def issue_labeled(
    site: Site, issue: Issue, label: str, sender: Account, app: App | None
) -> Payload:
    repository = issue.repository
    return {
        **issues(site, issue, "labeled", sender, app),
        "label": core.label(site, repository, repository.labels[label.lower()]),
    }


def review_comment(site: Site, comment: ReviewComment, sender: Account, app: App | None) -> Payload:
    repository = comment.repository
    return {
        "action": "created",
        "comment": core.review_comment(site, comment),
        "pull_request": documents_git.pull_short(site, repository.issues[comment.number]),
        **_around(site, repository, sender, app),
    }


def review(site: Site, given: Review, sender: Account, app: App | None) -> Payload:
    repository = given.repository
    document = core.review(site, given)
    return {
        "action": "submitted",
        "review": {**document, "state": given.state.lower()},
        "pull_request": documents_git.pull_short(site, repository.issues[given.number]),
        **_around(site, repository, sender, app),
    }


def pull_request(site: Site, pull: Issue, action: str, sender: Account, app: App | None) -> Payload:
    return {
        "action": action,
        "number": pull.number,
        "pull_request": documents_git.pull(site, pull),
        **_around(site, pull.repository, sender, app),
    }
