"""REST endpoints of GitHub Apps, their installations and tokens, of webhooks and of teams."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as core
from tests.parts.github_server.exchange import REPO, ROUTES, Answer, ApiError, Call, not_found
from tests.parts.github_server.state import (
    Account,
    App,
    HookDelivery,
    Repository,
    Token,
    World,
    new_token,
)


def _app_of(call: Call) -> App:
    if call.caller.app is None:
        raise ApiError(401, "A JSON web token could not be decoded")
    return call.caller.app


@ROUTES.add("GET /app")
def get_app(call: Call) -> Answer:
    return Answer(200, core.app(call.site, _app_of(call)))


def installation_id(world: World, app: App, owner: str) -> int:
    """The id of the App's installation on that owner's account."""
    known = app.installations
    if owner.lower() not in known:
        known[owner.lower()] = next(world.ids) if known else app.installation_id
    return known[owner.lower()]


@ROUTES.add(f"GET {REPO}/installation")
def get_installation(call: Call) -> Answer:
    app = _app_of(call)
    full_name = f"{call.at['owner']}/{call.at['repo']}".lower()
    outside = app.repositories is not None and full_name not in app.repositories
    if outside or full_name not in call.world.repositories:
        raise not_found()
    owner = call.world.repositories[full_name].owner
    id = installation_id(call.world, app, owner.login)
    return Answer(200, _installation_document(call, app, owner, id))


def _installation_document(call: Call, app: App, owner: Account, id: int) -> dict[str, Any]:
    return {
        "id": id,
        "account": core.account(call.site, owner),
        "app_id": app.id,
        "app_slug": app.slug,
        "permissions": dict(app.permissions),
        "events": list(app.events),
        "suspended_at": core.stamp(call.world.now()) if app.suspended else None,
    }


@ROUTES.add("POST /app/installations/{installation_id}/access_tokens")
def create_installation_token(call: Call) -> Answer:
    """Good for an hour of the world's clock."""
    app = _app_of(call)
    id = call.number("installation_id")
    owners = [owner for owner, installation in app.installations.items() if installation == id]
    if not owners and id != app.installation_id:
        raise not_found()
    if app.suspended:
        raise ApiError(403, "This installation has been suspended")
    sent = call.body()
    wanted = sent.get("permissions") or app.permissions
    for name, level in wanted.items():
        given = app.permissions.get(name, "none")
        if access.LEVELS.index(level) > access.LEVELS.index(given):
            raise ApiError(422, "The permissions requested are not granted to this installation.")
    chosen = _chosen(call, app, owners, sent)
    repositories = app.repositories if chosen is None else _names(chosen)
    expires = call.world.now() + timedelta(hours=1)
    value = new_token("ghs_", long=True)
    token = Token(value, app.account, dict(wanted), repositories, expires_at=expires)
    call.world.tokens[value] = token
    document: dict[str, Any] = {
        "token": value,
        "expires_at": core.stamp(expires),
        "permissions": dict(wanted),
        "repository_selection": "all" if repositories is None else "selected",
    }
    if chosen is not None:
        document["repositories"] = [core.repository(call.site, repository) for repository in chosen]
    return Answer(201, document)


def _names(repositories: list[Repository]) -> frozenset[str]:
    return frozenset(repository.full_name.lower() for repository in repositories)


def _chosen(
    call: Call, app: App, owners: list[str], sent: dict[str, Any]
) -> list[Repository] | None:
    """The repositories that the token is asked for; None for all of the installation."""
    names = {str(name).lower() for name in sent.get("repositories", ())}
    ids = set(sent.get("repository_ids", ()))
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


def _app_deliveries(call: Call) -> list[HookDelivery]:
    if call.caller.app is None:
        raise ApiError(401, "A JSON web token could not be decoded")
    return call.caller.app.deliveries


def _item(delivery: HookDelivery) -> dict[str, Any]:
    return {
        "id": delivery.id,
        "guid": delivery.guid,
        "delivered_at": core.stamp(delivery.delivered_at),
        "status_code": delivery.status_code,
        "event": delivery.event,
    }


def _page(call: Call, deliveries: list[HookDelivery]) -> Answer:
    """The newest first; the cursor is the id of the last one shown."""
    size = int(call.query.get("per_page", 30))
    before = call.query.get("cursor", "")
    older = [d for d in reversed(deliveries) if not before or d.id < int(before)]
    shown = older[:size]
    links = {}
    if len(older) > size:
        query = urlencode({**call.query, "cursor": shown[-1].id})
        links["Link"] = f'<{call.site.api_url}{call.exchange.path}?{query}>; rel="next"'
    return Answer(200, [_item(delivery) for delivery in shown], links)


def _whole(call: Call, deliveries: list[HookDelivery]) -> Answer:
    for delivery in deliveries:
        if delivery.id == call.number("delivery_id"):
            return Answer(200, {**_item(delivery), "request": {"payload": delivery.payload}})
    raise not_found()


ROUTES.add("GET /app/hook/deliveries")(lambda call: _page(call, _app_deliveries(call)))
ROUTES.add("GET /app/hook/deliveries/{delivery_id}")(
    lambda call: _whole(call, _app_deliveries(call))
)


@ROUTES.add("GET /orgs/{org}/teams/{team_slug}/memberships/{username}")
def get_membership(call: Call) -> Answer:
    token = call.caller.token
    if token is None:
        raise ApiError(401, "Requires authentication")
    if not access.has_permission(token, "members", "read"):
        raise ApiError(403, "Resource not accessible by integration")
    team = f"{call.at['org']}/{call.at['team_slug']}".lower()
    login = call.at["username"].lower()
    state = call.world.teams.get(team, {}).get(login)
    if state is None:
        return Answer(404)  # without a body, as GitHub describes it
    url = f"{call.site.api_url}/organizations/1/team/1/memberships/{login}"
    return Answer(200, {"url": url, "role": "member", "state": state})
