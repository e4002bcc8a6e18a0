"""Finds the comments that Resolver's own account has written on an issue."""

from datetime import datetime

from github.Issue import Issue
from github.IssueComment import IssueComment

from resolver.github.client.accounts import is_by
from resolver.github.context.read_task import newest_comments
from resolver.github.text.markers import is_of_run, is_refusal_of
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


def own_comments(issue: Issue, own_login: str, since: datetime | None) -> list[IssueComment]:
    """Return Resolver's own comments among the newest ones, newest first."""
    comments = newest_comments(issue, _MAX_SEARCHED_COMMENTS, since)
    return [comment for comment in reversed(comments) if is_by(comment, own_login)]


def comment_of_run(issue: Issue, own_login: str, trigger: Trigger) -> IssueComment | None:
    """Return the progress comment or final comment of the run with the trigger's key."""
    for comment in own_comments(issue, own_login, searched_since(trigger)):
        if is_of_run(comment.body or "", trigger.key):
            return comment
    return None


def refusal_of(issue: Issue, own_login: str, login: str) -> IssueComment | None:
    """Return the comment on this issue that refused a request by `login`."""
    for comment in own_comments(issue, own_login, None):
        if is_refusal_of(comment.body or "", login):
            return comment
    return None
