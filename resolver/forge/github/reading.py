"""Reading an issue or pull request into a Task: only what the requester could see.

Text that is newer than the trigger is left out, hidden text is taken out, sizes are bounded;
whatever is not used is named in `Task.left_out`.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from resolver.errors import ForgeError, Refused
from resolver.forge.escape import shortened
from resolver.forge.github.access import GitHubAccess
from resolver.forge.github.moments import lateness, utc
from resolver.forge.github.pulls import read_pull
from resolver.forge.hidden_text import strip_hidden
from resolver.model import Command, Comment, Snapshot, Task, Trigger, TriggerKind

MAX_COMMENTS = 300
"""The newest comments of a thread that are read."""

MAX_COMMENT = 20_000
"""Characters of one comment that are used."""

MAX_TEXT = 200_000
"""Characters of all comments together; the oldest are left out first."""

MAX_ISSUE = 65_536
"""Characters of an issue's body."""


def read_task(access: GitHubAccess, repository: Repository, trigger: Trigger, own: str) -> Task:
    """The Task of a trigger. own: our login, whose comments are not shown to the model.

    Raises ForgeError when repository or issue is missing, moved or closed, Refused for a pull
    request.
    """
    number = trigger.subject or 0
    with access.asking(f"read {trigger.repository}", "metadata: read"):
        full_name, base = repository.full_name, repository.default_branch
        if not base:
            raise ValueError("the repository has no default_branch")
    if full_name.casefold() != trigger.repository.casefold():
        raise ForgeError(
            f"{trigger.repository} has moved to {full_name}",
            "make the request there, or use the new name",
        )
    with access.asking(f"read issue {number} of {full_name}", "issues: read"):
        issue = repository.get_issue(number).complete()
        _check_issue(issue, full_name, number)
        _check_command(trigger, issue, f"{full_name}#{number}")
        left_out: list[str] = []
        snapshot = _issue_text(issue, trigger, left_out)
        comments = newest_comments(issue, MAX_COMMENTS)
        chosen = _chosen_comments(comments, trigger, own, left_out)
        if issue.comments > len(comments):
            older = issue.comments - len(comments)
            left_out.append(f"{older} older comments: only the newest are read")
        pull = None
        if issue.raw_data.get("pull_request") is not None:
            pull = read_pull(access, repository, trigger, own, left_out)
        return Task(
            trigger=trigger,
            title=snapshot.title,
            body=snapshot.body,
            author=snapshot.author,
            url=issue.html_url,
            labels=tuple(strip_hidden(label.name).text for label in issue.labels[:100]),
            comments=chosen,
            left_out=tuple(left_out),
            base_branch=pull.base_branch if pull else base,
            pull=pull,
            source=f"{access.server_url.rstrip('/')}/{full_name}.git",
        )


def _check_command(trigger: Trigger, issue: Issue, name: str) -> None:
    """Raise Refused where what is asked for is not done on issues, or not on pull requests."""
    is_pull = issue.raw_data.get("pull_request") is not None
    if is_pull and trigger.command not in {Command.REVIEW, Command.QUESTION}:
        raise Refused(
            f"{name} is a pull request, and so far I review those, answer questions about them, "
            "and go on with pull requests of my own",
            "ask for a review or a question, or make the request on an issue",
        )
    if trigger.command is Command.REVIEW and not is_pull:
        raise Refused(
            f"{name} is an issue, and there is nothing in it to review",
            "ask for the review on a pull request",
        )


def newest_comments(
    issue: Issue, limit: int, since: datetime | None = None
) -> Sequence[IssueComment]:
    """The newest `limit` comments, oldest first; only those changed since a moment, if given."""
    listing = issue.get_comments(since=since) if since else issue.get_comments()
    if since is None and issue.comments > limit:
        return list(islice(listing.reversed, limit))[::-1]
    return list(islice(listing, 10 * limit))[-limit:]


def login_of(thing: Issue | IssueComment) -> str:
    """Author's login; "ghost" for a deleted account, as GitHub shows it."""
    # PyGithub says that there is always a user; a deleted account's is null
    user = thing.raw_data.get("user") or {}
    return str(user.get("login") or "ghost")


def _check_issue(issue: Issue, full_name: str, number: int) -> None:
    where = str(issue.raw_data.get("repository_url") or "").rsplit("/repos/", 1)[-1]
    if issue.number != number or (where and where.casefold() != full_name.casefold()):
        raise ForgeError(
            f"{full_name}#{number} has moved to {where}#{issue.number}",
            "make the request there",
        )
    if issue.state != "open":
        raise ForgeError(f"{full_name}#{number} is closed", "reopen it and make the request again")


def _issue_text(issue: Issue, trigger: Trigger, left_out: list[str]) -> Snapshot:
    now = Snapshot(
        title=issue.title or "", body=issue.raw_data.get("body") or "", author=login_of(issue)
    )
    seen = trigger.snapshot or now
    if seen.title.strip() != now.title.strip():
        left_out.append("the issue's title was edited after the request: the earlier one is used")
    if _lines(seen.body) != _lines(now.body):
        left_out.append("the issue's text was edited after the request: the earlier one is used")
    title = " ".join(_clean(seen.title, "title", left_out).split())
    body = _clean(seen.body, "text", left_out)
    if len(body) > MAX_ISSUE:
        left_out.append(f"the issue's text after its first {MAX_ISSUE:,} characters")
    return Snapshot(
        title=shortened(title, 256) or "(no title)",
        body=shortened(body, MAX_ISSUE),
        author=seen.author or now.author,
    )


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _clean(text: str, where: str, left_out: list[str]) -> str:
    cleaned = strip_hidden(text)
    if cleaned.removed:
        left_out.append(f"hidden in the issue's {where}: {', '.join(cleaned.removed)}")
    return cleaned.text.strip()


def _chosen_comments(
    comments: Iterable[IssueComment], trigger: Trigger, own: str, left_out: list[str]
) -> tuple[Comment, ...]:
    chosen: list[Comment] = []
    ours = 0
    for comment in comments:
        author = login_of(comment)
        if author.casefold() == own.casefold():
            ours += 1
            continue
        late = lateness(
            trigger,
            TriggerKind.ISSUE_COMMENT,
            comment.id,
            utc(comment.created_at),
            utc(comment.updated_at),
        )
        if late:
            left_out.append(f"a comment of {author} that was {late} the request")
            continue
        cleaned = strip_hidden(comment.body or "")
        if cleaned.removed:
            left_out.append(f"hidden in a comment of {author}: {', '.join(cleaned.removed)}")
        if len(cleaned.text) > MAX_COMMENT:
            left_out.append(f"a comment of {author} after its first {MAX_COMMENT:,} characters")
        chosen.append(
            Comment(
                id=comment.id,
                author=author,
                association=str(comment.raw_data.get("author_association") or "NONE"),
                created_at=utc(comment.created_at),
                body=shortened(cleaned.text.strip(), MAX_COMMENT),
                url=comment.html_url,
            )
        )
    if ours:
        left_out.append(f"{ours} of our own comments" if ours > 1 else "our own earlier comment")
    return _within_bounds(chosen, left_out)


def _within_bounds(comments: list[Comment], left_out: list[str]) -> tuple[Comment, ...]:
    used = 0
    for index in range(len(comments) - 1, -1, -1):
        used += len(comments[index].body)
        if used > MAX_TEXT:
            left_out.append(f"{index + 1} older comments: the thread is too long")
            return tuple(comments[index + 1 :])
    return tuple(comments)
