"""Reads a pull request: its properties, its pinned head, and what was said about its code.

As with issues, only what the requester could see is used, cleaned and limited in size, and
everything that is not used is named. The diff is read by git, see `resolver.git.pull_request`.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.context.conversation import Conversation, RemarkText, ReviewText, Thread
from resolver.github.context.pinning import pin_head
from resolver.github.context.visibility import SeenTexts, utc
from resolver.models.pull_request import (
    AuthoredText,
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


def read_pull(
    access: GitHubAccess, repository: Repository, conversation: Conversation, texts: SeenTexts
) -> PullRequestContext:
    """Return the pull request that the conversation is about.

    Threads that Resolver started are kept; the texts of its reviews are not.
    """
    number, name, trigger = conversation.subject.number, conversation.repository, texts.trigger
    with access.wrap_errors(f"read pull request {number} of {name}", "pull-requests: read"):
        data = repository.get_pull(number).complete().raw_data
        pinned = pin_head(repository, data, trigger)
    base_branch, source = str(data["base"]["ref"]), data["head"].get("repo")
    if pinned.moved:
        texts.left_out.append(f"the pull request: {pinned.moved}")
    if trigger.base not in {None, base_branch}:
        texts.left_out.append(
            f"the pull request: its base branch was {trigger.base} at the time of the request; now "
            f"it is {base_branch}, which is used"
        )
    if conversation.is_code_cut:
        texts.left_out.append(
            "the oldest of its conversations on the code, long ones, or hidden ones"
        )
    head_repository, author = str(source["full_name"]) if source else "", data.get("user") or {}
    path = f"{repository.url}/pulls"
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
        moved=pinned.moved or "",
        threads=_within_limit([*_threads(conversation, texts, path)], texts),
        reviews=tuple(_reviews(conversation.reviews.items, texts, f"{path}/{number}/reviews")),
    )


def _within_limit(threads: Sequence[ReviewThread], texts: SeenTexts) -> tuple[ReviewThread, ...]:
    """Return the newest threads that are not too long together, and those of the request."""
    kept: list[ReviewThread] = []
    remaining_characters = MAX_THREADS_CHARACTERS
    review = texts.trigger.review_id
    for thread in reversed(threads):
        remaining_characters -= sum(len(comment.body) for comment in thread.comments)
        is_requested = review is not None and any(c.review == review for c in thread.comments)
        if remaining_characters >= 0 or is_requested:
            kept.insert(0, thread)
    if len(kept) < len(threads):
        count = len(threads) - len(kept)
        texts.left_out.append(f"{count} older conversations on the code, for length")
    return tuple(kept)


def _threads(conversation: Conversation, texts: SeenTexts, path: str) -> Iterator[ReviewThread]:
    """Yield the review threads with those comments that are used. path: of the pull requests."""
    for thread in conversation.threads.items:
        comments = tuple(_thread_comments(thread, texts, path))
        if comments:
            first = thread.shown_comments[0]
            yield ReviewThread(
                id=thread.id,
                path=thread.path,
                line=thread.line,
                start_line=thread.start_line,
                original_line=thread.original_line,
                side=thread.side,
                is_resolved=thread.is_resolved,
                is_outdated=thread.is_outdated,
                comments=comments,
                root=first.id,
                hunk=with_invisible_shown(first.hunk[-MAX_HUNK_CHARACTERS:]),
            )


def _thread_comments(thread: Thread, texts: SeenTexts, path: str) -> Iterator[AuthoredText]:
    kind = TriggerKind.REVIEW_COMMENT
    for comment in thread.shown_comments:
        if comment.state == "PENDING":
            continue  # a draft that only its author sees
        review = comment.review
        api_path = f"{path}/comments/{comment.id}"
        text = _authored_text(comment, "on the code", kind, api_path, comment.at, review, texts)
        if text is not None:
            yield text.model_copy(update={"review": review})


def _reviews(reviews: Sequence[ReviewText], texts: SeenTexts, path: str) -> Iterator[PastReview]:
    """Yield the reviews by others that have a text or a verdict. path: of the reviews."""
    kind = TriggerKind.REVIEW_SUBMITTED
    for review in reviews:
        says_something = review.body.strip() or review.state != "COMMENTED"
        # A review without a time is a draft that only its author sees.
        if review.submitted_at is None or texts.is_ours(review.author) or not says_something:
            continue
        at, api_path = review.submitted_at, f"{path}/{review.id}"
        text = _authored_text(review, "in a review", kind, api_path, at, review.id, texts)
        if text is not None:
            yield PastReview(state=review.state, commit=review.commit or "", text=text)


def _authored_text(
    remark: RemarkText,
    place: str,
    kind: TriggerKind,
    api_path: str,
    at: datetime,
    review: int | None,
    texts: SeenTexts,
) -> AuthoredText | None:
    """Return the text, None if it is not to be used. review: the one that it is part of."""
    is_of_request = review is not None and review == _requesting_review(texts.trigger)
    body = texts.remark(
        remark, place, kind, api_path, MAX_COMMENT_CHARACTERS, utc(at), is_of_request=is_of_request
    )
    if body is None:
        return None
    return AuthoredText(
        id=remark.id,
        author=remark.author,
        association=remark.association,
        at=min(utc(at), texts.trigger.at) if is_of_request else utc(at),
        body=body,
        url=remark.url,
    )


def _requesting_review(trigger: Trigger) -> int | None:
    """Return the review that made the request, None if it was made in another way."""
    is_review = trigger.kind is TriggerKind.REVIEW_SUBMITTED
    return trigger.review_id or (trigger.comment_id if is_review else None)
