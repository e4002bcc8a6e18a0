"""Reads an issue or pull request into a Task that contains only what the requester could see.

Text that is newer than the trigger is left out, hidden text is removed, and sizes are limited.
`Task.left_out` names everything that is not used. While a run watches its conversation, the new
comments are read.
"""

import logging
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from resolver.errors import ForgeError, Refused
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.accounts import author_login
from resolver.github.client.resources import Listing, PolledReader
from resolver.github.context.issue_context import IssueContextReader
from resolver.github.context.pull_request import read_pull
from resolver.github.context.visibility import (
    WRITTEN,
    describe_minimized,
    minimized_comments,
    original_text,
    reason_unseen,
    utc,
)
from resolver.github.events.payloads import IssueComment as CommentPayload
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import PictureLinks, without_pictures
from resolver.github.text.markdown import shorten_text
from resolver.github.text.markers import is_of_run, run_message_in, without_markers
from resolver.models.run import Command, Comment, Snapshot, Task, Trigger, TriggerKind
from resolver.models.truncate import shorten_thread

MAX_COMMENTS = 300
"""Maximum number of comments that are read: the oldest, and the newest before the request."""

OLDEST_COMMENTS = 60
"""Number of the oldest comments that are read if there are more than MAX_COMMENTS."""

MAX_COMMENT_CHARACTERS = 20_000
"""Maximum number of characters of a comment."""

MAX_OWN_COMMENT_CHARACTERS = 4_000
"""Maximum number of characters of a comment by Resolver."""

MAX_NAMED_LATE_COMMENTS = 5
"""Maximum number of comments after the request that are named one by one, with their authors."""

MAX_CONVERSATION_CHARACTERS = 200_000
"""Maximum number of characters of all comments together. Those in the middle are left out first."""

MAX_ISSUE_CHARACTERS = 65_536
"""Maximum number of characters of an issue's body."""


def read_task(
    access: GitHubAccess,
    repository: Repository,
    trigger: Trigger,
    own_login: str,
    picture_hosts: tuple[str, ...] = (),
) -> Task:
    """Return the Task of a trigger. Of Resolver's comments, only questions and answers are used.

    Raises ForgeError if the repository or issue is missing, moved or closed. Raises Refused for a
    command that exists only on pull requests, and if the commit that the request was about can't be
    determined.
    """
    number, actor = trigger.subject or 0, trigger.actor
    full_name, base = _check_repository(access, repository, trigger)
    with access.wrap_errors(f"read issue {number} of {full_name}", "issues: read"):
        issue = repository.get_issue(number).complete()
        _check_issue(issue, full_name, number)
        _check_command(trigger, issue, f"{full_name}#{number}")
        left_out: list[str] = []
        links = PictureLinks()
        snapshot = _issue_text(access, full_name, issue, trigger, own_login, links, left_out)
        read_comments = _read_comments(issue, trigger)
        hidden = _find_hidden_comments(access, read_comments.comments, trigger, own_login, left_out)
        comments = _chosen_comments(read_comments, hidden, trigger, own_login, links, left_out)
        pull = None
        if issue.raw_data.get("pull_request") is not None:
            pull = read_pull(access, repository, trigger, own_login, links, left_out)
        text = links.take(trigger.instruction, "in the request", issue.url, actor.login)
        reader = IssueContextReader(access, repository, trigger, number, own_login, picture_hosts)
        issue_context = reader.read(snapshot, comments, links, pull, left_out)
        is_pull = trigger.is_pull_request or pull is not None
        return Task(
            trigger=trigger.model_copy(update={"is_pull_request": is_pull, "instruction": text}),
            title=snapshot.title,
            body=snapshot.body,
            author=snapshot.author,
            association=str(issue.raw_data.get("author_association") or "NONE"),
            url=issue.html_url,
            labels=snapshot.labels or (),
            issue_type=_field_name(issue, "type", "name"),
            milestone=snapshot.milestone,
            assignees=snapshot.assignees,
            comments=comments,
            references=issue_context.references,
            pictures=issue_context.pictures,
            checks=issue_context.checks,
            left_out=tuple(left_out),
            base_branch=pull.base_branch if pull else base,
            pull=pull,
            source=f"{access.server_url.rstrip('/')}/{full_name}.git",
        )


def _check_repository(
    access: GitHubAccess, repository: Repository, trigger: Trigger
) -> tuple[str, str]:
    """Return full name and default branch. Raises ForgeError if the repository has moved."""
    with access.wrap_errors(f"read {trigger.repository}", "metadata: read"):
        full_name, base = repository.full_name, repository.default_branch
        if not base:
            raise ValueError("the repository has no default_branch")
    if full_name.casefold() != trigger.repository.casefold():
        raise ForgeError(
            f"{trigger.repository} has moved to {full_name}",
            "make the request there, or use the new name",
        )
    return full_name, base


def _check_command(trigger: Trigger, issue: Issue, name: str) -> None:
    """Raise Refused if the command exists only on pull requests and this is an issue."""
    is_pull = issue.raw_data.get("pull_request") is not None
    if trigger.command is Command.UPDATE and not is_pull:
        raise Refused(
            f"{name} is an issue, and only a pull request can be updated",
            "ask for that on a pull request",
        )
    if trigger.command is Command.REVIEW and not is_pull:
        raise Refused(
            f"{name} is an issue, and only a pull request can be reviewed",
            "ask for the review on a pull request",
        )


def comments_of(issue: Issue, since: datetime | None = None) -> Listing[IssueComment]:
    """Return the comments, oldest first.

    since: only comments that were changed since this moment, if given.
    """
    return Listing(issue.requester, IssueComment, f"{issue.url}/comments", since=since)


def newest_comments(
    issue: Issue, limit: int, since: datetime | None = None
) -> Sequence[IssueComment]:
    """Return the newest `limit` comments, oldest first.

    since: only comments that were changed since this moment, if given.
    """
    return comments_of(issue, since).newest(limit)


@dataclass(frozen=True)
class _ReadComments:
    """The comments that were read, oldest first.

    gap_index: index of the comment before which others were skipped.
    skipped: how many were skipped there.
    unread_later: how many were written after the request and were not read.
    """

    comments: Sequence[IssueComment]
    gap_index: int = 0
    skipped: int = 0
    unread_later: int = 0


def _read_comments(issue: Issue, trigger: Trigger) -> _ReadComments:
    """Read the oldest and the newest comments from before the request.

    A flood of comments after the request doesn't push out the ones from before it.
    """
    if issue.comments <= MAX_COMMENTS:
        return _ReadComments(newest_comments(issue, MAX_COMMENTS))
    oldest: list[IssueComment] = []
    newest = deque[IssueComment](maxlen=MAX_COMMENTS - OLDEST_COMMENTS)
    count = 0
    for comment in comments_of(issue):
        if _is_written_after_request(comment, trigger):
            break
        count += 1
        if len(oldest) < OLDEST_COMMENTS:
            oldest.append(comment)
        else:
            newest.append(comment)
    read = [*oldest, *newest]
    return _ReadComments(read, len(oldest), count - len(read), issue.comments - count)


def _is_written_after_request(comment: IssueComment, trigger: Trigger) -> bool:
    return _lateness(comment, trigger) == WRITTEN


def _lateness(comment: IssueComment, trigger: Trigger) -> str:
    return reason_unseen(
        trigger,
        TriggerKind.ISSUE_COMMENT,
        comment.id,
        utc(comment.created_at),
        utc(comment.updated_at),
    )


def _field_name(issue: Issue, field: str, key: str) -> str:
    """Return the name in a field of the issue's JSON document, "" if there is none."""
    value = issue.raw_data.get(field) or {}
    return _plain_name(str(value.get(key) or ""))


def _plain_name(name: str) -> str:
    return shorten_text(" ".join(strip_hidden(name).text.split()), 100)


def _check_issue(issue: Issue, full_name: str, number: int) -> None:
    actual_name = str(issue.raw_data.get("repository_url") or "").rsplit("/repos/", 1)[-1]
    if issue.number != number or (actual_name and actual_name.casefold() != full_name.casefold()):
        raise ForgeError(
            f"{full_name}#{number} has moved to {actual_name}#{issue.number}",
            "make the request there",
        )
    if issue.state != "open":
        raise ForgeError(f"{full_name}#{number} is closed", "reopen it and make the request again")


def _issue_text(
    access: GitHubAccess,
    repository: str,
    issue: Issue,
    trigger: Trigger,
    own_login: str,
    links: PictureLinks,
    left_out: list[str],
) -> Snapshot:
    current = Snapshot(
        title=issue.title or "",
        body=issue.raw_data.get("body") or "",
        author=author_login(issue),
        labels=tuple(label.name for label in issue.labels[:100]),
        milestone=_field_name(issue, "milestone", "title"),
        assignees=tuple(
            str(assignee["login"]) for assignee in issue.raw_data.get("assignees") or ()
        ),
    )
    original = trigger.snapshot or original_text(
        access, repository, issue.number, trigger, current, issue.updated_at
    )
    if original.title.strip() != current.title.strip():
        left_out.append("the issue's title was edited after the request: the earlier one is used")
    if _lines(original.body) != _lines(current.body) and trigger.snapshot is None:
        left_out.append("the issue's text, edited after the request")
    elif _lines(original.body) != _lines(current.body):
        left_out.append("the issue's text was edited after the request: the earlier one is used")
    title = " ".join(_clean(original.title, "title", left_out).split())
    author = original.author or current.author
    body = _clean(without_markers(original.body, author, own_login), "text", left_out)
    body = links.take(body, "in the description", issue.url, author)
    if len(body) > MAX_ISSUE_CHARACTERS:
        left_out.append(f"the issue's text after its first {MAX_ISSUE_CHARACTERS:,} characters")
    labeled = current if original.labels is None else original
    return Snapshot(
        title=shorten_text(title, 256) or "(no title)",
        body=shorten_text(body, MAX_ISSUE_CHARACTERS),
        author=author,
        labels=tuple(strip_hidden(label).text for label in labeled.labels or ()),
        milestone=_plain_name(labeled.milestone),
        assignees=labeled.assignees,
    )


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _clean(text: str, field: str, left_out: list[str]) -> str:
    cleaned = strip_hidden(text)
    if cleaned.removed:
        left_out.append(f"hidden in the issue's {field}: {', '.join(cleaned.removed)}")
    return cleaned.text.strip()


def _find_hidden_comments(
    access: GitHubAccess,
    comments: Sequence[IssueComment],
    trigger: Trigger,
    own_login: str,
    left_out: list[str],
) -> frozenset[str]:
    """Return the node ids of comments that maintainers have hidden.

    The requester's comments and Resolver's own are not checked.
    """
    skipped_authors = {own_login.casefold(), trigger.actor.login.casefold()}
    node_ids = [
        comment.node_id
        for comment in comments
        if author_login(comment).casefold() not in skipped_authors
    ]
    return minimized_comments(access, node_ids, left_out)


def _chosen_comments(
    read_comments: _ReadComments,
    hidden_ids: frozenset[str],
    trigger: Trigger,
    own_login: str,
    links: PictureLinks,
    left_out: list[str],
) -> tuple[Comment, ...]:
    """Return the comments for the task, shortened together. Those of Resolver are only used if they
    are questions or answers, and those of others if the requester could see them."""
    chosen: list[Comment] = []
    late_comments: list[tuple[str, str]] = []
    skipped_count = hidden_count = 0
    for index, comment in enumerate(read_comments.comments):
        skipped_count += read_comments.skipped if index == read_comments.gap_index else 0
        author, body = author_login(comment), comment.body or ""
        is_ours = author.casefold() == own_login.casefold()
        # The progress comment of this run may exist already.
        if is_ours and is_of_run(body, trigger.key):
            continue
        lateness_reason = _lateness(comment, trigger)
        if is_ours and (lateness_reason or not run_message_in(body)):
            continue  # its readers know what Resolver has said about its own runs
        if lateness_reason:
            late_comments.append((author, lateness_reason))
        elif comment.node_id in hidden_ids:
            hidden_count += 1
        else:
            task_comment = (
                _make_own_comment(comment, author)
                if is_ours
                else _make_comment(comment, author, links, left_out)
            )
            chosen.append(task_comment.model_copy(update={"skipped": skipped_count}))
            skipped_count = 0
    kept_comments = shorten_thread(chosen, MAX_CONVERSATION_CHARACTERS)
    dropped_count = read_comments.skipped + len(chosen) - len(kept_comments)
    _report_late_comments(late_comments, read_comments.unread_later, left_out)
    _report_comment_counts(hidden_count, dropped_count, left_out)
    return kept_comments


def _report_comment_counts(hidden: int, dropped: int, left_out: list[str]) -> None:
    """Report the numbers of comments left out because maintainers have hidden them, and for
    length."""
    if hidden:
        left_out.append(describe_minimized(hidden))
    if dropped:
        left_out.append(
            f"{dropped} comment{'' if dropped == 1 else 's'} between the oldest and the newest: "
            "the conversation is too long"
        )


def _report_late_comments(
    late_comments: Sequence[tuple[str, str]], unread_count: int, left_out: list[str]
) -> None:
    """Report comments that came too late: a few with their authors, more only by number.

    unread_count: number of further comments written after the request.
    """
    if len(late_comments) + unread_count <= MAX_NAMED_LATE_COMMENTS:
        left_out += [
            f"a comment of {author} that was {reason} the request"
            for author, reason in late_comments
        ]
        return
    counts = Counter(reason for _, reason in late_comments)
    counts[WRITTEN] += unread_count
    left_out += [
        f"{count} comment{'' if count == 1 else 's'} {reason} the request"
        for reason, count in sorted(counts.items())
        if count
    ]


def _make_own_comment(comment: IssueComment, author: str) -> Comment:
    """Return a comment of Resolver, reduced to the question or answer in it."""
    text = without_pictures(strip_hidden(run_message_in(comment.body or "")).text.strip())
    return Comment(
        id=comment.id,
        author=author,
        created_at=utc(comment.created_at),
        body=shorten_text(text, MAX_OWN_COMMENT_CHARACTERS),
        url=comment.html_url,
        is_ours=True,
    )


def _make_comment(
    comment: IssueComment, author: str, links: PictureLinks, left_out: list[str]
) -> Comment:
    cleaned = strip_hidden(comment.body or "")
    if cleaned.removed:
        left_out.append(f"hidden in a comment of {author}: {', '.join(cleaned.removed)}")
    body = links.take(cleaned.text.strip(), f"in a comment of {author}", comment.url, author)
    if len(body) > MAX_COMMENT_CHARACTERS:
        left_out.append(
            f"a comment of {author} after its first {MAX_COMMENT_CHARACTERS:,} characters"
        )
    return Comment(
        id=comment.id,
        author=author,
        association=str(comment.raw_data.get("author_association") or "NONE"),
        created_at=utc(comment.created_at),
        body=shorten_text(body, MAX_COMMENT_CHARACTERS),
        url=comment.html_url,
    )


logger = logging.getLogger("resolver.github")

NEWS_PAGE_SIZE = 100
"""Maximum number of comments per call. Further ones are returned by the next call."""

MAX_NEWS_PAGES = 20
"""Maximum number of pages that are read at once."""


class NewComments:
    """Returns each new comment of a conversation once, in order. Not thread-safe.

    since: comments from this time on are returned.

    Attributes:
        changed: Ids of the comments that were deleted or edited between the last two calls.
    """

    def __init__(
        self, access: GitHubAccess, repository: Repository, number: int, since: datetime
    ) -> None:
        self._access = access
        self._repository = repository
        self._number = number
        self._since = since.astimezone(UTC)
        self._polled = PolledReader(repository.requester)
        self._seen: set[int] = set()
        self._listed: dict[int, str] = {}
        self.changed: frozenset[int] = frozenset()

    def read(self) -> list[CommentPayload]:
        """Return the comments that are new since the last call. Raises ForgeError."""
        name = self._repository.full_name
        with self._access.wrap_errors(
            f"read the comments of {name}#{self._number}", "issues: read"
        ):
            rows = self._listing()
            comments, invalid_count = read_rows(CommentPayload, rows or [])
        if invalid_count:
            logger.warning("%s comments of %s#%s can't be read", invalid_count, name, self._number)
        new_comments = [comment for comment in comments if comment.id not in self._seen]
        self._seen |= {comment.id for comment in comments}
        listed = {comment.id: comment.body or "" for comment in comments}
        before, self._listed = self._listed, self._listed if rows is None else listed
        self.changed = frozenset(id for id in before if self._listed.get(id) != before[id])
        return new_comments

    def _listing(self) -> list[Any] | None:
        """Return all comments that were written or edited since the start, None if none changed.

        They are listed in the order of their creation, so a new one is on the last page.
        """
        path = f"{self._repository.url}/issues/{self._number}/comments"
        query = {"since": f"{self._since:%Y-%m-%dT%H:%M:%SZ}", "per_page": NEWS_PAGE_SIZE}
        rows: list[Any] = []
        is_changed = False
        for page in range(1, MAX_NEWS_PAGES + 1):
            answer = self._polled.get(path, {**query, "page": page} if page > 1 else query)
            is_changed |= answer.changed
            rows += answer.data
            if len(answer.data) < NEWS_PAGE_SIZE:
                break
        return rows if is_changed else None
