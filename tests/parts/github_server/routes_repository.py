"""REST endpoints of accounts, repositories, what git holds, checks and settings."""

import subprocess
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlencode

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server import documents_git as documents
from tests.parts.github_server.exchange import (
    REPO,
    ROUTES,
    Answer,
    ApiError,
    Call,
    Caller,
    invalid,
    not_found,
)
from tests.parts.github_server.state import CheckRun, Push, Repository, Status, World


@ROUTES.add("GET /users/{username}")
def get_user(call: Call) -> Answer:
    account = call.world.accounts.get(call.at["username"].lower())
    if account is None:
        raise not_found()
    return Answer(200, core.account(call.site, account))


@ROUTES.add(f"GET {REPO}")
def get_repository(call: Call) -> Answer:
    repository = access.repository_of(call)
    role = access.role(call.caller.token, repository)
    document = core.repository(call.site, repository)
    return Answer(200, {**document, "permissions": core.permission_flags(role)})


@ROUTES.add(f"GET {REPO}/collaborators/{{username}}/permission")
def get_permission(call: Call) -> Answer:
    repository = access.repository_of(call)
    if access.role(call.caller.token, repository) not in ("write", "maintain", "admin"):
        raise ApiError(403, "Must have push access to view collaborator permission.")
    account = call.world.accounts.get(call.at["username"].lower())
    if account is None:
        raise ApiError(404, f"{call.at['username']} is not a user")
    role = repository.role_of(account)
    # The old word knows four levels: triage counts as read, maintain as write.
    coarse = {"triage": "read", "maintain": "write"}.get(role, role)
    user = core.account(call.site, account) | {
        "permissions": core.permission_flags(role),
        "role_name": role,
    }
    return Answer(200, {"permission": coarse, "role_name": role, "user": user})


@ROUTES.add(f"GET {REPO}/branches/{{branch}}")
def get_branch(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    name = call.at["branch"]
    tip = repository.git.tip(name)
    if tip is None:
        raise ApiError(404, "Branch not found")
    listed = repository.git_dir / "protected"
    protected = listed.exists() and f"refs/heads/{name}" in listed.read_text().splitlines()
    return Answer(200, {"name": name, "commit": {"sha": tip}, "protected": protected})


@ROUTES.add(f"GET {REPO}/git/matching-refs/{{ref}}")
def matching_refs(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    rows = sorted(repository.git.refs(f"refs/{call.at['ref']}").items())
    # All of them: this list has no pages.
    return Answer(200, [documents.ref(call.site, repository, row[0], *row[1]) for row in rows])


@ROUTES.add(f"POST {REPO}/git/refs")
def create_ref(call: Call) -> Answer:
    repository, _ = access.writable(call, "contents", role_needed="write")
    sent = call.body()
    name, sha = str(sent.get("ref", "")), str(sent.get("sha", ""))
    if not name.startswith("refs/") or name.count("/") < 2:
        raise ApiError(422, "Reference name must start with 'refs/' and contain two slashes.")
    if repository.git.refs(name).get(name):
        raise ApiError(422, "Reference already exists")
    if repository.git.resolve(sha) is None:
        raise ApiError(422, "Object does not exist")
    try:
        repository.git.git("update-ref", name, sha)
    except subprocess.CalledProcessError:
        raise ApiError(422, "Reference name is not valid") from None
    return Answer(201, documents.ref(call.site, repository, name, sha, "commit"))


@ROUTES.add(f"PATCH {REPO}/git/refs/{{ref}}")
def update_ref(call: Call) -> Answer:
    repository, _ = access.writable(call, "contents", role_needed="write")
    sent = call.body()
    name, sha = f"refs/{call.at['ref']}", str(sent.get("sha", ""))
    found = repository.git.refs(name).get(name)
    if found is None:
        raise ApiError(422, "Reference does not exist")
    if repository.git.resolve(sha) is None:
        raise ApiError(422, "Object does not exist")
    if not sent.get("force", False) and repository.git.merge_base(found[0], sha) != found[0]:
        raise ApiError(422, "Update is not a fast forward")
    repository.git.git("update-ref", name, sha)
    return Answer(200, documents.ref(call.site, repository, name, sha, "commit"))


@ROUTES.add(f"DELETE {REPO}/git/refs/{{ref}}")
def delete_ref(call: Call) -> Answer:
    repository, _ = access.writable(call, "contents", role_needed="write")
    name = f"refs/{call.at['ref']}"
    if name not in repository.git.refs(name):
        raise ApiError(422, "Reference does not exist")
    repository.git.git("update-ref", "-d", name)
    return Answer(204)


def _revision(call: Call, repository: Repository, name: str) -> str:
    sha = repository.git.tip(name) or repository.git.resolve(name)
    if sha is None:
        raise ApiError(404, f"No commit found for the ref {name}")
    return sha


@ROUTES.add(f"GET {REPO}/contents/{{path}}")
def get_content(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    revision = call.query.get("ref", repository.default_branch)
    path = call.at.get("path", "").strip("/")
    entries = repository.git.entries(_revision(call, repository, revision), path)
    if entries is None:
        raise not_found()
    if [entry.path for entry in entries] == [path]:
        return Answer(200, documents.content_file(call.site, repository, revision, entries[0]))
    return Answer(
        200, [documents.content(call.site, repository, revision, entry) for entry in entries]
    )


@ROUTES.add(f"GET {REPO}/commits")
def list_commits(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    git = repository.git
    start = _revision(call, repository, call.query.get("sha", repository.default_branch))
    rows = git.text("rev-list", start).split()
    return call.page(rows, lambda sha: documents.commit(call.site, repository, git.facts(sha)))


@ROUTES.add(f"GET {REPO}/commits/{{ref}}")
def get_commit(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    git, name = repository.git, call.at["ref"]
    sha = git.tip(name) or git.resolve(name)
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {name}")
    return Answer(200, documents.commit(call.site, repository, git.facts(sha)))


@ROUTES.add(f"POST {REPO}/check-runs")
def create_check_run(call: Call) -> Answer:
    repository = access.repository_of(call)
    token = call.caller.token
    apps = {app.account.login: app for app in call.world.apps.values()}
    app = apps.get(token.account.login) if token else None
    if app is None:
        raise ApiError(403, "You must authenticate via a GitHub App.")
    access.may_write(call, repository, "checks")
    sent = call.body()
    head = repository.git.resolve(str(sent.get("head_sha", "")))
    if head is None:
        raise invalid("CheckRun", "head_sha")
    run = CheckRun(next(call.world.ids), str(sent.get("name")), head, app, {})
    _set_check_run(run, sent)
    repository.check_runs.append(run)
    return Answer(201, documents.check_run(call.site, repository, run))


def _set_check_run(run: CheckRun, sent: dict[str, Any]) -> None:
    run.values |= sent
    if "conclusion" in sent:
        run.values["status"] = "completed"


@ROUTES.add(f"GET {REPO}/commits/{{ref}}/check-runs")
def list_check_runs(call: Call) -> Answer:
    repository = access.repository_of(call)
    sha = _revision(call, repository, call.at["ref"])
    rows = [run for run in repository.check_runs if run.head_sha == sha]
    page = call.page(rows, lambda run: documents.check_run(call.site, repository, run))
    return Answer(200, {"total_count": len(rows), "check_runs": page.document}, page.headers)


def note_pushes(world: World, repository: Repository) -> None:
    """Remembers the branches whose tips have changed since the last look."""
    by, repository.pusher = repository.pusher or repository.owner, None
    known = {push.branch: push.after for push in repository.pushes}
    for name, (tip, _) in repository.git.refs("refs/heads/").items():
        branch = name.removeprefix("refs/heads/")
        before = known.get(branch)
        if before == tip:
            continue
        kind = "branch_creation"
        if before is not None:
            kind = "push" if repository.git.merge_base(before, tip) == before else "force_push"
        push = Push(next(world.ids), branch, before or "0" * 40, tip, world.now(), by, kind)
        repository.pushes.append(push)
        for issue in repository.issues.values():
            pull = issue.pull if issue.state == "open" else None
            if pull and pull.head == branch and pull.head_repository is repository:
                issue.updated_at = push.at


@ROUTES.add(f"GET {REPO}/activity")
def list_activity(call: Call) -> Answer:
    repository = access.readable(call, "contents")
    note_pushes(call.world, repository)
    wanted = call.query.get("ref", "").removeprefix("refs/heads/")
    rows = [push for push in repository.pushes if wanted in ("", push.branch)]
    if call.query.get("direction", "desc") == "desc":
        rows.reverse()
    return _after(call, rows)


def _after(call: Call, rows: list[Push]) -> Answer:
    """The page after the push that `after` names: this list is not counted in pages."""
    ids = [str(push.id) for push in rows]
    start = ids.index(call.query["after"]) + 1 if call.query.get("after") in ids else 0
    shown = rows[start : start + min(int(call.query.get("per_page", "30")), 100)]
    links = {}
    if shown and shown[-1] is not rows[-1]:
        query = urlencode({**call.query, "after": str(shown[-1].id)})
        links["Link"] = f'<{call.site.api_url}{call.exchange.path}?{query}>; rel="next"'
    return Answer(200, [documents.activity(call.site, push) for push in shown], links)


Document = dict[str, Any]


def _run_of(call: Call, repository: Repository, name: str) -> CheckRun:
    id = call.number(name)
    found = next((run for run in repository.check_runs if run.id == id), None)
    if found is None:
        raise not_found()
    return found


@ROUTES.add(f"GET {REPO}/check-runs/{{check_run_id}}/annotations")
def list_annotations(call: Call) -> Answer:
    repository = access.readable(call, "checks")
    run = _run_of(call, repository, "check_run_id")
    given = (run.values.get("output") or {}).get("annotations", ())
    return call.page(given, _annotation)


def _annotation(given: Document) -> Document:
    return {"end_line": given["start_line"], "title": None, **given}


@ROUTES.add(f"GET {REPO}/commits/{{ref}}/statuses")
def list_statuses(call: Call) -> Answer:
    repository = access.readable(call, "statuses")
    sha = repository.git.resolve(call.at["ref"])
    rows = [status for status in reversed(repository.statuses) if status.commit == sha]
    return call.page(rows, _status)


def _status(given: Status) -> Document:
    return {
        "id": given.id,
        "state": given.state,
        "description": given.description,
        "target_url": None,
        "context": given.context,
        "created_at": core.stamp(given.at),
        "updated_at": core.stamp(given.at),
    }


def _job_run(call: Call, repository: Repository) -> CheckRun:
    access.may_read(call, repository, "actions")
    run = _run_of(call, repository, "job_id")
    if run.app.slug != "github-actions":
        raise not_found()
    return run


@ROUTES.add(f"GET {REPO}/actions/jobs/{{job_id}}")
def get_job(call: Call) -> Answer:
    repository = access.repository_of(call)
    run = _job_run(call, repository)
    document = {
        "id": run.id,
        "head_sha": run.head_sha,
        "workflow_name": "CI",
        "name": run.name,
        "steps": [_step(n, name, ended) for n, (name, ended) in enumerate(run.steps, 1)],
    }
    return Answer(200, document)


def _step(number: int, name: str, conclusion: str) -> Document:
    return {"name": name, "status": "completed", "conclusion": conclusion, "number": number}


@ROUTES.add(f"GET {REPO}/actions/jobs/{{job_id}}/logs")
def get_job_log(call: Call) -> Answer:
    """Redirect to the log, which is on another host for a minute."""
    repository = access.repository_of(call)
    run = _job_run(call, repository)
    if run.log is None:
        raise not_found()
    return Answer(302, None, {"Location": f"{call.world.files_url(call.site.server_url)}{run.log}"})


def completed(moment: datetime, conclusion: str) -> Document:
    """Return the fields of a completed check run."""
    at = core.stamp(moment)
    return {"status": "completed", "conclusion": conclusion, "started_at": at, "completed_at": at}


def with_scopes(answer: Answer, caller: Caller) -> Answer:
    """The answer as it is given to the holder of that token."""
    if caller.token is None or caller.token.scopes is None:
        return answer
    named = {"X-OAuth-Scopes": ", ".join(caller.token.scopes)}
    return Answer(answer.status, answer.document, {**answer.headers, **named})


@ROUTES.add(f"GET {REPO}/actions/permissions/workflow")
def workflow_permissions(call: Call) -> Answer:
    repository = access.repository_of(call)
    token = call.caller.token
    may = token is not None and access.has_permission(token, "administration", "read")
    if not may or access.role(token, repository) != "admin":
        raise ApiError(403, "Must have admin rights to Repository.")
    level = "write" if repository.workflow_token_writes else "read"
    return Answer(
        200,
        {
            "default_workflow_permissions": level,
            "can_approve_pull_request_reviews": repository.actions_may_create_pulls,
        },
    )


@ROUTES.add(f"GET {REPO}/rules/branches/{{branch}}")
def branch_rules(call: Call) -> Answer:
    """The branch need not exist."""
    repository = access.repository_of(call)
    found: list[dict[str, Any]] = [
        {
            "type": kind,
            "ruleset_source_type": "Repository",
            "ruleset_source": repository.full_name,
            "ruleset_id": 1,
        }
        for pattern, kind in repository.rules
        if fnmatchcase(call.at["branch"], pattern)
    ]
    return call.page(found, lambda rule: rule)
