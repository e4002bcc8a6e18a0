"""REST endpoints of accounts, repositories, checks, Apps and their tokens, and teams."""

from datetime import timedelta
from fnmatch import fnmatchcase

from tests.parts.github_server import access, documents
from tests.parts.github_server.documents import Document
from tests.parts.github_server.exchange import Answer, ApiError, not_found
from tests.parts.github_server.routes_git import revision
from tests.parts.github_server.routing import Call, route
from tests.parts.github_server.state import App, CheckRun, Repository, Token, new_token

# Accounts and repositories


@route("GET ")
def get_repository(call: Call) -> Document:
    role = access.role(call.caller.token, call.repository)
    document = documents.repository(call.site, call.repository)
    return {**document, "permissions": documents.permission_flags(role)}


@route("GET collaborators/{username}/permission")
def get_permission(call: Call) -> Document:
    if not call.has_role("write"):
        raise ApiError(403, "Must have push access to view collaborator permission.")
    account = call.world.accounts[call.at["username"].lower()]
    role = call.repository.role_of(account)
    # The old word knows four levels: triage counts as read, maintain as write.
    coarse = {"triage": "read", "maintain": "write"}.get(role, role)
    flags = {"permissions": documents.permission_flags(role), "role_name": role}
    user = documents.account(call.site, account) | flags
    return {"permission": coarse, "role_name": role, "user": user}


@route("GET rules/branches/{branch}")
def branch_rules(call: Call) -> list[Document]:
    """The branch need not exist."""
    source = {"ruleset_source_type": "Repository", "ruleset_id": 1}
    return [
        {"type": kind, "ruleset_source": call.repository.full_name, **source}
        for pattern, kind in call.repository.rules
        if fnmatchcase(call.at["branch"], pattern)
    ]


@route("GET actions/permissions/workflow")
def workflow_permissions(call: Call) -> Document:
    may = access.has_permission(call.token, "administration", "read")
    if not may or not call.has_role("admin"):
        raise ApiError(403, "Must have admin rights to Repository.")
    return {
        "default_workflow_permissions": "read",
        "can_approve_pull_request_reviews": call.repository.actions_may_create_pulls,
    }


@route("GET /orgs/{org}/teams/{team_slug}/memberships/{username}")
def get_membership(call: Call) -> Answer:
    if not access.has_permission(call.token, "members", "read"):
        raise ApiError(403, "Resource not accessible by integration")
    team, login = f"{call.at['org']}/{call.at['team_slug']}".lower(), call.at["username"].lower()
    state = call.world.teams.get(team, {}).get(login)
    if state is None:
        return Answer(404)  # without a body, as GitHub describes it
    return Answer(200, {"role": "member", "state": state})


# Checks


@route("GET commits/{ref}/check-runs")
def list_check_runs(call: Call) -> Answer:
    sha = revision(call.repository, call.at["ref"])
    rows = [run for run in call.repository.check_runs if run.head_sha == sha]
    shown, headers = call.page(rows)
    return Answer(200, {"total_count": len(rows), "check_runs": shown}, headers)


@route("GET check-runs/{check_run_id}/annotations", "checks")
def list_annotations(call: Call) -> list[Document]:
    run = call.pick(call.repository.check_runs, "check_run_id")
    annotations = (run.values.get("output") or {}).get("annotations", ())
    return [{"end_line": row["start_line"], "title": None, **row} for row in annotations]


@route("GET commits/{ref}/statuses", "statuses")
def list_statuses(call: Call) -> list[Document]:
    sha = call.repository.git.resolve(call.at["ref"])
    return call.repository.statuses.get(sha or "", [])[::-1]


def _job(call: Call) -> CheckRun:
    run: CheckRun = call.pick(call.repository.check_runs, "job_id")
    if run.app.slug != "github-actions":
        raise not_found()
    return run


@route("GET actions/jobs/{job_id}", "actions")
def get_job(call: Call) -> Document:
    run = _job(call)
    steps = [
        {"name": name, "status": "completed", "conclusion": conclusion, "number": number}
        for number, (name, conclusion) in enumerate(run.steps, 1)
    ]
    named = {"id": run.id, "head_sha": run.head_sha, "workflow_name": "CI", "name": run.name}
    return {**named, "steps": steps}


@route("GET actions/jobs/{job_id}/logs", "actions")
def get_job_log(call: Call) -> Answer:
    """Redirect to the log, which is on another host for a minute."""
    log = _job(call).log
    if log is None:
        raise not_found()
    return Answer(302, None, {"Location": f"{call.world.files_url(call.site.server_url)}{log}"})


# Apps, their installations and tokens

route("GET /app")(lambda call: call.app)


@route("GET installation")
def get_installation(call: Call) -> Document:
    app, name = call.app, f"{call.at['owner']}/{call.at['repo']}".lower()
    outside = app.repositories is not None and name not in app.repositories
    if outside or name not in call.world.repositories:
        raise not_found()
    owner = call.world.repositories[name].owner
    known, key = app.installations, owner.login.lower()
    if key not in known:
        known[key] = next(call.world.ids) if known else app.installation_id
    return {
        "id": known[key],
        "account": owner,
        "app_id": app.id,
        "app_slug": app.slug,
        "permissions": dict(app.permissions),
        "events": app.events,
        "suspended_at": call.world.now() if app.suspended else None,
    }


@route("POST /app/installations/{installation_id}/access_tokens")
def create_installation_token(call: Call) -> Document:
    """Good for an hour of the world's clock."""
    app, id = call.app, call.number("installation_id")
    owners = [owner for owner, installation in app.installations.items() if installation == id]
    if not owners and id != app.installation_id:
        raise not_found()
    if app.suspended:
        raise ApiError(403, "This installation has been suspended")
    wanted = dict(call.sent.get("permissions") or app.permissions)
    for name, level in wanted.items():
        given = app.permissions.get(name, "none")
        if access.LEVELS.index(level) > access.LEVELS.index(given):
            raise ApiError(422, "The permissions requested are not granted to this installation.")
    chosen = _chosen(call, app, owners)
    names = app.repositories if chosen is None else _names(chosen)
    expires, value = call.world.now() + timedelta(hours=1), new_token("ghs_", long=True)
    call.world.tokens[value] = Token(value, app.account, wanted, names, expires_at=expires)
    return {
        "token": value,
        "expires_at": expires,
        "permissions": wanted,
        "repository_selection": "all" if names is None else "selected",
        **({} if chosen is None else {"repositories": chosen}),
    }


def _names(repositories: list[Repository]) -> frozenset[str]:
    return frozenset(repository.full_name.lower() for repository in repositories)


def _chosen(call: Call, app: App, owners: list[str]) -> list[Repository] | None:
    """The repositories that the token is asked for; None for all of the installation."""
    names = {str(name).lower() for name in call.sent.get("repositories", ())}
    ids = set(call.sent.get("repository_ids", ()))
    if not names and not ids:
        return None
    chosen = [
        repository
        for repository in call.world.repositories.values()
        if (repository.name.lower() in names or repository.id in ids)
        and (not owners or repository.owner.login.lower() in owners)
    ]
    outside = app.repositories is not None and not _names(chosen) <= app.repositories
    if outside or len(chosen) < len(names | ids):
        raise ApiError(
            422,
            "There is at least one repository that does not exist or is not accessible "
            "to the parent installation.",
        )
    return chosen


# Deliveries to an App's webhook


@route("GET /app/hook/deliveries")
def list_deliveries(call: Call) -> Answer:
    """The newest first, without what was delivered."""
    rows = [{n: v for n, v in row.items() if n != "request"} for row in call.app.deliveries]
    return call.page_after(rows[::-1], "cursor")


@route("GET /app/hook/deliveries/{delivery_id}")
def get_delivery(call: Call) -> Document:
    known = {row["id"]: row for row in call.app.deliveries}
    if call.number("delivery_id") not in known:
        raise not_found()
    return known[call.number("delivery_id")]
