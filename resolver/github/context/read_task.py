"""Reads an issue or pull request into a Task that contains only what the requester could see.

Text that is newer than the trigger is left out, hidden text is removed, and sizes are limited.
`Task.left_out` names everything that is not used. While a run watches its conversation, the new
comments are read.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from github.Repository import Repository

from resolver.errors import ForgeError, Refused
from resolver.github.client.access import GitHubAccess, read_rows
from resolver.github.client.resources import PolledReader
from resolver.github.context.conversation import Conversation, RemarkText, Subject
from resolver.github.context.failed_checks import FailedCheckReader
from resolver.github.context.pictures import PictureHosts, PictureReader
from resolver.github.context.pull_request import read_pull
from resolver.github.context.related_issues import RelatedIssueReader
from resolver.github.context.visibility import SeenTexts, reason_unseen, utc
from resolver.github.events.payloads import IssueComment as CommentPayload
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import without_pictures
from resolver.github.text.markdown import shorten_text
from resolver.github.text.markers import is_of_run, run_message_in
from resolver.models.issue_context import Picture
from resolver.models.pull_request import PullRequestContext
from resolver.models.run import Command, Comment, Snapshot, Task, Trigger, TriggerKind
from resolver.models.truncate import shorten_thread
from resolver.trace.plain import plural

MAX_COMMENT_CHARACTERS = 20_000
"""Maximum number of characters of a comment."""

MAX_OWN_COMMENT_CHARACTERS = 4_000
"""Maximum number of characters of a comment by Resolver."""

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

    conversation: of the issue or pull request that is worked on. picture_hosts: hosts of pictures
    in addition to GitHub's own, with their port if it is not the default.

    Raises ForgeError if the repository has moved or is empty, or the issue is closed. Raises
    Refused for a command that exists only on pull requests, and if the commit that the request was
    about can't be determined.
    """
    subject, name = conversation.subject, conversation.repository
    default_branch = _check_subject(conversation, trigger)
    texts, path = SeenTexts(trigger, own_login), f"{repository.url}/issues"
    subject_path = f"{path}/{subject.number}"
    snapshot = _issue_text(subject, texts, subject_path)
    comments = _chosen_comments(conversation, texts, path)
    is_pull = subject.is_pull_request
    pull = read_pull(access, repository, conversation, texts) if is_pull else None
    texts.report_unused_remarks()
    author = trigger.actor.login
    instruction = texts.links.take(trigger.instruction, "in the request", subject_path, author)
    # A run can work without the following: what can't be read is reported.
    said = [comment.body for comment in reversed(comments) if not comment.is_ours]
    references = RelatedIssueReader(access, name, subject, texts).read(
        [trigger.instruction, snapshot.title, snapshot.body, *said, *_review_texts(pull)]
    )
    shown = [snapshot.body, *(comment.body for comment in comments), *_review_texts(pull)]
    hosts = PictureHosts(access.server_url, picture_hosts)
    pictures = PictureReader(access, repository.requester, hosts)
    commit = pull.head if pull else trigger.head
    needs_checks = commit and (is_pull or trigger.kind is TriggerKind.CHECK_FAILED)
    checks = FailedCheckReader(access, repository, texts).failed(commit) if needs_checks else ()
    update = {"is_pull_request": trigger.is_pull_request or is_pull, "instruction": instruction}
    return Task(
        trigger=trigger.model_copy(update=update),
        title=snapshot.title,
        body=snapshot.body,
        author=snapshot.author,
        association=subject.association,
        url=subject.url,
        labels=snapshot.labels or (),
        milestone=snapshot.milestone,
        assignees=snapshot.assignees,
        comments=comments,
        references=references,
        pictures=_read_pictures(pictures, shown, texts),
        checks=checks,
        left_out=tuple(texts.left_out),
        base_branch=pull.base_branch if pull else default_branch,
        pull=pull,
        source=f"{access.server_url.rstrip('/')}/{name}.git",
    )


def _check_subject(conversation: Conversation, trigger: Trigger) -> str:
    """Return the default branch. Raise an error if nothing can be done here, or not what the
    request asks for."""
    name, subject = conversation.repository, conversation.subject
    if name.casefold() != trigger.repository.casefold():
        raise ForgeError(
            f"{trigger.repository} has moved to {name}",
            "make the request there, or use the new name",
        )
    if conversation.default_branch is None:
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
    return conversation.default_branch


def _read_pictures(
    reader: PictureReader, shown: Sequence[str], texts: SeenTexts
) -> tuple[Picture, ...]:
    """Return the pictures in the texts that are shown."""
    if texts.links.unnumbered:
        texts.left_out.append(f"{texts.links.unnumbered} more pictures")
    links = [k for k in texts.links.links if any(f"[picture {k.number}]" in text for text in shown)]
    return reader.read(links)


def _issue_text(subject: Subject, texts: SeenTexts, path: str) -> Snapshot:
    """Return what the requester saw. path: of the issue on the REST API."""
    trigger = texts.trigger
    current = Snapshot(
        title=subject.title,
        body=subject.body,
        author=subject.author,
        labels=tuple(label.name for label in subject.labels),
        milestone=subject.milestone or "",
        assignees=tuple(account.login for account in subject.assignees),
    )
    original = trigger.snapshot or _original_text(subject, texts, current)
    if original.title.strip() != current.title.strip():
        texts.left_out.append(
            "the issue's title was edited after the request: the earlier one is used"
        )
    if _lines(original.body) != _lines(current.body):
        is_known = trigger.snapshot is not None
        texts.left_out.append(
            "the issue's text was edited after the request: the earlier one is used"
            if is_known
            else "the issue's text, edited after the request"
        )
    author = original.author or current.author
    body = texts.clean(original.body, "the issue's text", author)
    body = texts.links.take(body, "in the description", path, author)
    labeled = current if original.labels is None else original
    return Snapshot(
        title=texts.title(original.title, "the issue's title") or "(no title)",
        body=texts.shorten(body, "the issue's text", MAX_ISSUE_CHARACTERS),
        author=author,
        labels=tuple(strip_hidden(label).text for label in labeled.labels or ()),
        milestone=texts.title(labeled.milestone, "the milestone"),
        assignees=labeled.assignees,
    )


def _original_text(subject: Subject, texts: SeenTexts, current: Snapshot) -> Snapshot:
    """Return `current` as it was at the time of the trigger, whose event did not contain the text.

    The body is empty if it was edited since, because GitHub's API doesn't return the earlier one.
    """
    if texts.is_now:
        return current
    is_late = subject.edited_at is not None and texts.is_late(subject.edited_at)
    title = subject.renamed[0].before if subject.renamed else current.title
    return current.model_copy(update={"title": title, "body": "" if is_late else current.body})


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _review_texts(pull: PullRequestContext | None) -> list[str]:
    """Return the texts of reviews and review threads, newest first."""
    if pull is None:
        return []
    texts = [review.text for review in pull.reviews]
    texts += [text for thread in pull.threads for text in thread.comments]
    return [text.body for text in sorted(texts, key=lambda text: text.at, reverse=True)]


def _chosen_comments(
    conversation: Conversation, texts: SeenTexts, path: str
) -> tuple[Comment, ...]:
    """Return the comments for the task, shortened together. Those of Resolver are only used if they
    are questions or answers, and those of others if the requester could see them."""
    chosen = [
        comment
        for remark in conversation.comments.items
        if (comment := _make_comment(remark, texts, path)) is not None
    ]
    kept_comments = shorten_thread(chosen, MAX_CONVERSATION_CHARACTERS)
    dropped_count = len(chosen) - len(kept_comments)
    if dropped_count:
        texts.left_out.append(
            f"{plural(dropped_count, 'comment')} between the oldest and the newest: "
            "the conversation is too long"
        )
    if conversation.comments.unread:
        texts.left_out.append(f"the oldest {plural(conversation.comments.unread, 'comment')}")
    return kept_comments


def _make_comment(remark: RemarkText, texts: SeenTexts, path: str) -> Comment | None:
    is_ours = texts.is_ours(remark.author)
    if is_ours:
        body = _own_message(remark, texts.trigger)
    else:
        kind, api_path = TriggerKind.ISSUE_COMMENT, f"{path}/comments/{remark.id}"
        body = texts.remark(remark, "", kind, api_path, MAX_COMMENT_CHARACTERS)
    if body is None:
        return None
    return Comment(
        id=remark.id,
        author=remark.author,
        association=remark.association if not is_ours else "NONE",
        created_at=utc(remark.created_at),
        body=body,
        url=remark.url,
        is_ours=is_ours,
    )


def _own_message(remark: RemarkText, trigger: Trigger) -> str | None:
    """Return the question or answer in a comment of Resolver. Its readers know what it has said
    about its own runs, and the progress comment of this run may exist already."""
    created = utc(remark.created_at)
    edited = utc(remark.edited_at) if remark.edited_at else created
    is_late = reason_unseen(trigger, TriggerKind.ISSUE_COMMENT, remark.id, created, edited)
    message = run_message_in(remark.body)
    if is_late or not message or is_of_run(remark.body, trigger.key):
        return None
    text = without_pictures(strip_hidden(message).text.strip())
    return shorten_text(text, MAX_OWN_COMMENT_CHARACTERS)


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
            comments, invalid_count = read_rows(CommentPayload, self._listing())
        if invalid_count:
            logger.warning("%s comments of %s#%s can't be read", invalid_count, name, self._number)
        new_comments = [comment for comment in comments if comment.id not in self._seen]
        self._seen |= {comment.id for comment in comments}
        before = self._listed
        self._listed = {comment.id: comment.body or "" for comment in comments}
        self.changed = frozenset(id for id in before if self._listed.get(id) != before[id])
        return new_comments

    def _listing(self) -> list[Any]:
        """Return all comments that were written or edited since the start.

        They are listed in the order of their creation, so a new one is on the last page.
        """
        path = f"{self._repository.url}/issues/{self._number}/comments"
        query = {"since": f"{self._since:%Y-%m-%dT%H:%M:%SZ}", "per_page": NEWS_PAGE_SIZE}
        rows: list[Any] = []
        for page in range(1, MAX_NEWS_PAGES + 1):
            listed = self._polled.get(path, {**query, "page": page} if page > 1 else query)
            rows += listed
            if len(listed) < NEWS_PAGE_SIZE:
                break
        return rows
