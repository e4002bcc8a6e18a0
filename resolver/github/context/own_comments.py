"""Finds the comments that Resolver's own account has written on an issue."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from resolver.github.client.accounts import is_by
from resolver.github.client.resources import Listing
from resolver.github.context.conversation import Conversation, RemarkText
from resolver.github.text.markers import is_of_run
from resolver.models.run import Trigger, TriggerKind

_MAX_SEARCHED_COMMENTS = 500


def searched_since(trigger: Trigger) -> datetime | None:
    """Return the time from which to search for what was written for a trigger, None for no limit.

    Nothing that Resolver wrote for an event can be older than the event. The time of a command line
    or a dispatch comes from this machine's clock, which may differ from GitHub's, and a repeated
    dispatch has a new time: for these everything is searched.
    """
    local_clock_kinds = {TriggerKind.COMMAND_LINE, TriggerKind.DISPATCHED}
    return None if trigger.kind in local_clock_kinds else trigger.at


def newest_comments(
    issue: Issue, limit: int, since: datetime | None = None
) -> Sequence[IssueComment]:
    """Return the newest `limit` comments, oldest first.

    since: only comments that were changed since this moment, if given.
    """
    comments = Listing(issue.requester, IssueComment, f"{issue.url}/comments", since=since)
    return comments.newest(limit)


def own_comments(issue: Issue, own_login: str, since: datetime | None) -> list[IssueComment]:
    """Return Resolver's own comments among the newest ones, newest first."""
    comments = newest_comments(issue, _MAX_SEARCHED_COMMENTS, since)
    return [comment for comment in reversed(comments) if is_by(comment, own_login)]


def own_comments_in(
    conversation: Conversation, repository: Repository, own_login: str
) -> list[IssueComment]:
    """Return Resolver's own comments of a conversation that was read, newest first."""
    return [
        _as_listed(comment, repository)
        for comment in reversed(conversation.comments.items)
        if comment.author.casefold() == own_login.casefold()
    ]


def _as_listed(comment: RemarkText, repository: Repository) -> IssueComment:
    """Return the comment as the REST API lists it, with the fields that are used."""
    row = {
        "id": comment.id,
        "url": f"{repository.url}/issues/comments/{comment.id}",
        "html_url": comment.url,
        "body": comment.body,
        "user": {"login": comment.author},
    }
    return IssueComment(repository.requester, {}, row, completed=True)


def comment_of_run(issue: Issue, own_login: str, trigger: Trigger) -> IssueComment | None:
    """Return the progress comment or final comment of the run with the trigger's key."""
    return find_run_comment(own_comments(issue, own_login, searched_since(trigger)), trigger)


def find_run_comment(comments: Iterable[IssueComment], trigger: Trigger) -> IssueComment | None:
    """Return the first of these comments that is of the run with the trigger's key."""
    return next(
        (comment for comment in comments if is_of_run(comment.body or "", trigger.key)), None
    )
