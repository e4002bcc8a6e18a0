"""What the API shows of everything, as JSON documents.

They have the fields of GitHub's that clients read, not all of them. A document may hold objects of
`state`, which `render` replaces by their own documents.
"""

import base64
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tests.parts.github_server.exchange import Site
from tests.parts.github_server.state import (
    ROLES,
    Account,
    App,
    CheckRun,
    Comment,
    Document,
    Issue,
    Reaction,
    Repository,
    Review,
    ReviewComment,
    Text,
)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def node_id(kind: str, id: int | str) -> str:
    return base64.b64encode(f"{kind}:{id}".encode()).decode()


def render(site: Site, value: Any) -> Any:
    """The value as JSON has it, with the documents of the objects in it."""
    if isinstance(value, dict):
        return {name: render(site, part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [render(site, part) for part in value]
    if isinstance(value, datetime):
        return stamp(value)
    if callable(value):  # a row that costs something to show, on whatever page it is
        return render(site, value())
    shown = _DOCUMENTS.get(type(value))
    return render(site, shown(site, value)) if shown else value


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
        "owner": given.account,
        "html_url": f"{site.server_url}/apps/{given.slug}",
        "permissions": dict(given.permissions),
        "events": given.events,
    }


def repository_url(site: Site, repo: Repository) -> str:
    return f"{site.api_url}/repos/{repo.full_name}"


def repository(site: Site, repo: Repository) -> Document:
    return {
        "id": repo.id,
        "node_id": node_id("Repository", repo.id),
        "name": repo.name,
        "full_name": repo.full_name,
        "private": repo.private,
        "owner": repo.owner,
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
    shown = {"id": given.id, "user": given.account, "content": given.content}
    return {**shown, "created_at": given.created_at}


def page_url(site: Site, given: Issue) -> str:
    kind = "pull" if given.pull else "issues"
    return f"{site.server_url}/{given.repository.full_name}/{kind}/{given.number}"


def _association(text: Text) -> str:
    """GitHub's author_association: a word about the author, not a permission."""
    login, repo = text.author.login.lower(), text.repository
    if login in repo.associations:
        return repo.associations[login]
    if text.author is repo.owner:
        return "OWNER"
    return "COLLABORATOR" if login in repo.roles else "NONE"


def _text(kind: str, given: Text) -> Document:
    """What all texts of people have."""
    return {
        "id": given.id,
        "node_id": node_id(kind, given.id),
        "user": given.author,
        "body": given.body,
        "author_association": _association(given),
        "created_at": given.created_at,
        "updated_at": given.updated_at,
    }


def _subject(site: Site, given: Issue) -> Document:
    """What issues and pull requests have."""
    return {
        **_text("PullRequest" if given.pull else "Issue", given),
        "html_url": page_url(site, given),
        "number": given.number,
        "title": given.title,
        "labels": [{"name": name, "color": "ededed"} for name in given.labels],
        "state": given.state,
        "locked": given.locked,
        "assignees": given.assignees,
        "milestone": None,
        "closed_at": given.closed_at,
    }


def issue(site: Site, given: Issue) -> Document:
    api = repository_url(site, given.repository)
    document = {
        **_subject(site, given),
        "url": f"{api}/issues/{given.number}",
        "comments": len(given.comments),
    }
    if given.pull:
        document["draft"] = given.pull.draft
        document["pull_request"] = {
            "url": f"{api}/pulls/{given.number}",
            "html_url": page_url(site, given),
            "merged_at": given.pull.merged_at,
        }
    return document


def pull(site: Site, given: Issue, whole: bool = False) -> Document:
    """A pull request. whole: as it is shown alone, not in a list."""
    mine = given.pull
    assert mine is not None
    api = repository_url(site, given.repository)
    base_sha, head_sha = given.tips()

    def end(repo: Repository, branch: str, sha: str) -> Document:
        label = f"{repo.owner.login}:{branch}"
        return {"label": label, "ref": branch, "sha": sha, "user": repo.owner, "repo": repo}

    document = {
        **_subject(site, given),
        "id": mine.id,
        "url": f"{api}/pulls/{given.number}",
        "issue_url": f"{api}/issues/{given.number}",
        "merged_at": mine.merged_at,
        "merge_commit_sha": mine.merge_commit or None,
        "requested_reviewers": mine.reviewers,
        "requested_teams": [{"slug": slug, "name": slug} for slug in mine.teams],
        "head": end(mine.head_repository, mine.head, head_sha),
        "base": end(given.repository, mine.base, base_sha),
        "draft": mine.draft,
    }
    if whole:
        document["merged"] = mine.merged_at is not None
        document["maintainer_can_modify"] = mine.maintainer_can_modify
    return document


def comment(site: Site, given: Comment) -> Document:
    api = repository_url(site, given.repository)
    return {
        **_text("IssueComment", given),
        "url": f"{api}/issues/comments/{given.id}",
        "html_url": f"{page_url(site, given.issue)}#issuecomment-{given.id}",
        "issue_url": f"{api}/issues/{given.number}",
    }


def review(site: Site, given: Review) -> Document:
    written = _text("PullRequestReview", given)
    submitted_at = written.pop("created_at")
    del written["updated_at"]
    document = {
        **written,
        "state": given.state,
        "html_url": f"{page_url(site, given.issue)}#pullrequestreview-{given.id}",
        "pull_request_url": f"{repository_url(site, given.repository)}/pulls/{given.number}",
        "commit_id": given.commit,
    }
    return document if given.state == "PENDING" else {**document, "submitted_at": submitted_at}


def review_comment(site: Site, given: ReviewComment) -> Document:
    api = repository_url(site, given.repository)
    document = {
        **_text("PullRequestReviewComment", given),
        "url": f"{api}/pulls/comments/{given.id}",
        "html_url": f"{page_url(site, given.issue)}#discussion_r{given.id}",
        "pull_request_url": f"{api}/pulls/{given.number}",
        "pull_request_review_id": given.review_id,
        "commit_id": given.commit,
        **{name: getattr(given, name) for name in ("diff_hunk", "path", "start_line", "line")},
        "side": given.side,
    }
    if given.in_reply_to is not None:
        document["in_reply_to_id"] = given.in_reply_to
    return document


def commit(site: Site, repo: Repository, sha: str) -> Document:
    """A commit as lists show it."""
    api, facts = repository_url(site, repo), repo.git.facts(sha)
    return {
        "sha": facts.pop("sha"),
        "parents": [{**row, "url": f"{api}/commits/{row['sha']}"} for row in facts.pop("parents")],
        "commit": facts,
        "url": f"{api}/commits/{sha}",
        "html_url": f"{site.server_url}/{repo.full_name}/commit/{sha}",
    }


def ref(site: Site, repo: Repository, name: str, sha: str, kind: str = "commit") -> Document:
    url = f"{repository_url(site, repo)}/git/{name}"
    return {"ref": name, "url": url, "object": {"sha": sha, "type": kind}}


def content(site: Site, repo: Repository, revision: str, entry: Document) -> Document:
    """A file or folder as a listing shows it."""
    url = f"{repository_url(site, repo)}/contents/{quote(entry['path'])}?ref={revision}"
    return {**entry, "url": url}


def content_file(site: Site, repo: Repository, revision: str, entry: Document) -> Document:
    """A file alone, with its bytes (up to a megabyte, as on GitHub)."""
    raw, document = repo.git.blob(entry["sha"]), content(site, repo, revision, entry)
    if document["type"] == "symlink":
        return document | {"target": raw.decode("utf-8", "replace")}
    if len(raw) > 1 << 20:
        return document | {"content": "", "encoding": "none"}
    return document | {"content": base64.encodebytes(raw).decode(), "encoding": "base64"}


def check_run(site: Site, given: CheckRun) -> Document:
    values = given.values
    output = values.get("output") or {}
    return {
        "id": given.id,
        "name": given.name,
        "head_sha": given.head_sha,
        "details_url": values.get("details_url"),
        "status": values.get("status", "queued"),
        **{name: values.get(name) for name in ("conclusion", "started_at", "completed_at")},
        "output": {
            **{name: output.get(name) for name in ("title", "summary", "text")},
            "annotations_count": len(output.get("annotations", ())),
        },
        "check_suite": {"id": values.get("suite", given.id)},
        "app": given.app,
    }


_DOCUMENTS: dict[type, Callable[[Site, Any], Document]] = {
    Account: account,
    App: app,
    CheckRun: check_run,
    Comment: comment,
    Issue: issue,
    Reaction: reaction,
    Repository: repository,
    Review: review,
    ReviewComment: review_comment,
}
