"""REST endpoints of issues, pull requests, comments, reviews, reactions and reviewers."""

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.parts.github_server import documents
from tests.parts.github_server.access import has_role
from tests.parts.github_server.documents import Document, stamp
from tests.parts.github_server.exchange import Answer, ApiError, invalid, not_found
from tests.parts.github_server.routing import Call, route
from tests.parts.github_server.stage import Lines, hunk_of
from tests.parts.github_server.state import Account, Issue, Reaction, Repository, Text

LONGEST_BODY = 65_536
LONGEST_TITLE = 256
REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")
EITHER = ("issues", "pull_requests")


def _text(sent: str, resource: str, field: str = "body", longest: int = LONGEST_BODY) -> str:
    """A text as GitHub takes it. Raises ApiError 422 for one that is blank or too long."""
    if not sent.strip():
        raise invalid(resource, field, "unprocessable", f"{field} cannot be blank")
    if len(sent) > longest:
        what = f"{field} is too long (maximum is {longest} characters)"
        raise invalid(resource, field, "unprocessable", what)
    return sent


def _new(call: Call, resource: str) -> tuple[str, str]:
    """Title and body of a new issue or pull request."""
    title = _text(call.sent["title"], resource, "title", LONGEST_TITLE)
    body = call.sent.get("body") or ""
    return title, _text(body, resource) if body else ""


def _since(call: Call, texts: list[Any]) -> list[Any]:
    return [text for text in texts if stamp(text.updated_at) >= call.query.get("since", "")]


def _is_descending(call: Call, default: str = "desc") -> bool:
    return call.query.get("direction", default) == "desc"


# Issues and their comments


@route("GET issues", "issues")
def list_issues(call: Call) -> list[Issue]:
    state = call.query.get("state", "open")
    wanted = {name for name in call.query.get("labels", "").lower().split(",") if name}
    rows = [
        issue
        for issue in _since(call, list(call.repository.issues.values()))
        if state in (issue.state, "all") and wanted <= {label.lower() for label in issue.labels}
    ]
    assert call.query.get("sort", "created") == "created"
    return sorted(rows, key=lambda row: row.number, reverse=_is_descending(call))


@route("POST issues", "issues")
def create_issue(call: Call) -> Issue:
    title, body = _new(call, "Issue")
    # Labels of people who may not set them are dropped without a word, as on GitHub.
    labels = call.sent.get("labels", []) if call.has_role("triage") else []
    names = [label if isinstance(label, str) else label["name"] for label in labels]
    return call.stage.create_issue(call.repository, title, body, call.account, tuple(names))


@route("POST issues/{issue_number}/comments", *EITHER)
def create_comment(call: Call) -> Answer:
    if call.issue.locked and not call.has_role("write"):
        raise ApiError(403, "Unable to create comment because issue is locked.")
    body = _text(call.sent["body"], "IssueComment")
    comment = call.stage.add_comment(call.issue, body, call.account)
    location = documents.comment(call.site, comment)["url"]
    return Answer(201, comment, {"Location": location})


@route("PATCH issues/comments/{comment_id}", *EITHER)
def change_comment(call: Call) -> Text:
    """Authors change what is theirs; for the rest it takes a writer."""
    if call.account is not call.comment.author and not call.has_role("write"):
        raise ApiError(403, "Must have admin rights to Repository.")
    call.stage.edit_comment(call.comment, _text(call.sent["body"], "IssueComment"))
    return call.comment


route("GET issues/{issue_number}", *EITHER)(lambda call: call.issue)
route("GET issues/{issue_number}/comments", *EITHER)(lambda call: _since(call, call.issue.comments))


def _add_reaction_routes(path: str, find: Callable[[Call], Text], *permissions: str) -> None:
    def create(call: Call) -> Answer:
        """The same reaction is never given twice."""
        on, content = find(call).reactions, call.sent.get("content")
        if content not in REACTIONS:
            raise invalid("Reaction", "content")
        for given in on:
            if given.account is call.account and given.content == content:
                return Answer(200, given)
        on.append(Reaction(next(call.world.ids), call.account, content, call.world.now()))
        return Answer(201, on[-1])

    def show(call: Call) -> list[Reaction]:
        wanted = call.query.get("content")
        return [r for r in find(call).reactions if wanted in (None, r.content)]

    route(f"POST {path}/reactions", *permissions)(create)
    route(f"GET {path}/reactions", *permissions)(show)


_add_reaction_routes("issues/{issue_number}", lambda call: call.issue, *EITHER)
_add_reaction_routes("issues/comments/{comment_id}", lambda call: call.comment, *EITHER)
_add_reaction_routes(
    "pulls/comments/{comment_id}", lambda call: call.review_comment, "pull_requests"
)


# Pull requests


def _head_of(call: Call) -> tuple[Repository, str]:
    """The repository and branch that `head` ("branch" or "owner:branch") names."""
    owner, _, branch = call.sent["head"].rpartition(":")
    where: Repository | None = call.repository
    if owner and owner.lower() != call.repository.owner.login.lower():
        forks = (fork for fork in call.world.repositories.values() if fork.parent is where)
        where = next((fork for fork in forks if fork.owner.login.lower() == owner.lower()), None)
    if where is None or where.git.tip(branch) is None:
        raise invalid("PullRequest", "head")
    return where, branch


def _check_new(repository: Repository, head: tuple[Repository, str], base: Any) -> None:
    where, branch = head
    base_tip, head_tip = repository.git.tip(str(base)), where.git.tip(branch)
    if base_tip is None or head_tip is None:
        raise invalid("PullRequest", "base")
    label = f"{where.owner.login}:{branch}"
    for issue in repository.pulls:
        pull = issue.pull
        same = pull and (pull.head_repository, pull.head, pull.base) == (where, branch, base)
        if same and issue.state == "open":
            what = f"A pull request already exists for {label}."
            raise invalid("PullRequest", "", "custom", what)
    # A fork shares its objects with its parent.
    repository.git.fetch(where.git, head_tip)
    if not repository.git.between(base_tip, head_tip):
        shown = branch if where is repository else label
        raise invalid("PullRequest", "", "custom", f"No commits between {base} and {shown}")


@route("POST pulls", "pull_requests")
def create_pull(call: Call) -> Answer:
    is_action = call.account.login == "github-actions[bot]"
    if is_action and not call.repository.actions_may_create_pulls:
        raise ApiError(403, "GitHub Actions is not permitted to create or approve pull requests.")
    title, body = _new(call, "PullRequest")
    head, base = _head_of(call), call.sent["base"]
    if not has_role(call.caller.token, head[0], "write"):
        raise invalid("PullRequest", "", "custom", "must be a collaborator")
    _check_new(call.repository, head, base)
    issue = call.stage.create_pull(call.repository, head, title, body, call.account, base)
    assert issue.pull is not None
    issue.pull.draft = bool(call.sent.get("draft", False))
    issue.pull.maintainer_can_modify = bool(call.sent.get("maintainer_can_modify", True))
    document = documents.pull(call.site, issue, whole=True)
    return Answer(201, document, {"Location": document["url"]})


@route("GET pulls", "pull_requests")
def list_pulls(call: Call) -> list[partial[Document]]:
    state, base = call.query.get("state", "open"), call.query.get("base")
    head = call.query.get("head", "")
    # GitHub ignores a head filter that does not name the owner.
    head = head if ":" in head else ""
    rows = [
        issue
        for issue in call.repository.pulls
        if issue.pull
        and state in (issue.state, "all")
        and base in (None, issue.pull.base)
        and head in ("", f"{issue.pull.head_repository.owner.login}:{issue.pull.head}")
    ]
    by_update = call.query.get("sort", "created") == "updated"
    rows.sort(
        key=lambda row: row.updated_at.timestamp() if by_update else row.number,
        reverse=_is_descending(call, "asc" if by_update else "desc"),
    )
    return [partial(documents.pull, call.site, issue) for issue in rows]


@route("GET pulls/{pull_number}", "pull_requests")
def get_pull(call: Call) -> Document:
    return documents.pull(call.site, call.issue, whole=True)


@route("GET pulls/{pull_number}/commits", "pull_requests")
def list_commits_of_pull(call: Call) -> list[partial[Document]]:
    made = call.repository.git.between(*call.issue.fork_point())
    return [partial(documents.commit, call.site, call.repository, sha) for sha in made]


@route("POST pulls/{pull_number}/comments/{comment_id}/replies", "pull_requests")
def reply(call: Call) -> Text:
    to = call.review_comment
    if to.in_reply_to is not None:
        raise not_found()  # replies to replies are not supported there either
    body = _text(call.sent["body"], "PullRequestReviewComment")
    return call.stage.add_review_comment(
        call.issue, to.path, to.line, body, call.account, to.side, to, to.start_line
    )


route("GET pulls/comments/{comment_id}", "pull_requests")(lambda call: call.review_comment)
route("GET pulls/{pull_number}/comments", "pull_requests")(
    lambda call: _since(call, call.issue.review_comments)
)


# Reviews


def _unprocessable(what: str) -> ApiError:
    """As reviews are refused: a list of sentences, which name no comment."""
    return ApiError(422, "Unprocessable Entity", [what])


def _lines(sent: Any) -> Lines:
    """The lines that a comment names."""
    first, line = sent.get("start_line"), sent.get("line", 1)
    return str(sent.get("path")), first, int(line), str(sent.get("side", "RIGHT"))


@route("POST pulls/{pull_number}/reviews", "pull_requests")
def create_review(call: Call) -> Answer:
    issue, author = call.issue, call.account
    assert call.sent["event"] == "COMMENT", "it neither approves nor asks for changes"
    body = _text(call.sent["body"], "PullRequestReview")
    base, head = issue.fork_point()
    commit = str(call.sent.get("commit_id") or head)
    if commit not in call.repository.git.between(base, head):
        raise _unprocessable("Commit is not part of the pull request")
    comments = [
        (_lines(sent), _text(sent["body"], "PullRequestReviewComment"))
        for sent in call.sent.get("comments") or []
    ]
    try:
        for lines, _ in comments:
            hunk_of(issue, commit, lines)
    except ApiError:
        raise _unprocessable("Line could not be resolved") from None
    review = call.stage.add_review(issue, body, author, commit=commit)
    for (path, first, line, side), words in comments:
        made = call.stage.add_review_comment(
            issue, path, line, words, author, side, start_line=first, commit=commit
        )
        made.review_id = review.id
        review.comments.append(made)
    issue.updated_at = call.world.now()
    return Answer(200, review)


route("GET pulls/{pull_number}/reviews", "pull_requests")(lambda call: call.reviews)
route("GET pulls/{pull_number}/reviews/{review_id}/comments", "pull_requests")(
    lambda call: call.review.comments
)


def _is_collaborator(repository: Repository, person: Account | None) -> bool:
    known = person is not None and person.login.lower() in repository.roles
    return known or person is repository.owner


@route("POST pulls/{pull_number}/requested_reviewers", "pull_requests", role="write")
def request_reviewers(call: Call) -> Answer:
    issue, repository = call.issue, call.repository
    assert issue.pull is not None
    people = [call.world.accounts.get(name.lower()) for name in call.sent.get("reviewers", ())]
    if issue.author in people:
        raise ApiError(422, "Review cannot be requested from pull request author.")
    if not all(_is_collaborator(repository, person) for person in people):
        raise ApiError(
            422,
            "Reviews may only be requested from collaborators. One or more of the users or teams "
            f"you specified is not a collaborator of the {repository.full_name} repository.",
        )
    issue.pull.reviewers.extend(p for p in people if p and p not in issue.pull.reviewers)
    return Answer(201, documents.pull(call.site, issue))
