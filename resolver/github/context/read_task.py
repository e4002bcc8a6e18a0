"""Reads an issue or pull request into a Task that contains only what the requester could see.

Text that is newer than the trigger is left out, hidden text is removed, and sizes are limited.
`Task.left_out` names everything that is not used. While a run watches its conversation, the new
comments are read.
"""

import logging
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from github.Issue import Issue
from github.IssueComment import IssueComment
from github.Repository import Repository

from resolver.errors import ForgeError, Refused
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.resources import Listing, PolledReader
from resolver.github.context.conversation import Conversation, RemarkText, Subject
from resolver.github.context.issue_context import IssueContextReader
from resolver.github.context.pull_request import read_pull
from resolver.github.context.visibility import (
    describe_minimized,
    is_unwanted,
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
    conversation: Conversation,
    own_login: str,
    picture_hosts: tuple[str, ...] = (),
) -> Task:
    """Return the Task of a trigger. Of Resolver's comments, only questions and answers are used.

    conversation: of the issue or pull request that is worked on. Raises ForgeError if the
    repository has moved or is empty, or the issue is closed. Raises Refused for a command that
    exists only on pull requests, and if the commit that the request was about can't be determined.
    """
    subject, full_name = conversation.subject, conversation.repository
    _check_subject(conversation, trigger)
    with access.wrap_errors(f"read issue {subject.number} of {full_name}", "issues: read"):
        left_out: list[str] = []
        links = PictureLinks()
        path = f"{repository.url}/issues"
        snapshot = _issue_text(subject, trigger, own_login, path, links, left_out)
        comments = _chosen_comments(conversation, trigger, own_login, path, links, left_out)
        pull = None
        if subject.is_pull_request:
            pull = read_pull(access, repository, conversation, trigger, own_login, links, left_out)
        text = links.take(
            trigger.instruction, "in the request", f"{path}/{subject.number}", trigger.actor.login
        )
        reader = IssueContextReader(access, repository, trigger, subject, own_login, picture_hosts)
        issue_context = reader.read(snapshot, comments, links, pull, left_out)
        is_pull = trigger.is_pull_request or pull is not None
        return Task(
            trigger=trigger.model_copy(update={"is_pull_request": is_pull, "instruction": text}),
            title=snapshot.title,
            body=snapshot.body,
            author=snapshot.author,
            association=subject.association,
            url=subject.url,
            labels=snapshot.labels or (),
            milestone=snapshot.milestone,
            assignees=snapshot.assignees,
            comments=comments,
            references=issue_context.references,
            pictures=issue_context.pictures,
            checks=issue_context.checks,
            left_out=tuple(left_out),
            base_branch=pull.base_branch if pull else conversation.default_branch,
            pull=pull,
            source=f"{access.server_url.rstrip('/')}/{full_name}.git",
        )


def _check_subject(conversation: Conversation, trigger: Trigger) -> None:
    """Raise an error if nothing can be done here, or not what the request asks for."""
    name, subject = conversation.repository, conversation.subject
    if name.casefold() != trigger.repository.casefold():
        raise ForgeError(
            f"{trigger.repository} has moved to {name}",
            "make the request there, or use the new name",
        )
    if not conversation.default_branch:
        raise ForgeError(f"{name} is empty", "push a first commit, then make the request again")
    if subject.closed:
        raise ForgeError(
            f"{name}#{subject.number} is closed", "reopen it and make the request again"
        )
    verb = {Command.UPDATE: "updated", Command.REVIEW: "reviewed"}.get(trigger.command)
    if verb is not None and not subject.is_pull_request:
        raise Refused(
            f"{name}#{subject.number} is an issue, and only a pull request can be {verb}",
            "ask for that on a pull request",
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


def _lateness(comment: RemarkText, trigger: Trigger) -> str:
    created = utc(comment.created_at)
    edited = utc(comment.edited_at) if comment.edited_at else created
    return reason_unseen(trigger, TriggerKind.ISSUE_COMMENT, comment.id, created, edited)


def _plain_name(name: str) -> str:
    return shorten_text(" ".join(strip_hidden(name).text.split()), 100)


def _issue_text(
    subject: Subject,
    trigger: Trigger,
    own_login: str,
    path: str,
    links: PictureLinks,
    left_out: list[str],
) -> Snapshot:
    current = Snapshot(
        title=subject.title,
        body=subject.body,
        author=subject.author,
        labels=tuple(label.name for label in subject.labels),
        milestone=_plain_name(subject.milestone.title) if subject.milestone else "",
        assignees=tuple(account.login for account in subject.assignees),
    )
    original = trigger.snapshot or _original_text(subject, trigger, current)
    if original.title.strip() != current.title.strip():
        left_out.append("the issue's title was edited after the request: the earlier one is used")
    if _lines(original.body) != _lines(current.body) and trigger.snapshot is None:
        left_out.append("the issue's text, edited after the request")
    elif _lines(original.body) != _lines(current.body):
        left_out.append("the issue's text was edited after the request: the earlier one is used")
    title = " ".join(_clean(original.title, "title", left_out).split())
    author = original.author or current.author
    body = _clean(without_markers(original.body, author, own_login), "text", left_out)
    body = links.take(body, "in the description", f"{path}/{subject.number}", author)
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


def _original_text(subject: Subject, trigger: Trigger, current: Snapshot) -> Snapshot:
    """Return `current` as it was at the time of the trigger, whose event did not contain the text.

    The body is "" if it was edited since, because GitHub's API doesn't return the earlier one.
    """
    if trigger.kind is TriggerKind.COMMAND_LINE:
        return current
    is_late = subject.edited_at is not None and utc(subject.edited_at) >= trigger.at
    title = subject.renamed[0].before if subject.renamed else current.title
    return current.model_copy(update={"title": title, "body": "" if is_late else current.body})


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _clean(text: str, field: str, left_out: list[str]) -> str:
    cleaned = strip_hidden(text)
    if cleaned.removed:
        left_out.append(f"hidden in the issue's {field}: {', '.join(cleaned.removed)}")
    return cleaned.text.strip()


def _chosen_comments(
    conversation: Conversation,
    trigger: Trigger,
    own_login: str,
    path: str,
    links: PictureLinks,
    left_out: list[str],
) -> tuple[Comment, ...]:
    """Return the comments for the task, shortened together. Those of Resolver are only used if they
    are questions or answers, and those of others if the requester could see them."""
    chosen: list[Comment] = []
    late_comments: list[tuple[str, str]] = []
    hidden_count = 0
    for comment in conversation.comments.items:
        is_ours = comment.author.casefold() == own_login.casefold()
        # The progress comment of this run may exist already.
        if is_ours and is_of_run(comment.body, trigger.key):
            continue
        lateness_reason = _lateness(comment, trigger)
        if is_ours and (lateness_reason or not run_message_in(comment.body)):
            continue  # its readers know what Resolver has said about its own runs
        is_requester = comment.author.casefold() == trigger.actor.login.casefold()
        if lateness_reason:
            late_comments.append((comment.author, lateness_reason))
        elif is_unwanted(comment.is_minimized, comment.why_minimized) and not is_requester:
            hidden_count += 1
        elif is_ours:
            chosen.append(_make_own_comment(comment))
        else:
            chosen.append(_make_comment(comment, path, links, left_out))
    kept_comments = shorten_thread(chosen, MAX_CONVERSATION_CHARACTERS)
    dropped_count = len(chosen) - len(kept_comments)
    _report_late_comments(late_comments, left_out)
    if hidden_count:
        left_out.append(describe_minimized(hidden_count))
    if dropped_count:
        left_out.append(
            f"{_count_comments(dropped_count)} between the oldest and the newest: "
            "the conversation is too long"
        )
    if conversation.comments.unread:
        left_out.append(f"the oldest {_count_comments(conversation.comments.unread)}")
    return kept_comments


def _count_comments(count: int) -> str:
    return f"{count} comment{'' if count == 1 else 's'}"


def _report_late_comments(late_comments: Sequence[tuple[str, str]], left_out: list[str]) -> None:
    """Report comments that came too late: a few with their authors, more only by number."""
    if len(late_comments) <= MAX_NAMED_LATE_COMMENTS:
        left_out += [
            f"a comment of {author} that was {reason} the request"
            for author, reason in late_comments
        ]
        return
    counts = Counter(reason for _, reason in late_comments)
    left_out += [
        f"{_count_comments(count)} {reason} the request" for reason, count in sorted(counts.items())
    ]


def _make_own_comment(comment: RemarkText) -> Comment:
    """Return a comment of Resolver, reduced to the question or answer in it."""
    text = without_pictures(strip_hidden(run_message_in(comment.body)).text.strip())
    return Comment(
        id=comment.id,
        author=comment.author,
        created_at=utc(comment.created_at),
        body=shorten_text(text, MAX_OWN_COMMENT_CHARACTERS),
        url=comment.url,
        is_ours=True,
    )


def _make_comment(
    comment: RemarkText, path: str, links: PictureLinks, left_out: list[str]
) -> Comment:
    author, cleaned = comment.author, strip_hidden(comment.body)
    if cleaned.removed:
        left_out.append(f"hidden in a comment of {author}: {', '.join(cleaned.removed)}")
    api_path = f"{path}/comments/{comment.id}"
    body = links.take(cleaned.text.strip(), f"in a comment of {author}", api_path, author)
    if len(body) > MAX_COMMENT_CHARACTERS:
        left_out.append(
            f"a comment of {author} after its first {MAX_COMMENT_CHARACTERS:,} characters"
        )
    return Comment(
        id=comment.id,
        author=author,
        association=comment.association,
        created_at=utc(comment.created_at),
        body=shorten_text(body, MAX_COMMENT_CHARACTERS),
        url=comment.url,
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
