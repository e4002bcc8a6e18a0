"""JSON documents of pull requests, commits, refs, branches, files and check runs."""

import base64
from typing import Any
from urllib.parse import quote

from tests.parts.github_server import documents_core as core
from tests.parts.github_server.bare import CommitFacts, Entry
from tests.parts.github_server.documents_core import Document
from tests.parts.github_server.exchange import Site
from tests.parts.github_server.state import CheckRun, Issue, Pull, Push, Repository


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
    return {
        **core.subject(site, given),
        "id": pull.id,
        "url": f"{core.repository_url(site, given.repository)}/pulls/{given.number}",
        "issue_url": core.issue_url(site, given),
        "merged_at": core.maybe_stamp(pull.merged_at),
        "merge_commit_sha": pull.merge_commit or None,
        "requested_reviewers": [core.account(site, who) for who in pull.reviewers],
        "requested_teams": [{"slug": slug, "name": slug} for slug in pull.teams],
        "head": _end(site, pull.head_repository, pull.head, head_sha),
        "base": _end(site, given.repository, pull.base, base_sha),
        "draft": pull.draft,
    }


def pull(site: Site, given: Issue) -> Document:
    """A pull request alone."""
    mine = given.pull
    assert mine is not None
    return pull_short(site, given) | {
        "merged": mine.merged_at is not None,
        "maintainer_can_modify": mine.maintainer_can_modify,
    }


def signatures(facts: CommitFacts) -> Document:
    people = (("author", facts.author), ("committer", facts.committer))
    return {
        role: {"name": who.name, "email": who.email, "date": core.stamp(who.date)}
        for role, who in people
    }


def commit(site: Site, repo: Repository, facts: CommitFacts) -> Document:
    """A commit as lists show it."""
    api = core.repository_url(site, repo)
    return {
        "sha": facts.sha,
        "commit": {**signatures(facts), "message": facts.message, "tree": {"sha": facts.tree}},
        "url": f"{api}/commits/{facts.sha}",
        "html_url": f"{site.server_url}/{repo.full_name}/commit/{facts.sha}",
        "parents": [{"sha": parent, "url": f"{api}/commits/{parent}"} for parent in facts.parents],
    }


def ref(site: Site, repo: Repository, name: str, sha: str, kind: str) -> Document:
    url = f"{core.repository_url(site, repo)}/git/{name}"
    return {"ref": name, "url": url, "object": {"sha": sha, "type": kind}}


def activity(site: Site, push: Push) -> Document:
    return {
        "id": push.id,
        "before": push.before,
        "after": push.after,
        "ref": f"refs/heads/{push.branch}",
        "timestamp": core.stamp(push.at),
        "activity_type": push.kind,
        "actor": core.account(site, push.account) if push.account else None,
    }


def content(site: Site, repo: Repository, revision: str, entry: Entry) -> Document:
    """A file or folder as a listing shows it."""
    is_folder = entry.kind == "tree"
    return {
        "name": entry.path.rsplit("/", 1)[-1],
        "path": entry.path,
        "sha": entry.sha,
        "size": entry.size or 0,
        "url": f"{core.repository_url(site, repo)}/contents/{quote(entry.path)}?ref={revision}",
        "type": "dir" if is_folder else "symlink" if entry.mode == "120000" else "file",
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
    return {
        "id": given.id,
        "name": given.name,
        "head_sha": given.head_sha,
        "url": f"{core.repository_url(site, repo)}/check-runs/{given.id}",
        "html_url": page,
        "details_url": values.get("details_url", page),
        "status": values.get("status", "queued"),
        **{name: values.get(name) for name in ("conclusion", "started_at", "completed_at")},
        "output": {
            **{name: output.get(name) for name in ("title", "summary", "text")},
            "annotations_count": len(output.get("annotations", ())),
        },
        "check_suite": {"id": values.get("suite", given.id)},
        "app": core.app(site, given.app),
    }
