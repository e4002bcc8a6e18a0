"""Turns a reviewer's comments into a review that can be published.

Each comment is compared with the pinned diff. Comments that repeat an open thread are left out, and
the most important ones come first.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from resolver.agents.reviewer import REVIEWER
from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.errors import WorkspaceError
from resolver.events import actions as a
from resolver.events.log import Event
from resolver.events.run_log import RunLog
from resolver.git.pull_request import MOST_MESSAGE
from resolver.git.workspace import Workspace
from resolver.github.comments.report import Report
from resolver.github.comments.review_text import remark_body, review_body
from resolver.github.forge import Forge
from resolver.github.text.invisible import with_invisible_shown
from resolver.models.pull_request import (
    PublishedReview,
    PullRequestContext,
    Remark,
    Review,
    ReviewThread,
    ReviewVerdict,
)
from resolver.models.run import Outcome
from resolver.publishing.links import code_linker
from resolver.publishing.review_comments import as_in_diff, is_placed, remark_of

ALIKE = 0.5
"""Fraction of common words from which two comments on the same lines are taken for repetitions."""

MOST_COMMENTS = 25
"""Maximum number of comments in one review; the most important are kept."""

_IMPORTANCE = {"high": 0, "medium": 1, "low": 2}
_WORD = re.compile(r"\w{3,}")

ReadLines = Callable[[str], list[str] | None]
"""Returns the lines of a file at the pinned head, None if there is no such text file."""


@dataclass(frozen=True)
class ReviewBounds:
    """Limits of a review.

    most: maximum number of comments.
    verdicts: verdicts that may be given in addition to `comment`.
    """

    most: int = MOST_COMMENTS
    verdicts: tuple[str, ...] = ()


def readable_pull_request(pull: PullRequestContext) -> PullRequestContext:
    """Return the pull request with invisible characters made visible.

    That applies to texts chosen by people: authors and messages of commits, the branch name, and
    paths of review threads.
    """
    commits = (
        each.model_copy(
            update={
                "author": with_invisible_shown(each.author),
                "message": with_invisible_shown(each.message)[:MOST_MESSAGE],
            }
        )
        for each in pull.commits
    )
    threads = (
        each.model_copy(update={"path": with_invisible_shown(each.path)}) for each in pull.threads
    )
    return pull.model_copy(
        update={
            "head_branch": with_invisible_shown(pull.head_branch),
            "commits": tuple(commits),
            "threads": tuple(threads),
        }
    )


def review_remarks(events: Iterable[Event]) -> list[Remark]:
    """Return the comments that the agent made for its last review, in order.

    Of several comments on the same lines, only the last is returned.
    """
    made: dict[tuple[str, str, int, int], Remark] = {}
    over = False
    for event in events:
        # The comments before a Finish were published by the earlier run that this one continues.
        if isinstance(event, a.ReviewComment | a.Finish) and over:
            made, over = {}, False
        if isinstance(event, a.Finish):
            over = True
        if isinstance(event, a.ReviewComment):
            remark = remark_of(event)
            key = (remark.path, remark.side, remark.first, remark.line)
            made.pop(key, None)
            made[key] = remark
    return list(made.values())


def place_remarks(
    made: Sequence[Remark],
    pull: PullRequestContext,
    verdict: str,
    own: str,
    bounds: ReviewBounds,
    lines_of: ReadLines,
) -> Review:
    """Return the review with these comments.

    verdict: the agent's; `comment` is used if it is not allowed.
    own: Resolver's login. Comments that repeat one of its open threads are left out.
    """
    open_threads = [t for t in pull.threads if not t.is_resolved and not t.is_outdated]
    fitted = [as_in_diff(remark, pull.files) for remark in made]
    fresh = [r for r in fitted if not any(_says_same(r, t, own) for t in open_threads)]
    ordered = sorted(fresh, key=lambda remark: _IMPORTANCE[remark.severity])
    chosen = [_checked(remark, lines_of) for remark in ordered[: bounds.most]]
    return Review(
        commit=pull.head,
        verdict=ReviewVerdict(verdict) if verdict in bounds.verdicts else ReviewVerdict.COMMENT,
        placed=tuple(r for r in chosen if is_placed(r, pull.files)),
        beside=tuple(r for r in chosen if not is_placed(r, pull.files)),
        repeated=len(made) - len(fresh),
        left_out=len(ordered) - len(chosen),
    )


def _says_same(remark: Remark, thread: ReviewThread, own: str) -> bool:
    """Return True if the thread on overlapping lines says the same as the comment.

    A thread of Resolver's that ends on the same line always does. Otherwise their words are
    compared.
    """
    if thread.path != remark.path or thread.side != remark.side or thread.line is None:
        return False
    start = thread.start_line or thread.line
    if remark.line < start or remark.first > thread.line:
        return False
    opening = thread.comments[0]
    if opening.author.casefold() == own.casefold() and thread.line == remark.line:
        return True
    ours, theirs = _words(remark.body), _words(opening.body)
    return len(ours & theirs) >= ALIKE * max(1, min(len(ours), len(theirs)))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def _checked(remark: Remark, lines_of: ReadLines) -> Remark:
    """Return the comment without a suggestion that would change nothing.

    A suggestion for lines that can't be read is kept.
    """
    if remark.suggestion is None:
        return remark
    lines = lines_of(remark.path) if remark.side == "RIGHT" else None
    if lines is None or remark.line > len(lines):
        return remark
    # A suggestion has no CR line ends, even if the file has.
    now = [line.removesuffix("\r") for line in lines[remark.first - 1 : remark.line]]
    same = now == [line.removesuffix("\r") for line in remark.suggestion.split("\n")]
    return remark.model_copy(update={"suggestion": None}) if same else remark


@dataclass(frozen=True)
class NotedReview:
    """A review that can be published.

    text: the whole review as text, for a person who doesn't see it on GitHub.
    """

    review: Review
    text: str


def build_review(
    workspace: Workspace, log: RunLog, settings: Settings, report: Report, own_login: str
) -> NotedReview | None:
    """Return the review made of the agent's comments, None if there is no pull request."""
    pull = workspace.pull
    if pull is None:
        return None
    finish = log.state.finish
    review = place_remarks(
        review_remarks(log.state.events),
        pull,
        finish.verdict if finish else "",
        own_login,
        ReviewBounds(verdicts=settings.review_verdicts),
        lambda path: _lines(workspace, path),
    )
    review = _linked(review, code_linker(report.trigger, settings, workspace))
    number = report.trigger.number
    told = [(each.place, remark_body(each, number)) for each in review.placed]
    body = review_body(report, review, "")
    return NotedReview(review, render("run/review.md.j2", body=body, remarks=told))


def publish_review(
    report: Report, noted: NotedReview, forge: Forge, log: RunLog
) -> PublishedReview:
    """Publish the review, or find the one that an earlier attempt has published."""
    started = time.monotonic()
    done = forge.publish_review(report, noted.review)
    log.stage("reviewed", done.url, time.monotonic() - started)
    return done


def append_remarks(outcome: Outcome, log: RunLog) -> Outcome:
    """Return the outcome with the reviewer's comments added to its message.

    It applies to a reviewer without a pull request, whose comments have no diff to be placed on.
    """
    opening = log.opening
    if opening is None or opening.agent != REVIEWER or opening.task.pull is not None:
        return outcome
    noted = review_remarks(log.state.events)
    message = render("run/remarks.md.j2", message=outcome.message, remarks=noted).strip()
    return outcome.model_copy(update={"message": message})


def _linked(review: Review, link: Callable[[str], str]) -> Review:
    """Return the review with the code places in its comments linked."""

    def with_links(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
        return tuple(r.model_copy(update={"body": link(r.body)}) for r in remarks)

    return review.model_copy(
        update={"placed": with_links(review.placed), "beside": with_links(review.beside)}
    )


def _lines(workspace: Workspace, path: str) -> list[str] | None:
    """Return the lines of a file, None if it is missing, too large or binary."""
    try:
        content = workspace.read(path)
    except WorkspaceError:
        return None  # the file is too large
    if content is None or b"\0" in content:
        return None
    return content.decode("utf-8", "replace").split("\n")
