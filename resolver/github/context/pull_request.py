"""Reads a pull request: its properties, its pinned head, and what was said about its code.

As with issues, only what the requester could see is used, cleaned and limited in size, and
everything that is not used is named. The diff is read by git, see `resolver.git.pull_request`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.context.conversation import (
    ClosedIssue,
    Conversation,
    RemarkText,
    ReviewText,
    Thread,
    ThreadComment,
)
from resolver.github.context.pinning import pin_head
from resolver.github.context.visibility import describe_minimized, is_unwanted, reason_unseen, utc
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import PictureLinks, without_pictures
from resolver.github.text.markdown import shorten_text
from resolver.github.text.markers import without_markers
from resolver.models.pull_request import (
    AuthoredText,
    LinkedIssue,
    PastReview,
    PullRequestContext,
    ReviewThread,
)
from resolver.models.run import Trigger, TriggerKind
from resolver.security.invisible_text import with_invisible_shown

MAX_COMMENT_CHARACTERS = 10_000
"""Maximum number of characters of a comment on the code."""

MAX_THREADS_CHARACTERS = 150_000
"""Maximum number of characters of all threads together. The oldest are left out first."""

MAX_HUNK_CHARACTERS = 4_000
"""Maximum number of characters of a thread's diff. Its end is kept, which the thread is about."""

MAX_LINKED_ISSUE_CHARACTERS = 8_000
"""Maximum number of characters of the text of an issue that the pull request closes."""


def read_pull(
    access: GitHubAccess,
    repository: Repository,
    conversation: Conversation,
    trigger: Trigger,
    own_login: str,
    links: PictureLinks,
    left_out: list[str],
) -> PullRequestContext:
    """Return the pull request that the trigger is about.

    conversation: of the pull request.
    own_login: Resolver's login. Its threads are kept; the texts of its reviews are not.
    links: collects the pictures in the texts.
    left_out: collects what is not used.
    """
    number, name = conversation.subject.number, conversation.repository
    with access.wrap_errors(f"read pull request {number} of {name}", "pull-requests: read"):
        data = repository.get_pull(number).complete().raw_data
        pinned = pin_head(repository, data, trigger)
        if pinned.moved:
            left_out.append(f"the pull request: {pinned.moved}")
        base_branch = _base_branch(data, trigger, left_out)
        cleaner = _ConversationCleaner(
            f"{repository.url}/pulls", trigger, own_login, links, left_out
        )
        threads = cleaner.threads(conversation.threads.items)
        reviews = cleaner.reviews(conversation.reviews.items)
        own_issues = [
            issue for issue in conversation.subject.closes if issue.repository.is_same(name)
        ]
        closes = cleaner.closes(own_issues)
        if cleaner.hidden:
            left_out.append(f"on its code: {describe_minimized(cleaner.hidden)}")
        if conversation.is_code_cut:
            left_out.append(
                "the oldest of its conversations on the code, long ones, or hidden ones"
            )
    source = data["head"].get("repo")
    head_repository = str(source["full_name"]) if source else ""
    author = data.get("user") or {}
    return PullRequestContext(
        number=number,
        head=pinned.head,
        base_branch=base_branch,
        head_branch=str(data["head"]["ref"]),
        head_repository=head_repository,
        is_fork=head_repository.casefold() != name.casefold(),
        is_draft=bool(data.get("draft")),
        author=str(author.get("login") or "ghost"),
        association=str(data.get("author_association") or "NONE"),
        moved=pinned.moved,
        closes=closes,
        threads=threads,
        reviews=reviews,
    )


def _base_branch(data: Mapping[str, Any], trigger: Trigger, left_out: list[str]) -> str:
    """Return the branch that the pull request is to be merged into now, and report a change of it
    since the request."""
    base_branch = str(data["base"]["ref"])
    if trigger.base not in {"", base_branch}:
        left_out.append(
            f"the pull request: its base branch was {trigger.base} at the time of the request; now "
            f"it is {base_branch}, which is used"
        )
    return base_branch


class _ConversationCleaner:
    """Selects and cleans the texts of a pull request's conversation, and limits their size."""

    def __init__(
        self, pulls: str, trigger: Trigger, own_login: str, links: PictureLinks, left_out: list[str]
    ) -> None:
        """Initialize the cleaner.

        pulls: URL of the repository's pull requests in the API. The attribute `hidden` counts texts
        left out because maintainers have hidden them.
        """
        self._pulls = pulls
        self._trigger = trigger
        self._own_login = own_login.casefold()
        self._links = links
        self._left_out = left_out
        self.hidden = 0

    def threads(self, raw_threads: Sequence[Thread]) -> tuple[ReviewThread, ...]:
        """Return the review threads with those comments that are used.

        If they are too long together, the oldest are left out, except for those of the request.
        """
        threads = [
            thread for raw_thread in raw_threads if (thread := self._thread(raw_thread)) is not None
        ]
        remaining_characters = MAX_THREADS_CHARACTERS
        for index in range(len(threads) - 1, -1, -1):
            remaining_characters -= sum(len(comment.body) for comment in threads[index].comments)
            if remaining_characters < 0:
                requested_threads = [
                    requested_thread
                    for requested_thread in threads[: index + 1]
                    if self._contains_request(requested_thread)
                ]
                left_out = index + 1 - len(requested_threads)
                if left_out:
                    self._left_out.append(f"{left_out} older conversations on the code, for length")
                return (*requested_threads, *threads[index + 1 :])
        return tuple(threads)

    def _contains_request(self, thread: ReviewThread) -> bool:
        """Return True if the review that made the request is part of the thread."""
        review = self._trigger.review_id
        return review is not None and any(comment.review == review for comment in thread.comments)

    def _thread(self, raw_thread: Thread) -> ReviewThread | None:
        comments = tuple(
            comment
            for raw_comment in raw_thread.shown_comments
            if (comment := self._thread_comment(raw_comment)) is not None
        )
        if not comments:
            return None
        return ReviewThread(
            id=raw_thread.id,
            path=raw_thread.path,
            line=raw_thread.line,
            start_line=raw_thread.start_line,
            original_line=raw_thread.original_line,
            side=raw_thread.side,
            is_resolved=raw_thread.is_resolved,
            is_outdated=raw_thread.is_outdated,
            comments=comments,
            root=raw_thread.shown_comments[0].id,
            hunk=with_invisible_shown(raw_thread.shown_comments[0].hunk[-MAX_HUNK_CHARACTERS:]),
        )

    def _thread_comment(self, raw_comment: ThreadComment) -> AuthoredText | None:
        if raw_comment.state == "PENDING":
            return None  # a draft that only its author sees
        review = raw_comment.review.id if raw_comment.review else None
        is_of_request = self._is_of_request(review)
        at = utc(raw_comment.at)
        at = min(at, self._trigger.at) if is_of_request else at
        comment = self._clean_authored_text(
            raw_comment, "on the code", TriggerKind.REVIEW_COMMENT, at, is_of_request
        )
        return comment.model_copy(update={"review": review}) if comment else None

    def _is_of_request(self, review: int | None) -> bool:
        """Return True if the text was submitted in the review that made the request.

        It was visible with the request then, whatever its timestamp says.
        """
        trigger = self._trigger
        is_review = trigger.kind is TriggerKind.REVIEW_SUBMITTED
        request_review = trigger.review_id or (trigger.comment_id if is_review else None)
        return request_review is not None and review == request_review

    def reviews(self, raw_reviews: Sequence[ReviewText]) -> tuple[PastReview, ...]:
        """Return the reviews by others that have a text or a verdict."""
        reviews = []
        for review in raw_reviews:
            if review.submitted_at is None:
                continue  # a draft that only its author sees
            at = utc(review.submitted_at)
            is_ours = review.author.casefold() == self._own_login
            if is_ours or not (review.body.strip() or review.state != "COMMENTED"):
                continue
            is_of_request = self._is_of_request(review.id)
            at = min(at, self._trigger.at) if is_of_request else at
            text = self._clean_authored_text(
                review, "in a review", TriggerKind.REVIEW_SUBMITTED, at, is_of_request
            )
            if text is not None:
                commit = review.commit.oid if review.commit else ""
                reviews.append(PastReview(state=review.state, commit=commit, text=text))
        return tuple(reviews)

    def closes(self, closed_issues: Sequence[ClosedIssue]) -> tuple[LinkedIssue, ...]:
        """Return the linked issues, without texts that were edited after the request."""
        linked_issues = []
        for issue in closed_issues:
            edited_at = utc(issue.edited_at or issue.created_at)
            is_late = (
                self._trigger.kind is not TriggerKind.COMMAND_LINE and edited_at >= self._trigger.at
            )
            body = ""
            if is_late:
                self._left_out.append(f"the text of #{issue.number}, edited after the request")
            else:
                visible_body = without_markers(issue.body, issue.author, self._own_login)
                body = without_pictures(self._clean(visible_body, f"#{issue.number}"))
            title = " ".join(self._clean(issue.title, f"#{issue.number}'s title").split())
            linked_issues.append(
                LinkedIssue(
                    number=issue.number,
                    title=shorten_text(title, 256),
                    body=shorten_text(body, MAX_LINKED_ISSUE_CHARACTERS),
                    author=issue.author,
                    association=issue.association,
                )
            )
        return tuple(linked_issues)

    def _clean_authored_text(
        self,
        raw_text: RemarkText,
        place: str,
        kind: TriggerKind,
        at: datetime,
        is_of_request: bool = False,
    ) -> AuthoredText | None:
        """Return the text, None if it is newer than the request or hidden by maintainers."""
        if is_unwanted(raw_text.is_minimized, raw_text.why_minimized):
            self.hidden += 1
            return None
        description = f"a comment {place} of {raw_text.author}"
        edited_at = max(at, utc(raw_text.edited_at)) if raw_text.edited_at else at
        if is_of_request:
            lateness_note = "edited after" if edited_at > self._trigger.at else ""
        else:
            lateness_note = reason_unseen(self._trigger, kind, raw_text.id, at, edited_at)
        if lateness_note:
            self._left_out.append(f"{description} that was {lateness_note} the request")
            return None
        body = self._clean(
            without_markers(raw_text.body, raw_text.author, self._own_login), description
        )
        api_path = f"{self._pulls}/comments/{raw_text.id}"
        if kind is TriggerKind.REVIEW_SUBMITTED:
            api_path = f"{self._pulls}/{self._trigger.subject}/reviews/{raw_text.id}"
        body = self._links.take(body, f"in {description}", api_path, raw_text.author)
        if len(body) > MAX_COMMENT_CHARACTERS:
            self._left_out.append(
                f"{description} after its first {MAX_COMMENT_CHARACTERS:,} characters"
            )
        return AuthoredText(
            id=raw_text.id,
            author=raw_text.author,
            association=raw_text.association,
            at=at,
            body=shorten_text(body, MAX_COMMENT_CHARACTERS),
            url=raw_text.url,
        )

    def _clean(self, text: str, place: str) -> str:
        cleaned = strip_hidden(text)
        if cleaned.removed:
            self._left_out.append(f"hidden in {place}: {', '.join(cleaned.removed)}")
        return cleaned.text.strip()
