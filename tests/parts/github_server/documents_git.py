"""JSON documents of pull requests, commits, refs, branches, files and check runs."""

import base64
from typing import Any
from urllib.parse import quote

from tests.parts.github_server import documents_core as core
from tests.parts.github_server.bare import CommitFacts, Entry, FileDiff, Signature
from tests.parts.github_server.documents_core import Document
from tests.parts.github_server.exchange import Site
from tests.parts.github_server.state import CheckRun, Issue, IssueEvent, Pull, Push, Repository


def tips(given: Issue) -> tuple[str, str]:
    """Base and head of a pull request: the branches' tips now, or the last ones known."""
    pull = given.pull
    assert pull is not None
    if given.state == "open":
        pull.last_base = given.repository.git.tip(pull.base) or pull.last_base
        pull.last_head = pull.head_repository.git.tip(pull.head) or pull.last_head
        _show(given.number, given.repository, pull)
    return pull.last_base, pull.last_head


def _show(number: int, repository: Repository, pull: Pull) -> None:
    """refs/pull/N/head, through which a fork's commits are reached in the repository itself."""
    git, name = repository.git, f"refs/pull/{number}/head"
    if git.ref(name) == pull.last_head:
        return
    if git.resolve(pull.last_head) is None:
        git.git("fetch", "--quiet", str(pull.head_repository.git.path), pull.last_head)
    git.git("update-ref", name, pull.last_head)


def fork_point(given: Issue) -> tuple[str, str]:
    """Return the commit where the head left the base, and the head: the two ends of the diff."""
    base, head = tips(given)
    return given.repository.git.merge_base(base, head) or base, head


def _end(site: Site, repo: Repository, branch: str, sha: str) -> Document:
    return {
        "label": f"{repo.owner.login}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": core.account(site, repo.owner),
        "repo": core.repository(site, repo),
    }


def pull_short(site: Site, given: Issue) -> Document:
    """A pull request as lists show it."""
    pull = given.pull
    assert pull is not None
    base_sha, head_sha = tips(given)
    repo = given.repository
    api = core.repository_url(site, repo)
    url, page = f"{api}/pulls/{given.number}", core.page_url(site, given)
    issue_url = core.issue_url(site, given)
    links = {
        "self": url,
        "html": page,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{url}/comments",
        "review_comment": f"{api}/pulls/comments{{/number}}",
        "commits": f"{url}/commits",
        "statuses": f"{api}/statuses/{head_sha}",
    }
    assignees = [core.account(site, who) for who in given.assignees]
    return {
        "url": url,
        "id": pull.id,
        "node_id": core.node_id("PullRequest", pull.id),
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": issue_url,
        **{f"{name}_url": href for name, href in list(links.items())[3:]},
        "number": given.number,
        "state": given.state,
        "locked": given.locked,
        "title": given.title,
        "user": core.account(site, given.author),
        "body": given.body,
        "labels": [core.label(site, repo, repo.labels[name.lower()]) for name in given.labels],
        "milestone": None,
        "active_lock_reason": None,
        "created_at": core.stamp(given.created_at),
        "updated_at": core.stamp(given.updated_at),
        "closed_at": core.maybe_stamp(given.closed_at),
        "merged_at": core.maybe_stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_commit or None,
        "assignee": assignees[0] if assignees else None,
        "assignees": assignees,
        "requested_reviewers": [core.account(site, who) for who in pull.reviewers],
        "requested_teams": [core.team(site, repo.owner, slug) for slug in pull.teams],
        "head": _end(site, pull.head_repository, pull.head, head_sha),
        "base": _end(site, repo, pull.base, base_sha),
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": core.association(repo, given.author),
        "auto_merge": None,
        "draft": pull.draft,
    }


def pull(site: Site, given: Issue) -> Document:
    """A pull request alone, with what is counted from git."""
    mine: Pull | None = given.pull
    assert mine is not None
    git = given.repository.git
    base, head = fork_point(given)
    files = git.changes(base, head)
    open_now = given.state == "open"
    clean = git.merges_cleanly(tips(given)[0], head) if open_now else None
    states = {True: "clean", False: "dirty", None: "unknown"}
    return pull_short(site, given) | {
        "merged": mine.merged_at is not None,
        "mergeable": clean,
        "rebaseable": clean,
        "mergeable_state": "draft" if mine.draft and clean else states[clean],
        "merged_by": None,
        "comments": len(given.comments),
        "review_comments": len(given.review_comments),
        "maintainer_can_modify": mine.maintainer_can_modify,
        "commits": len(git.between(base, head)),
        "additions": sum(file.additions for file in files),
        "deletions": sum(file.deletions for file in files),
        "changed_files": len(files),
    }


def file_diff(site: Site, repo: Repository, ends: tuple[str, str], diff: FileDiff) -> Document:
    """ends: base and head of the comparison."""
    revision = ends[1]
    page = f"{site.server_url}/{repo.full_name}"
    path = quote(diff.path, safe="")
    document: Document = {
        "sha": diff.sha,
        "filename": diff.path,
        "status": diff.status,
        "additions": diff.additions,
        "deletions": diff.deletions,
        "changes": diff.additions + diff.deletions,
        "blob_url": f"{page}/blob/{revision}/{path}",
        "raw_url": f"{page}/raw/{revision}/{path}",
        "contents_url": f"{core.repository_url(site, repo)}/contents/{path}?ref={revision}",
    }
    patch = repo.git.patch(*ends, diff)
    if patch is not None:
        document["patch"] = patch
    if diff.previous is not None:
        document["previous_filename"] = diff.previous
    return document


def _signature(given: Signature) -> Document:
    return {"name": given.name, "email": given.email, "date": core.stamp(given.date)}


def commit(site: Site, repo: Repository, facts: CommitFacts) -> Document:
    """A commit as lists show it."""
    api, page = core.repository_url(site, repo), f"{site.server_url}/{repo.full_name}"
    return {
        "sha": facts.sha,
        "node_id": core.node_id("Commit", facts.sha),
        "commit": {
            "author": _signature(facts.author),
            "committer": _signature(facts.committer),
            "message": facts.message,
            "tree": {"sha": facts.tree, "url": f"{api}/git/trees/{facts.tree}"},
            "url": f"{api}/git/commits/{facts.sha}",
            "comment_count": 0,
            "verification": {
                "verified": False,
                "reason": "unsigned",
                **core.same(None, "signature payload verified_at"),
            },
        },
        "url": f"{api}/commits/{facts.sha}",
        "html_url": f"{page}/commit/{facts.sha}",
        "comments_url": f"{api}/commits/{facts.sha}/comments",
        "author": None,
        "committer": None,
        "parents": [
            {
                "sha": parent,
                "url": f"{api}/commits/{parent}",
                "html_url": f"{page}/commit/{parent}",
            }
            for parent in facts.parents
        ],
    }


def commit_page(site: Site, repo: Repository, facts: CommitFacts) -> Document:
    """A commit alone, with its files."""
    empty_tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    before = facts.parents[0] if facts.parents else empty_tree
    files = repo.git.changes(before, facts.sha)
    additions = sum(file.additions for file in files)
    deletions = sum(file.deletions for file in files)
    return commit(site, repo, facts) | {
        "stats": {"total": additions + deletions, "additions": additions, "deletions": deletions},
        "files": [file_diff(site, repo, (before, facts.sha), file) for file in files],
    }


def ref(site: Site, repo: Repository, name: str, sha: str, kind: str) -> Document:
    api = core.repository_url(site, repo)
    return {
        "ref": name,
        "node_id": core.node_id("Ref", name),
        "url": f"{api}/git/{name}",
        "object": {"sha": sha, "type": kind, "url": f"{api}/git/{kind}s/{sha}"},
    }


def activity(site: Site, push: Push) -> Document:
    return {
        "id": push.id,
        "node_id": core.node_id("Push", push.id),
        "before": push.before,
        "after": push.after,
        "ref": f"refs/heads/{push.branch}",
        "timestamp": core.stamp(push.at),
        "activity_type": push.kind,
        "actor": core.account(site, push.account) if push.account else None,
    }


def issue_event(site: Site, repo: Repository, given: IssueEvent) -> Document:
    document: Document = {
        "id": given.id,
        "node_id": core.node_id("IssueEvent", given.id),
        "url": f"{core.repository_url(site, repo)}/issues/events/{given.id}",
        "actor": core.account(site, given.account),
        "event": given.event,
        "commit_id": None,
        "commit_url": None,
        "created_at": core.stamp(given.at),
        "performed_via_github_app": None,
    }
    if given.event == "renamed":
        old, new = given.words
        return document | {"rename": {"from": old, "to": new}}
    [name] = given.words
    label = repo.labels[name.lower()]
    return document | {"label": {"name": label.name, "color": label.color}}


def branch_short(site: Site, repo: Repository, name: str, sha: str) -> Document:
    url = f"{core.repository_url(site, repo)}/commits/{sha}"
    return {"name": name, "commit": {"sha": sha, "url": url}, "protected": False}


def branch(site: Site, repo: Repository, name: str, facts: CommitFacts) -> Document:
    url = f"{core.repository_url(site, repo)}/branches/{name}"
    listed = repo.git_dir / "protected"
    protected = listed.exists() and f"refs/heads/{name}" in listed.read_text().splitlines()
    return {
        "name": name,
        "commit": commit(site, repo, facts),
        "_links": {"self": url, "html": f"{site.server_url}/{repo.full_name}/tree/{name}"},
        "protected": protected,
        "protection": {
            "enabled": protected,
            "required_status_checks": {
                "enforcement_level": "off",
                "contexts": [],
                "checks": [],
            },
        },
        "protection_url": f"{url}/protection",
    }


def content(site: Site, repo: Repository, revision: str, entry: Entry) -> Document:
    """A file or folder as a listing shows it."""
    api, page = core.repository_url(site, repo), f"{site.server_url}/{repo.full_name}"
    path = quote(entry.path)
    url = f"{api}/contents/{path}?ref={revision}"
    is_folder = entry.kind == "tree"
    git_url = f"{api}/git/{'trees' if is_folder else 'blobs'}/{entry.sha}"
    html_url = f"{page}/{'tree' if is_folder else 'blob'}/{revision}/{path}"
    return {
        "name": entry.path.rsplit("/", 1)[-1],
        "path": entry.path,
        "sha": entry.sha,
        "size": entry.size or 0,
        "url": url,
        "html_url": html_url,
        "git_url": git_url,
        "download_url": None if is_folder else f"{page}/raw/{revision}/{path}",
        "type": "dir" if is_folder else "symlink" if entry.mode == "120000" else "file",
        "_links": {"self": url, "git": git_url, "html": html_url},
    }


def content_file(site: Site, repo: Repository, revision: str, entry: Entry) -> Document:
    """A file alone, with its bytes (up to a megabyte, as on GitHub)."""
    raw = repo.git.blob(entry.sha)
    document = content(site, repo, revision, entry)
    if document["type"] == "symlink":
        return document | {"target": raw.decode("utf-8", "replace")}
    if len(raw) > 1 << 20:
        return document | {"content": "", "encoding": "none"}
    return document | {"content": base64.encodebytes(raw).decode(), "encoding": "base64"}


def check_run(site: Site, repo: Repository, given: CheckRun) -> Document:
    page = f"{site.server_url}/{repo.full_name}/runs/{given.id}"
    values: dict[str, Any] = given.values
    output = values.get("output") or {}
    url = f"{core.repository_url(site, repo)}/check-runs/{given.id}"
    return {
        "id": given.id,
        "name": given.name,
        "node_id": core.node_id("CheckRun", given.id),
        "head_sha": given.head_sha,
        "external_id": values.get("external_id", ""),
        "url": url,
        "html_url": page,
        "details_url": values.get("details_url", page),
        "status": values.get("status", "queued"),
        "conclusion": values.get("conclusion"),
        "started_at": values.get("started_at"),
        "completed_at": values.get("completed_at"),
        "output": {
            "title": output.get("title"),
            "summary": output.get("summary"),
            "text": output.get("text"),
            "annotations_count": len(output.get("annotations", ())),
            "annotations_url": f"{url}/annotations",
        },
        "check_suite": {"id": values.get("suite", given.id)},
        "app": {
            "id": given.app.id,
            "slug": given.app.slug,
            "node_id": core.node_id("App", given.app.id),
            "owner": core.account(site, given.app.account),
            "name": given.app.slug,
            "description": None,
            "external_url": site.server_url,
            "html_url": f"{site.server_url}/apps/{given.app.slug}",
            "created_at": core.stamp(repo.created_at),
            "updated_at": core.stamp(repo.created_at),
            "permissions": dict(given.app.permissions),
            "events": [],
        },
        "pull_requests": [],
    }
