"""REST endpoints that say how a repository is set up: what its workflows' token may do, and the
rules of its branches. Classic tokens name their scopes with each answer.
"""

from fnmatch import fnmatchcase
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server.exchange import REPO, ROUTES, Answer, ApiError, Call, Caller


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
