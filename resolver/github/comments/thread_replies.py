"""Replies in review threads, only in those that the request was about and once in each.

The model's text in a reply is escaped.
Source: https://docs.github.com/en/rest/pulls/comments#create-a-reply-for-a-review-comment
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from resolver.github.context.own_comments import searched_since
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
    marker = safe(marker_of(report, reply))
    return render_comment(
        "thread_reply.md.j2",
        report=report,
        reply=reply,
        marker=marker,
        link=link,
        max_length=MAX_REPLY_LENGTH,
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


@dataclass(frozen=True)
class ThreadReplyWriter:
    """Replies in the review threads of one request.

    `commit` was added to the pull request; None if none was.
    """

    access: GitHubAccess
    repository: Repository
    own_login: str
    report: Report
    commit: str | None

    def post(self, replies: Sequence[ThreadReply]) -> AnsweredThreads:
        """Write one reply in each thread that still exists, and return the result.

        Raises ForgeError if GitHub is unavailable or no reply could be written.
        """
        with self.access.wrap_errors(self._operation, "pull-requests: read"):
            earlier_replies = self._replies()
        urls: list[str] = []
        unanswered: list[str] = []
        last_error: ForgeError | None = None
        for reply in replies:
            earlier = earlier_replies.get(marker_of(self.report, reply))
            try:
                urls.append((earlier or self._write_reply(reply)).html_url)
            except ServerFailure:
                raise
            except ForgeError as error:  # the thread was deleted, or is locked
                unanswered.append(reply.thread.place)
                last_error = error
        if last_error is not None and not urls:
            raise last_error
        return AnsweredThreads(url=urls[0] if urls else "", missing_places=tuple(unanswered))

    @property
    def _operation(self) -> str:
        name = self.repository.full_name
        return f"answer in the review threads of {name}#{self.report.trigger.number}"

    @property
    def _link(self) -> str | None:
        """The page of the commit on the pull request."""
        if self.commit is None:
            return None
        page = f"{self.access.server_url.rstrip('/')}/{self.repository.full_name}/pull"
        return f"{page}/{self.report.trigger.number}/commits/{self.commit}"

    @cached_property
    def _pull(self) -> PullRequest:
        return self.repository.get_pull(self.report.trigger.number or 0)

    def _write_reply(self, reply: ThreadReply) -> PullRequestComment:
        marker, body = marker_of(self.report, reply), thread_reply(self.report, reply, self._link)
        root_id = reply.thread.thread.root
        return write_once(
            self.access,
            self._operation,
            "pull-requests: write",
            lambda: self._replies().get(marker),
            lambda: self._pull.create_review_comment_reply(root_id, body),
            is_new=True,
        )

    def _replies(self) -> dict[str, PullRequestComment]:
        """Return the replies to this request by their markers."""
        replies = _own_replies(self._pull, self.own_login, self.report.trigger)
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
