"""JSON documents of accounts, repositories, issues, comments, labels and reactions."""

import base64
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests.parts.github_server.exchange import Site
from tests.parts.github_server.state import (
    ROLES,
    Account,
    Comment,
    Issue,
    Label,
    Reaction,
    Repository,
    Review,
    ReviewComment,
)

Document = dict[str, Any]

REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")

LINKS_OF_ACCOUNT = (
    "followers following gists starred subscriptions organizations repos events received_events"
)
LINKS_OF_REPOSITORY = (
    "archive assignees blobs branches collaborators comments commits compare contents contributors "
    "deployments downloads events forks git_commits git_refs git_tags hooks issue_comment "
    "issue_events issues keys labels languages merges milestones notifications pulls releases "
    "stargazers statuses subscribers subscription tags teams trees git ssh svn"
)
"""Fields that GitHub requires and nobody reads: their names are without `_url` at the end."""


def links(base: str, names: str) -> Document:
    return {f"{name}_url": f"{base}/{name}" for name in names.split()}


def same(value: object, names: str) -> Document:
    """Return a document with this value for each of the names."""
    return dict.fromkeys(names.split(), value)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def maybe_stamp(moment: datetime | None) -> str | None:
    return stamp(moment) if moment else None


def node_id(kind: str, id: int | str) -> str:
    return base64.b64encode(f"{kind}:{id}".encode()).decode()


def account(site: Site, who: Account) -> Document:
    """The short form ("simple user")."""
    url = f"{site.api_url}/users/{who.login}"
    page = who.login if who.type != "Bot" else f"apps/{who.login.removesuffix('[bot]')}"
    return {
        "login": who.login,
        "id": who.id,
        "node_id": node_id("User", who.id),
        "avatar_url": f"{site.server_url}/avatars/u/{who.id}?v=4",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{site.server_url}/{page}",
        **links(url, LINKS_OF_ACCOUNT),
        "type": who.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def team(site: Site, organization: Account, slug: str) -> Document:
    """A team as lists show it."""
    url = f"{site.api_url}/organizations/{organization.id}/team/{slug}"
    return {
        "id": 1,
        "node_id": node_id("Team", slug),
        "name": slug,
        "slug": slug,
        "description": None,
        "privacy": "closed",
        "permission": "push",
        "url": url,
        "html_url": f"{site.server_url}/orgs/{organization.login}/teams/{slug}",
        "members_url": f"{url}/members{{/member}}",
        "repositories_url": f"{url}/repos",
        "parent": None,
        "type": "organization",
        "organization_id": organization.id,
    }


def account_page(site: Site, who: Account, at: datetime) -> Document:
    """The long public form, as GET /users/{username} and GET /user give it."""
    return account(site, who) | {
        "name": who.name,
        "email": who.email,
        **same(None, "company location hireable bio twitter_username"),
        "blog": "",
        **same(0, "public_repos public_gists followers following"),
        "created_at": stamp(at),
        "updated_at": stamp(at),
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
    """A repository as it appears inside other documents and in webhook payloads."""
    url = repository_url(site, repo)
    page = f"{site.server_url}/{repo.full_name}"
    open_issues = sum(issue.state == "open" for issue in repo.issues.values())
    return {
        "id": repo.id,
        "node_id": node_id("Repository", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.private,
        "owner": account(site, repo.owner),
        "html_url": page,
        "description": None,
        "fork": repo.parent is not None,
        "url": url,
        **links(url, LINKS_OF_REPOSITORY),
        "clone_url": f"{page}.git",
        "language": "Python",
        **same(None, "mirror_url homepage license"),
        **same(0, "forks_count stargazers_count watchers_count size forks watchers"),
        **same(open_issues, "open_issues_count open_issues"),
        **same(True, "has_issues has_projects has_wiki has_downloads allow_forking"),
        **same(False, "is_template has_pages has_discussions disabled web_commit_signoff_required"),
        **same(stamp(repo.created_at), "pushed_at created_at updated_at"),
        "default_branch": repo.default_branch,
        "topics": [],
        "archived": repo.archived,
        "visibility": "private" if repo.private else "public",
    }


def permission_flags(role: str) -> dict[str, bool]:
    names = {"read": "pull", "triage": "triage", "write": "push"}
    return {names.get(level, level): ROLES.index(role) >= ROLES.index(level) for level in ROLES[1:]}


def repository_page(site: Site, repo: Repository, role: str) -> Document:
    """The long form, as GET /repos/{owner}/{repo} gives it."""
    long = repository(site, repo) | {
        "permissions": permission_flags(role),
        **same(True, "allow_squash_merge allow_merge_commit allow_rebase_merge"),
        **same(False, "allow_auto_merge delete_branch_on_merge"),
        **same(1, "subscribers_count network_count"),
    }
    if repo.parent is not None:
        long |= same(repository(site, repo.parent), "parent source")
    return long


def reaction_counts(url: str, reactions: Sequence[Reaction]) -> Document:
    counts = Counter(reaction.content for reaction in reactions)
    return {
        "url": f"{url}/reactions",
        "total_count": len(reactions),
        **{name: counts[name] for name in REACTIONS},
    }


def reaction(site: Site, given: Reaction) -> Document:
    return {
        "id": given.id,
        "node_id": node_id("Reaction", given.id),
        "user": account(site, given.account),
        "content": given.content,
        "created_at": stamp(given.created_at),
    }


def label(site: Site, repo: Repository, given: Label) -> Document:
    return {
        "id": given.id,
        "node_id": node_id("Label", given.id),
        "url": f"{repository_url(site, repo)}/labels/{given.name}",
        "name": given.name,
        "color": given.color,
        "default": False,
        "description": given.description or "",
    }


def issue_url(site: Site, given: Issue) -> str:
    return f"{repository_url(site, given.repository)}/issues/{given.number}"


def page_url(site: Site, given: Issue) -> str:
    kind = "pull" if given.pull else "issues"
    return f"{site.server_url}/{given.repository.full_name}/{kind}/{given.number}"


def issue(site: Site, given: Issue) -> Document:
    repo, url, page = given.repository, issue_url(site, given), page_url(site, given)
    assignees = [account(site, who) for who in given.assignees]
    document: Document = {
        "url": url,
        "repository_url": repository_url(site, repo),
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "html_url": page,
        "id": given.id,
        "node_id": node_id("PullRequest" if given.pull else "Issue", given.id),
        "number": given.number,
        "title": given.title,
        "user": account(site, given.author),
        "labels": [label(site, repo, repo.labels[name.lower()]) for name in given.labels],
        "state": given.state,
        "state_reason": given.state_reason,
        "locked": given.locked,
        "active_lock_reason": None,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "milestone": given.milestone,
        "type": given.type,
        "comments": len(given.comments),
        "created_at": stamp(given.created_at),
        "updated_at": stamp(given.updated_at),
        "closed_at": maybe_stamp(given.closed_at),
        "author_association": association(repo, given.author),
        "body": given.body,
        "reactions": reaction_counts(url, given.reactions),
        "performed_via_github_app": None,
    }
    if given.pull:
        document["draft"] = given.pull.draft
        document["pull_request"] = {
            "url": f"{repository_url(site, repo)}/pulls/{given.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": maybe_stamp(given.pull.merged_at),
        }
    return document


def comment(site: Site, given: Comment) -> Document:
    repo = given.repository
    parent = repo.issues[given.number]
    url = f"{repository_url(site, repo)}/issues/comments/{given.id}"
    return {
        "url": url,
        "html_url": f"{page_url(site, parent)}#issuecomment-{given.id}",
        "issue_url": issue_url(site, parent),
        "id": given.id,
        "node_id": node_id("IssueComment", given.id),
        "user": account(site, given.author),
        "created_at": stamp(given.created_at),
        "updated_at": stamp(given.updated_at),
        "author_association": association(repo, given.author),
        "body": given.body,
        "reactions": reaction_counts(url, given.reactions),
        "performed_via_github_app": None,
    }


def review(site: Site, given: Review) -> Document:
    repo = given.repository
    pull_url = f"{repository_url(site, repo)}/pulls/{given.number}"
    page = f"{page_url(site, repo.issues[given.number])}#pullrequestreview-{given.id}"
    document: Document = {
        "id": given.id,
        "node_id": node_id("PullRequestReview", given.id),
        "user": account(site, given.author),
        "body": given.body,
        "state": given.state,
        "html_url": page,
        "pull_request_url": pull_url,
        "_links": {"html": {"href": page}, "pull_request": {"href": pull_url}},
        "commit_id": given.commit,
        "author_association": association(repo, given.author),
    }
    if given.state != "PENDING":
        document["submitted_at"] = stamp(given.created_at)
    return document


def review_comment(site: Site, given: ReviewComment) -> Document:
    repo = given.repository
    base = repository_url(site, repo)
    url = f"{base}/pulls/comments/{given.id}"
    pull_url = f"{base}/pulls/{given.number}"
    page = f"{page_url(site, repo.issues[given.number])}#discussion_r{given.id}"
    document: Document = {
        "url": url,
        "pull_request_review_id": given.review_id,
        "id": given.id,
        "node_id": node_id("PullRequestReviewComment", given.id),
        "diff_hunk": given.diff_hunk,
        "path": given.path,
        "position": 1,
        "original_position": 1,
        "commit_id": given.commit,
        "original_commit_id": given.commit,
        "user": account(site, given.author),
        "body": given.body,
        "created_at": stamp(given.created_at),
        "updated_at": stamp(given.updated_at),
        "html_url": page,
        "pull_request_url": pull_url,
        "author_association": association(repo, given.author),
        "_links": {
            "self": {"href": url},
            "html": {"href": page},
            "pull_request": {"href": pull_url},
        },
        "start_line": given.start_line,
        "original_start_line": given.start_line,
        "start_side": given.side if given.start_line else None,
        "line": given.line,
        "original_line": given.line,
        "side": given.side,
        "subject_type": "line",
        "reactions": reaction_counts(url, given.reactions),
    }
    if given.in_reply_to is not None:
        document["in_reply_to_id"] = given.in_reply_to
    return document
