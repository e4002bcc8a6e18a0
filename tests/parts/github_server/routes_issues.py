"""REST endpoints of issues, their comments, labels and reactions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests.parts.github_server import access
from tests.parts.github_server import documents_core as documents
from tests.parts.github_server.exchange import (
    REPO,
    ROUTES,
    Answer,
    ApiError,
    Call,
    invalid,
    not_found,
)
from tests.parts.github_server.state import (
    Account,
    Comment,
    Issue,
    Label,
    Reaction,
    Repository,
    ReviewComment,
    World,
)

LONGEST_BODY = 65_536
LONGEST_TITLE = 256
PERMISSIONS = ("issues", "pull_requests")


def text_of(sent: Any, resource: str, field: str = "data") -> str:
    """A body as GitHub takes it. Raises ApiError 422 for none, blank, or too long."""
    if not isinstance(sent, str) or not sent.strip():
        raise invalid(resource, field, "unprocessable", "Body cannot be blank")
    if len(sent) > LONGEST_BODY:
        what = f"Body is too long (maximum is {LONGEST_BODY} characters)"
        raise invalid(resource, field, "unprocessable", what)
    return sent


def title_of(sent: Any, resource: str) -> str:
    if not isinstance(sent, str) or not sent.strip():
        raise invalid(resource, "title", "missing_field")
    if len(sent) > LONGEST_TITLE:
        what = f"title is too long (maximum is {LONGEST_TITLE} characters)"
        raise invalid(resource, "title", "custom", what)
    return sent


def issue_of(call: Call, repository: Repository, name: str = "issue_number") -> Issue:
    found = repository.issues.get(call.number(name))
    if found is None:
        raise not_found()
    if found.deleted:
        raise ApiError(410, "This issue was deleted")
    return found


def readable_issue(call: Call) -> Issue:
    """The issue or pull request of the path, if the caller may read it."""
    repository = access.repository_of(call)
    issue = issue_of(call, repository)
    access.may_read(call, repository, *permission_for(issue))
    return issue


def permission_for(issue: Issue) -> Sequence[str]:
    """A pull request's conversation can be written with either permission."""
    return PERMISSIONS if issue.pull else PERMISSIONS[:1]


def _find(repository: Repository, id: int) -> Comment:
    for found in repository.comments():
        if found.id == id and not repository.issues[found.number].deleted:
            return found
    raise not_found()


def new_issue(
    world: World, repository: Repository, title: str, body: str | None, author: Account
) -> Issue:
    at = (repository, len(repository.issues) + 1)
    issue = world.write(Issue, at, author, body, title=title)
    repository.issues[issue.number] = issue
    return issue


def new_comment(world: World, issue: Issue, body: str, author: Account) -> Comment:
    comment = world.write(Comment, (issue.repository, issue.number), author, body)
    issue.comments.append(comment)
    issue.updated_at = comment.created_at
    return comment


def ensure_label(world: World, repository: Repository, name: str) -> Label:
    return repository.labels.setdefault(name.lower(), Label(next(world.ids), name))


def put_labels(world: World, issue: Issue, names: Sequence[str], by: Account) -> None:
    have = {name.lower() for name in issue.labels}
    for name in names:
        label = ensure_label(world, issue.repository, name)
        if name.lower() not in have:
            issue.labels.append(label.name)
            have.add(name.lower())
            world.note(issue, "labeled", by, label.name)


def _label_names(sent: Any) -> list[str]:
    """Names, or objects with a name. Raises ApiError 422 for anything else."""
    rows = sent if isinstance(sent, list) else [None]
    names = [row.get("name") if isinstance(row, dict) else row for row in rows]
    good = [name for name in names if isinstance(name, str) and name]
    if len(good) < len(names):
        raise invalid("Label", "name")
    return good


@ROUTES.add(f"GET {REPO}/issues/{{issue_number}}")
def get_issue(call: Call) -> Answer:
    return Answer(200, documents.issue(call.site, readable_issue(call)))


@ROUTES.add(f"GET {REPO}/issues")
def list_issues(call: Call) -> Answer:
    repository = access.readable(call, "issues")
    state = call.query.get("state", "open")
    wanted = [name for name in call.query.get("labels", "").lower().split(",") if name]
    since = call.query.get("since", "")
    creator = call.query.get("creator")
    rows = [
        issue
        for issue in repository.issues.values()
        if (state in (issue.state, "all"))
        and all(name in (label.lower() for label in issue.labels) for name in wanted)
        and documents.stamp(issue.updated_at) >= since
        and creator in (None, issue.author.login)
    ]
    key = {"updated": lambda row: row.updated_at, "comments": lambda row: len(row.comments)}.get(
        call.query.get("sort", "created"), lambda row: row.number
    )
    rows.sort(key=key, reverse=call.query.get("direction", "desc") == "desc")
    return call.page(rows, lambda issue: documents.issue(call.site, issue))


@ROUTES.add(f"POST {REPO}/issues")
def create_issue(call: Call) -> Answer:
    repository, author = access.writable(call, "issues")
    sent = call.body()
    title = title_of(sent.get("title"), "Issue")
    body = sent.get("body")
    if body not in (None, ""):
        text_of(body, "Issue", "body")
    issue = new_issue(call.world, repository, title, body, author)
    # Labels of people who may not set them are dropped without a word, as on GitHub.
    if access.role(call.caller.token, repository) not in ("none", "read"):
        put_labels(call.world, issue, _label_names(sent.get("labels", [])), author)
    return Answer(201, documents.issue(call.site, issue))


@ROUTES.add(f"GET {REPO}/issues/{{issue_number}}/comments")
def list_comments(call: Call) -> Answer:
    issue = readable_issue(call)
    since = call.query.get("since", "")
    rows = [comment for comment in issue.comments if documents.stamp(comment.updated_at) >= since]
    return call.page(rows, lambda comment: documents.comment(call.site, comment))


@ROUTES.add(f"POST {REPO}/issues/{{issue_number}}/comments")
def create_comment(call: Call) -> Answer:
    repository = access.repository_of(call)
    issue = issue_of(call, repository)
    author = access.may_write(call, repository, *permission_for(issue))
    if issue.locked and access.role(call.caller.token, repository) in ("read", "triage"):
        raise ApiError(403, "Unable to create comment because issue is locked.")
    body = text_of(call.body().get("body"), "IssueComment")
    comment = new_comment(call.world, issue, body, author)
    document = documents.comment(call.site, comment)
    return Answer(201, document, {"Location": document["url"]})


@ROUTES.add(f"GET {REPO}/issues/comments/{{comment_id}}")
def get_comment(call: Call) -> Answer:
    repository = access.readable(call, *PERMISSIONS)
    return Answer(200, documents.comment(call.site, _find(repository, call.number("comment_id"))))


@ROUTES.add(f"PATCH {REPO}/issues/comments/{{comment_id}}")
def change_comment(call: Call) -> Answer:
    repository = access.repository_of(call)
    comment = _find(repository, call.number("comment_id"))
    access.may_change(call, repository, comment.author, *PERMISSIONS)
    comment.body = text_of(call.body().get("body"), "IssueComment")
    comment.updated_at = call.world.now()
    return Answer(200, documents.comment(call.site, comment))


def react(
    world: World, on: list[Reaction], account: Account, content: str, at: datetime | None = None
) -> tuple[Reaction, bool]:
    """The account's reaction, and whether it is new: the same one is never given twice."""
    for given in on:
        if given.account is account and given.content == content:
            return given, False
    given = Reaction(next(world.ids), account, content, at or world.now())
    on.append(given)
    return given, True


Reactable = tuple[Repository, list[Reaction]]


def _reactions_of_issue(call: Call) -> Reactable:
    repository = access.repository_of(call)
    return repository, issue_of(call, repository).reactions


def _reactions_of_comment(call: Call) -> Reactable:
    repository = access.repository_of(call)
    return repository, _find(repository, call.number("comment_id")).reactions


def _reactions_of_review_comment(call: Call) -> Reactable:
    repository = access.repository_of(call)
    return repository, review_comment_of(call, repository).reactions


def review_comment_of(call: Call, repository: Repository) -> ReviewComment:
    id = call.number("comment_id")
    for comment in repository.review_comments():
        if comment.id == id:
            return comment
    raise not_found()


def _add_reaction_routes(path: str, where: Any, *permissions: str) -> None:
    def create(call: Call) -> Answer:
        repository, reactions = where(call)
        account = access.may_write(call, repository, *permissions)
        content = call.body().get("content")
        if content not in documents.REACTIONS:
            raise invalid("Reaction", "content")
        given, is_new = react(call.world, reactions, account, content)
        return Answer(201 if is_new else 200, documents.reaction(call.site, given))

    def show(call: Call) -> Answer:
        repository, reactions = where(call)
        access.may_read(call, repository, *permissions)
        wanted = call.query.get("content")
        rows = [reaction for reaction in reactions if wanted in (None, reaction.content)]
        return call.page(rows, lambda reaction: documents.reaction(call.site, reaction))

    ROUTES.add(f"POST {path}")(create)
    ROUTES.add(f"GET {path}")(show)


_add_reaction_routes(
    f"{REPO}/issues/comments/{{comment_id}}/reactions",
    _reactions_of_comment,
    "issues",
    "pull_requests",
)
_add_reaction_routes(
    f"{REPO}/pulls/comments/{{comment_id}}/reactions", _reactions_of_review_comment, "pull_requests"
)
_add_reaction_routes(
    f"{REPO}/issues/{{issue_number}}/reactions", _reactions_of_issue, "issues", "pull_requests"
)
