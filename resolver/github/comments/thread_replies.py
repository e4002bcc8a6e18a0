"""Replies in review threads, only in those that the request was about and once in each.

The model's text in a reply is escaped.
Source: https://docs.github.com/en/rest/pulls/comments#create-a-reply-for-a-review-comment
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from github.PullRequest import PullRequest
from github.PullRequestComment import PullRequestComment
from github.Repository import Repository

from resolver.errors import ForgeError
from resolver.github.client.access import GitHubAccess
from resolver.github.client.accounts import is_by
from resolver.github.client.failures import ServerFailure
from resolver.github.client.resources import Listing
from resolver.github.comments.find_or_create import write_once
from resolver.github.comments.report import Report
from resolver.github.comments.templates import render_comment, safe
from resolver.github.context.conversation import ConversationReader
from resolver.github.context.conversation import Thread as FetchedThread
from resolver.github.context.own_comments import searched_since
from resolver.github.text.comment_markdown import safe_markdown
from resolver.github.text.markers import is_thread_reply, thread_marker
from resolver.models.pull_request import AnsweredThreads, ThreadReply
from resolver.models.run import Trigger

MAX_REPLY_LENGTH = 6_000
"""Maximum length of the agent's text, in UTF-16 units."""


def thread_reply(report: Report, reply: ThreadReply, link: str | None) -> str:
    """Return the text of the reply.

    `link` is the page of the commit that was added to the pull request. It is None if there is
    none: the change then is in a separate pull request, or was not published.
    """
    number, patch = report.trigger.number, report.patch
    other_pull_url = report.pull_request.url if report.pull_request and not link else ""
    commit = patch.commit if patch is not None and patch.commit else ""
    text = safe_markdown(
        reply.text, own_issue=number, limit=MAX_REPLY_LENGTH, forge_host=report.forge_host
    )
    return render_comment(
        "thread_reply.md.j2",
        marker=safe(marker_of(report, reply)),
        text=safe(text),
        done=reply.is_addressed,
        commit=commit[:12],
        link=safe(link or ""),
        other_pull_request=safe(other_pull_url or ""),
    )


def marker_of(report: Report, reply: ThreadReply) -> str:
    """Return the marker that the reply begins with and is found by."""
    return thread_marker(
        report.trigger.key, reply.thread.thread.id, is_only_response=reply.is_only_answer
    )


logger = logging.getLogger("resolver.github")

_MAX_SEARCHED_COMMENTS = 1_000
"""Number of newest review comments on a pull request that are searched."""


def reply_of_run(pull: PullRequest, own_login: str, trigger: Trigger) -> PullRequestComment | None:
    """Return the reply that is the only response to the trigger's request, or None."""
    for comment in _own_replies(pull, own_login, trigger):
        if is_thread_reply(comment.body or "", trigger.key, is_only_response=True):
            return comment
    return None


class ThreadReplyWriter:
    """Replies in the review threads of one request.

    `link` is the page of the commit that was added to the pull request, None if there is none.
    """

    def __init__(
        self,
        access: GitHubAccess,
        repository: Repository,
        own_login: str,
        report: Report,
        link: str | None,
    ) -> None:
        self._access = access
        self._repository = repository
        self._own_login = own_login
        self._report = report
        self._link = link
        self._pull = repository.get_pull(report.trigger.number or 0)

    def post(self, replies: Sequence[ThreadReply]) -> AnsweredThreads:
        """Write one reply in each thread that still exists, and return the result.

        Raises ForgeError if GitHub is unavailable or no reply could be written.
        """
        with self._access.wrap_errors(self._operation, "pull-requests: read"):
            threads, earlier_replies = self._threads(), self._replies()
        urls: list[str] = []
        unanswered: list[str] = []
        last_error: ForgeError | None = None
        for reply in replies:
            thread = threads.get(reply.thread.thread.id)
            if thread is None:
                unanswered.append(reply.thread.place)
                continue
            try:
                urls.append(self._write_reply(reply, thread, earlier_replies).html_url)
            except ServerFailure:
                raise
            except ForgeError as error:  # the thread was deleted a moment ago, or is locked
                unanswered.append(reply.thread.place)
                last_error = error
                continue
        if last_error is not None and not urls:
            raise last_error
        return AnsweredThreads(
            url=urls[0] if urls else "",
            missing_places=tuple(unanswered),
        )

    @property
    def _operation(self) -> str:
        name = self._repository.full_name
        return f"answer in the review threads of {name}#{self._report.trigger.number}"

    def _threads(self) -> dict[str, FetchedThread]:
        number = self._report.trigger.number or 0
        reader = ConversationReader(self._access, self._repository.full_name, number)
        return {thread.id: thread for thread in reader.threads().items}

    def _write_reply(
        self,
        reply: ThreadReply,
        thread: FetchedThread,
        earlier_replies: Mapping[str, PullRequestComment],
    ) -> PullRequestComment:
        """Return the reply, which is written unless it exists."""
        requested_thread, marker = reply.thread.thread, marker_of(self._report, reply)
        if marker in earlier_replies:
            return earlier_replies[marker]
        body = thread_reply(self._report, reply, self._link)
        root_id = thread.shown_comments[0].id if thread.shown_comments else requested_thread.root
        return write_once(
            self._access,
            self._operation,
            "pull-requests: write",
            lambda: self._replies().get(marker),
            lambda: self._pull.create_review_comment_reply(root_id, body),
            is_new=True,
        )

    def _replies(self) -> dict[str, PullRequestComment]:
        """Return the replies to this request by their markers."""
        replies = _own_replies(self._pull, self._own_login, self._report.trigger)
        return {(reply.body or "").split("\n", 1)[0].strip(): reply for reply in replies}


def _own_replies(
    pull: PullRequest, own_login: str, trigger: Trigger
) -> Iterator[PullRequestComment]:
    """Yield Resolver's replies to the trigger's request, newest first."""
    listing = Listing(
        pull.requester,
        PullRequestComment,
        f"{pull.url}/comments",
        sort="created",
        direction="desc",
        since=searched_since(trigger),
    )
    for comment in islice(listing, _MAX_SEARCHED_COMMENTS):
        if is_by(comment, own_login) and is_thread_reply(comment.body or "", trigger.key):
            yield comment
