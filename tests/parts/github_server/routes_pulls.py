"""REST endpoints of pull requests, their reviews, comments on their code and reviewers."""

import re
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
from tests.parts.github_server.routes_issues import (
    LONGEST_BODY,
    issue_of,
    new_issue,
    review_comment_of,
    text_of,
    title_of,
)
from tests.parts.github_server.state import (
    ROLES,
    Account,
    Issue,
    Pull,
    Repository,
    Review,
    ReviewComment,
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


HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)
STATES = {"COMMENT": "COMMENTED", "APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED"}


def _where(sent: Any) -> tuple[str, int | None, int, str]:
    """The lines that a comment names."""
    first, line = sent.get("start_line"), sent.get("line", 1)
    return str(sent.get("path")), first, int(line), str(sent.get("side", "RIGHT"))


def check_lines(issue: Issue, commit: str, where: tuple[str, int | None, int, str]) -> str:
    """The hunk of the diff that these lines are part of. where: path, first line of several, line,
    side ("RIGHT" is the new file). Raises ApiError 422 off the diff."""
    base, _ = documents.fork_point(issue)
    path, first, line, side = where
    assert issue.pull is not None
    if (path, line) in issue.pull.refused_lines:
        raise invalid("PullRequestReviewComment", "pull_request_review_thread.line")
    patch = issue.repository.git.patch(base, commit, path)
    if patch is None:
        raise invalid("PullRequestReviewComment", "pull_request_review_thread.path")
    for head in HUNK.finditer(patch):
        start, length = (head[3], head[4]) if side == "RIGHT" else (head[1], head[2])
        end = int(start) + int(length or 1)
        if int(start) <= (first or line) <= line < end:
            return patch
    raise invalid("PullRequestReviewComment", "pull_request_review_thread.line")


def new_review_comment(
    world: World,
    issue: Issue,
    body: str,
    author: Account,
    where: tuple[str, int | None, int, str],
    in_reply_to: ReviewComment | None = None,
    commit: str = "",
) -> ReviewComment:
    """where: as `check_lines` has it. commit: the head unless given."""
    _, head = documents.fork_point(issue)
    path, first, line, side = where
    commit = in_reply_to.commit if in_reply_to else commit or head
    comment = world.write(
        ReviewComment,
        (issue.repository, issue.number),
        author,
        body,
        path=path,
        start_line=first,
        line=line,
        side=side,
        commit=commit,
        diff_hunk=in_reply_to.diff_hunk if in_reply_to else check_lines(issue, commit, where),
        review_id=next(world.ids),
        in_reply_to=in_reply_to.id if in_reply_to else None,
    )
    issue.review_comments.append(comment)
    issue.updated_at = comment.created_at
    return comment


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/comments")
def list_review_comments(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    since = call.query.get("since", "")
    rows = [
        comment
        for comment in pull_of(call, repository).review_comments
        if core.stamp(comment.updated_at) >= since
    ]
    return call.page(rows, lambda comment: core.review_comment(call.site, comment))


@ROUTES.add(f"POST {REPO}/pulls/{{pull_number}}/comments/{{comment_id}}/replies")
def reply(call: Call) -> Answer:
    repository = access.repository_of(call)
    issue = pull_of(call, repository)
    author = access.may_write(call, repository, "pull_requests")
    parent = review_comment_of(call, repository)
    if parent.in_reply_to is not None:
        raise not_found()  # replies to replies are not supported there either
    body = text_of(call.body().get("body"), "PullRequestReviewComment")
    where = (parent.path, parent.start_line, parent.line, parent.side)
    comment = new_review_comment(call.world, issue, body, author, where, parent)
    return Answer(201, core.review_comment(call.site, comment))


@ROUTES.add(f"GET {REPO}/pulls/comments/{{comment_id}}")
def get_review_comment(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    found = review_comment_of(call, repository)
    return Answer(200, core.review_comment(call.site, found))


def _unprocessable(what: str) -> ApiError:
    """As reviews are refused: a list of sentences, which name no comment."""
    error = ApiError(422, "Unprocessable Entity")
    error.answer.document["errors"] = [what]
    return error


def new_review(
    world: World, issue: Issue, author: Account, body: str, state: str, commit: str = ""
) -> Review:
    """A review without comments. commit: the head unless given."""
    _, head = documents.fork_point(issue)
    at = (issue.repository, issue.number)
    review = world.write(Review, at, author, body, state=state, commit=commit or head)
    issue.reviews.append(review)
    return review


@ROUTES.add(f"POST {REPO}/pulls/{{pull_number}}/reviews")
def create_review(call: Call) -> Answer:
    repository = access.repository_of(call)
    issue = pull_of(call, repository)
    author = access.may_write(call, repository, "pull_requests")
    sent = call.body()
    state = STATES.get(sent.get("event"), "PENDING")
    body = str(sent.get("body") or "")
    if len(body) > LONGEST_BODY:
        raise _unprocessable(f"Body is too long (maximum is {LONGEST_BODY} characters)")
    if state in ("COMMENTED", "CHANGES_REQUESTED") and not body.strip():
        raise _unprocessable("Body can't be blank")
    if state in ("APPROVED", "CHANGES_REQUESTED") and author is issue.author:
        verb = "approve" if state == "APPROVED" else "request changes on"
        raise _unprocessable(f"Can not {verb} your own pull request")
    if any(r.state == "PENDING" and r.author is author for r in issue.reviews):
        raise _unprocessable("User can only have one pending review per pull request")
    base, head = documents.fork_point(issue)
    commit = str(sent.get("commit_id") or head)
    if commit not in repository.git.between(base, head):
        raise _unprocessable("Commit is not part of the pull request")
    comments = sent.get("comments") or []
    for comment in comments:
        text_of(comment.get("body"), "PullRequestReviewComment")
        try:
            check_lines(issue, commit, _where(comment))
        except ApiError:
            raise _unprocessable("Line could not be resolved") from None
    review = new_review(call.world, issue, author, body, state, commit)
    for comment in comments:
        made = new_review_comment(
            call.world, issue, comment["body"], author, _where(comment), commit=commit
        )
        made.review_id = review.id
        review.comments.append(made)
    if state == "PENDING":
        # Only its author sees it.
        issue.review_comments[:] = [c for c in issue.review_comments if c not in review.comments]
    else:
        issue.updated_at = call.world.now()
    return Answer(200, core.review(call.site, review))


def _visible(call: Call, issue: Issue) -> list[Review]:
    me = call.caller.account
    return [review for review in issue.reviews if review.state != "PENDING" or review.author is me]


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/reviews")
def list_reviews(call: Call) -> Answer:
    repository = access.readable(call, "pull_requests")
    rows = _visible(call, pull_of(call, repository))
    return call.page(rows, lambda review: core.review(call.site, review))


def _review_of(call: Call) -> tuple[Issue, Review]:
    repository = access.readable(call, "pull_requests")
    issue = pull_of(call, repository)
    id = call.number("review_id")
    found = next((review for review in _visible(call, issue) if review.id == id), None)
    if found is None:
        raise not_found()
    return issue, found


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/reviews/{{review_id}}")
def get_review(call: Call) -> Answer:
    return Answer(200, core.review(call.site, _review_of(call)[1]))


@ROUTES.add(f"DELETE {REPO}/pulls/{{pull_number}}/reviews/{{review_id}}")
def delete_review(call: Call) -> Answer:
    issue, review = _review_of(call)
    access.may_write(call, issue.repository, "pull_requests")
    if review.state != "PENDING":
        raise _unprocessable("Can not delete a non-pending pull request review")
    issue.reviews.remove(review)
    return Answer(200, core.review(call.site, review))


@ROUTES.add(f"GET {REPO}/pulls/{{pull_number}}/reviews/{{review_id}}/comments")
def list_comments_of_review(call: Call) -> Answer:
    _, review = _review_of(call)
    return call.page(review.comments, lambda comment: core.review_comment(call.site, comment))


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
