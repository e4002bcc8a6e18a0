"""REST endpoints of an organization's teams."""

from tests.parts.github_server import access
from tests.parts.github_server.exchange import ROUTES, Answer, ApiError, Call


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
