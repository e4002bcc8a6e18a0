"""REST endpoints of a repository's webhooks and their deliveries."""

from typing import Any
from urllib.parse import urlencode

from tests.parts.github_server import documents_core as core
from tests.parts.github_server.access import ROLES, repository_of, role
from tests.parts.github_server.exchange import REPO, ROUTES, Answer, ApiError, Call, not_found
from tests.parts.github_server.state import Hook, HookDelivery


def _app_deliveries(call: Call) -> list[HookDelivery]:
    if call.caller.app is None:
        raise ApiError(401, "A JSON web token could not be decoded")
    return call.caller.app.deliveries


def _hooks(call: Call) -> list[Hook]:
    repository = repository_of(call)
    if ROLES.index(role(call.caller.token, repository)) < ROLES.index("admin"):
        raise not_found()
    return repository.hooks


def _hook_deliveries(call: Call) -> list[HookDelivery]:
    found = [hook for hook in _hooks(call) if hook.id == call.number("hook_id")]
    if not found:
        raise not_found()
    return found[0].deliveries


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


def _hook_document(hook: Hook) -> dict[str, Any]:
    return {"id": hook.id, "active": True, "config": {"content_type": "json", "url": hook.url}}


ROUTES.add("GET /app/hook/deliveries")(lambda call: _page(call, _app_deliveries(call)))
ROUTES.add("GET /app/hook/deliveries/{delivery_id}")(
    lambda call: _whole(call, _app_deliveries(call))
)
ROUTES.add(f"GET {REPO}/hooks")(lambda call: call.page(_hooks(call), _hook_document))
ROUTES.add(f"GET {REPO}/hooks/{{hook_id}}/deliveries")(
    lambda call: _page(call, _hook_deliveries(call))
)
ROUTES.add(f"GET {REPO}/hooks/{{hook_id}}/deliveries/{{delivery_id}}")(
    lambda call: _whole(call, _hook_deliveries(call))
)
