"""JSON documents of accounts, repositories, issues, comments, labels and reactions.

They have the fields of GitHub's that clients read, not all of them.
"""

import base64
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tests.parts.github_server.exchange import Site
from tests.parts.github_server.state import (
    ROLES,
    Account,
    App,
    Comment,
    Issue,
    Reaction,
    Repository,
    Review,
    ReviewComment,
)

Document = dict[str, Any]

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def maybe_stamp(moment: datetime | None) -> str | None:
    return stamp(moment) if moment else None


def node_id(kind: str, id: int | str) -> str:
    return base64.b64encode(f"{kind}:{id}".encode()).decode()


def account(site: Site, who: Account) -> Document:
    login = quote(who.login)
    return {
        "login": who.login,
        "id": who.id,
        "node_id": node_id("User", who.id),
        "url": f"{site.api_url}/users/{login}",
        "html_url": f"{site.server_url}/{login}",
        "type": who.type,
    }


def app(site: Site, given: App) -> Document:
    return {
        "id": given.id,
        "slug": given.slug,
        "name": given.slug,
        "owner": account(site, given.account),
        "html_url": f"{site.server_url}/apps/{given.slug}",
        "permissions": dict(given.permissions),
        "events": list(given.events),
    }


def association(repository: Repository, who: Account) -> str:
    """GitHub's author_association: a word about the author, not a permission."""
    override = repository.associations.get(who.login.lower())
    if override:
        return override
    if who is repository.owner:
        return "OWNER"
    return "COLLABORATOR" if who.login.lower() in repository.roles else "NONE"


def repository_url(site: Site, repo: Repository) -> str:
    return f"{site.api_url}/repos/{repo.full_name}"


def repository(site: Site, repo: Repository) -> Document:
    return {
        "id": repo.id,
        "node_id": node_id("Repository", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.private,
        "owner": account(site, repo.owner),
        "html_url": f"{site.server_url}/{repo.full_name}",
        "fork": repo.parent is not None,
        "url": repository_url(site, repo),
        "clone_url": f"{site.server_url}/{repo.full_name}.git",
        "has_issues": True,
        "default_branch": repo.default_branch,
        "archived": repo.archived,
    }


def permission_flags(role: str) -> dict[str, bool]:
    names = {"read": "pull", "triage": "triage", "write": "push"}
    return {names.get(level, level): ROLES.index(role) >= ROLES.index(level) for level in ROLES[1:]}


def reaction(site: Site, given: Reaction) -> Document:
    return {
        "id": given.id,
        "user": account(site, given.account),
        "content": given.content,
        "created_at": stamp(given.created_at),
    }


def labels(repo: Repository, names: list[str]) -> list[Document]:
    known = (repo.labels[name.lower()] for name in names)
    return [{"id": label.id, "name": label.name, "color": "ededed"} for label in known]


def issue_url(site: Site, given: Issue) -> str:
    return f"{repository_url(site, given.repository)}/issues/{given.number}"


def page_url(site: Site, given: Issue) -> str:
    kind = "pull" if given.pull else "issues"
    return f"{site.server_url}/{given.repository.full_name}/{kind}/{given.number}"


def written(site: Site, kind: str, given: Issue | Comment | ReviewComment | Review) -> Document:
    """What all texts of people have."""
    return {
        "id": given.id,
        "node_id": node_id(kind, given.id),
        "user": account(site, given.author),
        "body": given.body,
        "author_association": association(given.repository, given.author),
    }


def dated(given: Issue | Comment | ReviewComment) -> Document:
    return {"created_at": stamp(given.created_at), "updated_at": stamp(given.updated_at)}


def subject(site: Site, given: Issue) -> Document:
    """What issues and pull requests have."""
    return {
        **written(site, "PullRequest" if given.pull else "Issue", given),
        **dated(given),
        "html_url": page_url(site, given),
        "number": given.number,
        "title": given.title,
        "labels": labels(given.repository, given.labels),
        "state": given.state,
        "locked": given.locked,
        "assignees": [account(site, who) for who in given.assignees],
        "milestone": given.milestone,
        "closed_at": maybe_stamp(given.closed_at),
    }


def issue(site: Site, given: Issue) -> Document:
    document = {
        **subject(site, given),
        "url": issue_url(site, given),
        "type": given.type,
        "comments": len(given.comments),
    }
    if given.pull:
        document["draft"] = given.pull.draft
        document["pull_request"] = {
            "url": f"{repository_url(site, given.repository)}/pulls/{given.number}",
            "html_url": page_url(site, given),
            "merged_at": maybe_stamp(given.pull.merged_at),
        }
    return document


def comment(site: Site, given: Comment) -> Document:
    parent = given.repository.issues[given.number]
    return {
        **written(site, "IssueComment", given),
        **dated(given),
        "url": f"{repository_url(site, given.repository)}/issues/comments/{given.id}",
        "html_url": f"{page_url(site, parent)}#issuecomment-{given.id}",
        "issue_url": issue_url(site, parent),
    }


def review(site: Site, given: Review) -> Document:
    page = page_url(site, given.repository.issues[given.number])
    document = {
        **written(site, "PullRequestReview", given),
        "state": given.state,
        "html_url": f"{page}#pullrequestreview-{given.id}",
        "pull_request_url": f"{repository_url(site, given.repository)}/pulls/{given.number}",
        "commit_id": given.commit,
    }
    if given.state != "PENDING":
        document["submitted_at"] = stamp(given.created_at)
    return document


def review_comment(site: Site, given: ReviewComment) -> Document:
    base = repository_url(site, given.repository)
    page = page_url(site, given.repository.issues[given.number])
    document = {
        **written(site, "PullRequestReviewComment", given),
        **dated(given),
        "url": f"{base}/pulls/comments/{given.id}",
        "html_url": f"{page}#discussion_r{given.id}",
        "pull_request_url": f"{base}/pulls/{given.number}",
        "pull_request_review_id": given.review_id,
        "diff_hunk": given.diff_hunk,
        "path": given.path,
        "commit_id": given.commit,
        "start_line": given.start_line,
        "line": given.line,
        "side": given.side,
    }
    if given.in_reply_to is not None:
        document["in_reply_to_id"] = given.in_reply_to
    return document
