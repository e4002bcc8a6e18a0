"""REST endpoints of review requests and assignees."""

from tests.parts.github_server import access
from tests.parts.github_server import documents_git as documents
from tests.parts.github_server.exchange import REPO, ROUTES, Answer, ApiError, Call
from tests.parts.github_server.routes_pulls import pull_of
from tests.parts.github_server.state import Account, Repository


def _collaborator(repository: Repository, account: Account | None) -> bool:
    if account is None:
        return False
    return account is repository.owner or account.login.lower() in repository.roles


@ROUTES.add(f"POST {REPO}/pulls/{{pull_number}}/requested_reviewers")
def request_reviewers(call: Call) -> Answer:
    repository = access.repository_of(call)
    issue = pull_of(call, repository)
    assert issue.pull is not None
    access.may_write(call, repository, "pull_requests", role_needed="write")
    sent = call.body()
    people = [call.world.accounts.get(str(name).lower()) for name in sent.get("reviewers", ())]
    teams = [str(name).lower() for name in sent.get("team_reviewers", ())]
    if issue.author in people:
        raise ApiError(422, "Review cannot be requested from pull request author.")
    owner = repository.owner.login.lower()
    known = all(f"{owner}/{team}" in call.world.teams for team in teams)
    if not known or not all(_collaborator(repository, person) for person in people):
        raise ApiError(
            422,
            "Reviews may only be requested from collaborators. One or more of the users or teams "
            f"you specified is not a collaborator of the {repository.full_name} repository.",
        )
    issue.pull.reviewers.extend(p for p in people if p and p not in issue.pull.reviewers)
    issue.pull.teams.extend(team for team in teams if team not in issue.pull.teams)
    return Answer(201, documents.pull_short(call.site, issue))
