"""REST endpoints of pull requests. Reviews and their comments are in routes_reviews."""

from typing import Any

from tests.parts.github_server import access
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
from tests.parts.github_server.routes_issues import (
    LONGEST_BODY,
    issue_of,
    new_issue,
    title_of,
)
from tests.parts.github_server.state import (
    ROLES,
    Account,
    Issue,
    Pull,
    Repository,
    World,
)


def pull_of(call: Call, repository: Repository) -> Issue:
    found = issue_of(call, repository, "pull_number")
    if found.pull is None:
        raise not_found()
    return found


def new_pull(
    world: World,
    repository: Repository,
    head: tuple[Repository, str],
    base: str,
    words: tuple[str, str | None],
    author: Account,
) -> Issue:
    """A pull request as it is, unchecked. words: title and body."""
    issue = new_issue(world, repository, *words, author)
    issue.pull = Pull(next(world.ids), head[0], head[1], base)
    documents.tips(issue)
    return issue


def _head_of(call: Call, repository: Repository, sent: Any) -> tuple[Repository, str]:
    """The repository and branch that `head` ("branch" or "owner:branch") names."""
    if not isinstance(sent, str):
        raise invalid("PullRequest", "head", "missing_field")
    owner, _, branch = sent.rpartition(":")
    where = repository
    if owner and owner.lower() != repository.owner.login.lower():
        forks = call.world.repositories.values()
        mine = [
            fork
            for fork in forks
            if fork.parent is repository and fork.owner.login.lower() == owner.lower()
        ]
        if not mine:
            raise invalid("PullRequest", "head")
        where = mine[0]
    if where.git.tip(branch) is None:
        raise invalid("PullRequest", "head")
    return where, branch


def _check_new(call: Call, repository: Repository, head: tuple[Repository, str], base: str) -> None:
    where, branch = head
    base_tip, head_tip = repository.git.tip(base), where.git.tip(branch)
    if base_tip is None:
        raise invalid("PullRequest", "base")
    assert head_tip is not None
    label = f"{where.owner.login}:{branch}"
    for issue in repository.issues.values():
        pull = issue.pull
        same = pull and (pull.head_repository, pull.head, pull.base) == (where, branch, base)
        if same and issue.state == "open":
            what = f"A pull request already exists for {label}."
            raise invalid("PullRequest", "", "custom", what)
    if where is not repository:
        # A fork shares its objects with its parent.
        repository.git.git("fetch", "--quiet", str(where.git.path), head_tip)
    if not repository.git.between(base_tip, head_tip):
        shown = branch if where is repository else label
        raise invalid("PullRequest", "", "custom", f"No commits between {base} and {shown}")


@ROUTES.add(f"POST {REPO}/pulls")
def create_pull(call: Call) -> Answer:
    repository, author = access.writable(call, "pull_requests")
    if author.login == "github-actions[bot]" and not repository.actions_may_create_pulls:
        raise ApiError(403, "GitHub Actions is not permitted to create or approve pull requests.")
    sent = call.body()
    title = title_of(sent.get("title"), "PullRequest")
    body = sent.get("body")
    if not isinstance(body, str | None):
        raise invalid("PullRequest", "body")
    if body is not None and len(body) > LONGEST_BODY:
        what = f"body is too long (maximum is {LONGEST_BODY} characters)"
        raise invalid("PullRequest", "", "custom", what)
    base = sent.get("base")
    if not isinstance(base, str):
        raise invalid("PullRequest", "base", "missing_field")
    head = _head_of(call, repository, sent.get("head"))
    if ROLES.index(access.role(call.caller.token, head[0])) < ROLES.index("write"):
        raise invalid("PullRequest", "", "custom", "must be a collaborator")
    _check_new(call, repository, head, base)
    issue = new_pull(call.world, repository, head, base, (title, body), author)
    assert issue.pull is not None
    issue.pull.draft = bool(sent.get("draft", False))
    issue.pull.maintainer_can_modify = bool(sent.get("maintainer_can_modify", True))
    document = documents.pull(call.site, issue)
    return Answer(201, document, {"Location": document["url"]})


@ROUTES.add(f"GET {REPO}/pulls")
def list_pulls(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    state, base = call.query.get("state", "open"), call.query.get("base")
    head = call.query.get("head", "")
    # GitHub ignores a head filter that does not name the owner.
    head = head if ":" in head else ""
    rows = [
        issue
        for issue in repository.issues.values()
        if issue.pull
        and state in (issue.state, "all")
        and base in (None, issue.pull.base)
        and head in ("", f"{issue.pull.head_repository.owner.login}:{issue.pull.head}")
    ]
    sort = call.query.get("sort", "created")
    descending = call.query.get("direction", "desc" if sort == "created" else "asc") == "desc"
    rows.sort(
        key=lambda row: row.updated_at.timestamp() if sort == "updated" else row.number,
        reverse=descending,
    )
    return call.page(rows, lambda issue: documents.pull_short(call.site, issue))


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}")
def get_pull(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    return Answer(200, documents.pull(call.site, pull_of(call, repository)))


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/commits")
def list_commits(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    base, head = documents.fork_point(pull_of(call, repository))
    git = repository.git
    return call.page(
        git.between(base, head),
        lambda sha: documents.commit(call.site, repository, git.facts(sha)),
    )
