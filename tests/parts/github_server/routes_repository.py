"""REST endpoints of accounts, Apps, repositories and what git holds."""

import subprocess
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server import documents_git as documents
from tests.parts.github_server.exchange import (
    REPO,
    ROUTES,
    Answer,
    ApiError,
    Call,
    invalid,
    not_found,
)
from tests.parts.github_server.state import CheckRun, Repository


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
