"""Reads a pull request: its properties, its pinned head, and what was said about its code.

As with issues, only what the requester could see is used, cleaned and limited in size, and
everything that is not used is named. The diff is read by git, see `resolver.git.pull_request`.
"""

from collections.abc import Sequence
from datetime import datetime

from github.Repository import Repository

from resolver.github.client.access import GitHubAccess
from resolver.github.comments.markers import without_markers
from resolver.github.context.pinning import pin_head
from resolver.github.context.review_threads import (
    ClosedIssue,
    Conversation,
    ReviewText,
    Thread,
    ThreadComment,
    ThreadText,
)
from resolver.github.context.visibility import describe_minimized, is_unwanted, lateness, utc
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.links import PictureLinks, without_pictures
from resolver.github.text.markdown import shorten_text, with_invisible_shown
from resolver.models.pull_request import (
    AuthoredText,
    LinkedIssue,
    PastReview,
    PullRequestContext,
    ReviewThread,
)
from resolver.models.run import Trigger, TriggerKind

MAX_WORDS = 10_000
"""Maximum number of characters of a comment on the code."""

MAX_THREADS = 150_000
"""Maximum number of characters of all threads together. The oldest are left out first."""

MAX_HUNK = 4_000
"""Maximum number of characters of a thread's diff. Its end is kept, which the thread is about."""

MAX_LINKED = 8_000
"""Maximum number of characters of the text of an issue that the pull request closes."""


def read_pull(
    access: GitHubAccess,
    repository: Repository,
    trigger: Trigger,
    own: str,
    links: PictureLinks,
    left_out: list[str],
) -> PullRequestContext:
    """Return the pull request that the trigger is about.

    own: Resolver's login. Its threads are kept, so that nothing is said twice; the texts of its
        reviews are not.
    links: collects the pictures in the texts.
    left_out: collects what is not used.
    """
    number = trigger.subject or 0
    with access.asking(
        f"read pull request {number} of {repository.full_name}", "pull-requests: read"
    ):
        now = repository.get_pull(number).complete().raw_data
        pinned = pin_head(repository, now, trigger)
        if pinned.moved:
            left_out.append(f"the pull request: {pinned.moved}")
        into = str(now["base"]["ref"])
        if trigger.base not in {"", into}:
            left_out.append(
                f"the pull request: it was to be merged into {trigger.base} when it was asked; by "
                f"now that is {into}, which is used"
            )
        said = Conversation(access, repository, trigger)
        reading = _Reading(f"{repository.url}/pulls", trigger, own, links, left_out)
        threads = reading.threads(said.threads())
        reviews = reading.reviews(said.reviews())
        closes = reading.closes(said.closes())
        if reading.hidden:
            left_out.append(f"on its code: {describe_minimized(reading.hidden)}")
        if said.is_cut:
            left_out.append(
                "conversations on the code between the oldest 100 and the newest 400, very long "
                "ones, or hidden ones"
            )
    source = now["head"].get("repo")
    came_from = str(source["full_name"]) if source else ""
    author = now.get("user") or {}
    return PullRequestContext(
        number=number,
        head=pinned.head,
        base_branch=into,
        head_branch=str(now["head"]["ref"]),
        head_repository=came_from,
        is_fork=came_from.casefold() != repository.full_name.casefold(),
        is_draft=bool(now.get("draft")),
        author=str(author.get("login") or "ghost"),
        association=str(now.get("author_association") or "NONE"),
        moved=pinned.moved,
        closes=closes,
        threads=threads,
        reviews=reviews,
    )


class _Reading:
    """Selects and cleans what was said, and limits its size."""

    def __init__(
        self, pulls: str, trigger: Trigger, own: str, links: PictureLinks, left_out: list[str]
    ) -> None:
        """Initialize the reader.

        pulls: URL of the repository's pull requests in the API. The attribute `hidden` counts texts
        left out because maintainers have hidden them.
        """
        self._pulls = pulls
        self._trigger = trigger
        self._own = own.casefold()
        self._links = links
        self._left_out = left_out
        self.hidden = 0

    def threads(self, found: Sequence[Thread]) -> tuple[ReviewThread, ...]:
        """Return the review threads with those comments that are used.

        If they are too long together, the oldest are left out, except for those of the request.
        """
        chosen = [thread for each in found if (thread := self._thread(each)) is not None]
        room = MAX_THREADS
        for index in range(len(chosen) - 1, -1, -1):
            room -= sum(len(words.body) for words in chosen[index].comments)
            if room < 0:
                asked = [t for t in chosen[: index + 1] if self._is_asked(t)]
                left_out = index + 1 - len(asked)
                if left_out:
                    self._left_out.append(f"{left_out} older conversations on the code, for length")
                return (*asked, *chosen[index + 1 :])
        return tuple(chosen)

    def _is_asked(self, thread: ReviewThread) -> bool:
        """Return True if the review that made the request is part of the thread."""
        review = self._trigger.review_id
        return review is not None and any(words.review == review for words in thread.comments)

    def _thread(self, found: Thread) -> ReviewThread | None:
        comments = tuple(words for said in found.said if (words := self._on_line(said)) is not None)
        if not comments:
            return None
        return ReviewThread(
            id=found.id,
            path=found.path,
            line=found.line,
            start_line=found.start_line,
            original_line=found.original_line,
            side=found.side,
            is_resolved=found.is_resolved,
            is_outdated=found.is_outdated,
            comments=comments,
            root=found.said[0].id,
            hunk=with_invisible_shown(found.said[0].hunk[-MAX_HUNK:]),
        )

    def _on_line(self, said: ThreadComment) -> AuthoredText | None:
        if said.state == "PENDING":
            return None  # a draft that only its author sees
        review = said.review.id if said.review else None
        together = self._together(review)
        at = utc(said.at) if not together else min(utc(said.at), self._trigger.at)
        words = self._words(said, "on the code", TriggerKind.REVIEW_COMMENT, at, together)
        return words.model_copy(update={"review": review}) if words else None

    def _together(self, review: int | None) -> bool:
        """Return True if the text was submitted in the review that made the request.

        It was visible with the request then, whatever its timestamp says.
        """
        asked = self._trigger
        is_review = asked.kind is TriggerKind.REVIEW_SUBMITTED
        own = asked.review_id or (asked.comment_id if is_review else None)
        return own is not None and review == own

    def reviews(self, found: Sequence[ReviewText]) -> tuple[PastReview, ...]:
        """Return the reviews by others that have a text or a verdict."""
        chosen = []
        for review in found:
            at = utc(review.submitted_at or review.created_at)
            is_ours = review.author.casefold() == self._own
            if is_ours or not (review.body.strip() or review.state != "COMMENTED"):
                continue
            together = self._together(review.id)
            at = min(at, self._trigger.at) if together else at
            words = self._words(review, "in a review", TriggerKind.REVIEW_SUBMITTED, at, together)
            if words is not None:
                commit = review.commit.oid if review.commit else ""
                chosen.append(PastReview(state=review.state, commit=commit, words=words))
        return tuple(chosen)

    def closes(self, found: Sequence[ClosedIssue]) -> tuple[LinkedIssue, ...]:
        """Return the linked issues, without texts that were edited after the request."""
        chosen = []
        for issue in found:
            author = issue.account.name if issue.account else "ghost"
            edited = utc(issue.edited_at or issue.created_at)
            late = self._trigger.kind is not TriggerKind.COMMAND_LINE and edited >= self._trigger.at
            body = ""
            if late:
                self._left_out.append(f"the text of #{issue.number}, edited after the request")
            else:
                shown = without_markers(issue.body, author, self._own)
                body = without_pictures(self._cleaned(shown, f"#{issue.number}"))
            title = " ".join(self._cleaned(issue.title, f"#{issue.number}'s title").split())
            chosen.append(
                LinkedIssue(
                    number=issue.number,
                    title=shorten_text(title, 256),
                    body=shorten_text(body, MAX_LINKED),
                    author=author,
                    association=issue.association,
                )
            )
        return tuple(chosen)

    def _words(
        self, said: ThreadText, where: str, kind: TriggerKind, at: datetime, together: bool = False
    ) -> AuthoredText | None:
        """Return the text, None if it is newer than the request or hidden by maintainers."""
        if is_unwanted(said.is_minimized, said.why_minimized):
            self.hidden += 1
            return None
        what = f"a comment {where} of {said.author}"
        edited = max(at, utc(said.edited_at)) if said.edited_at else at
        if together:
            late = "edited after" if edited > self._trigger.at else ""
        else:
            late = lateness(self._trigger, kind, said.id, at, edited)
        if late:
            self._left_out.append(f"{what} that was {late} the request")
            return None
        body = self._cleaned(without_markers(said.body, said.author, self._own), what)
        text = f"{self._pulls}/comments/{said.id}"
        if kind is TriggerKind.REVIEW_SUBMITTED:
            text = f"{self._pulls}/{self._trigger.subject}/reviews/{said.id}"
        body = self._links.take(body, said.body, f"in {what}", text, said.author)
        if len(body) > MAX_WORDS:
            self._left_out.append(f"{what} after its first {MAX_WORDS:,} characters")
        return AuthoredText(
            id=said.id,
            author=said.author,
            association=said.association,
            at=at,
            body=shorten_text(body, MAX_WORDS),
            url=said.url,
        )

    def _cleaned(self, text: str, where: str) -> str:
        cleaned = strip_hidden(text)
        if cleaned.removed:
            self._left_out.append(f"hidden in {where}: {', '.join(cleaned.removed)}")
        return cleaned.text.strip()
