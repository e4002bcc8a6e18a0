"""Publishes a review: the reviewer's comments, and replies in the threads of earlier reviews.

The answer to a reviewer's comment says at once whether GitHub can show it at its lines. Each
comment is compared with the pinned diff. Comments that repeat an open thread are left out, and the
most important ones come first.

A reply in a thread contains what the agent says it did, and the commit. Threads that the request
was not about are not touched.
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from resolver.agents.readonly import REVIEWER
from resolver.config.settings import Settings
from resolver.config.templates import render
from resolver.errors import ForgeError, WorkspaceError
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ObservationBase
from resolver.events.log import Event
from resolver.events.run_log import DONE_STATES, RunLog
from resolver.git.pull_request import MAX_MESSAGE_CHARACTERS
from resolver.git.workspace import Workspace
from resolver.github.comments.report import Report
from resolver.github.comments.review import remark_body, review_body
from resolver.github.forge import Forge
from resolver.github.text.markdown import with_invisible_shown
from resolver.models.pull_request import (
    AskedThread,
    DiffFile,
    PublishedReview,
    PullRequestContext,
    Remark,
    Review,
    ReviewThread,
    ReviewVerdict,
    ThreadAnswer,
    ThreadReply,
)
from resolver.models.run import Outcome
from resolver.publishing.links import code_linker
from resolver.security.redaction import Redactor


def note_comment(pull: PullRequestContext | None) -> Callable[[a.ReviewComment], ObservationBase]:
    """Return the function that answers a comment.

    pull: None if no pull request is known, as in a delegate's review.
    """

    def noted(action: a.ReviewComment) -> ObservationBase:
        if pull is None:
            return o.ReviewCommentNoted(content="Noted.")
        remark = as_in_diff(remark_of(action), pull.files)
        placed = is_placed(remark, pull.files)
        file = pull.file(remark.path)
        words = render("agent/review_comment_noted.md.j2", remark=remark, placed=placed, file=file)
        return o.ReviewCommentNoted(content=words.strip(), placed=placed)

    return noted


def remark_of(event: a.ReviewComment) -> Remark:
    """Return the comment as the model of a review's comment."""
    return Remark(
        path=event.path,
        line=event.line,
        start_line=event.start_line,
        side=event.side,
        body=event.body,
        suggestion=event.suggestion,
        severity=event.severity,
    )


def as_in_diff(remark: Remark, files: Sequence[DiffFile]) -> Remark:
    """Return the comment with the path and side that the diff has for it.

    The lines of a renamed file are under its new name. A file that was added or deleted has only
    one side.
    """
    by_name = {file.old_path: file for file in files if file.old_path}
    by_name |= {file.path: file for file in files}
    file = by_name.get(remark.path)
    if file is None:
        return remark
    side = {"deleted": "LEFT", "added": "RIGHT"}.get(file.status, remark.side)
    return remark.model_copy(update={"path": file.path, "side": side})


def is_placed(remark: Remark, files: Sequence[DiffFile]) -> bool:
    """Return True if all lines of the comment are in one hunk, so that GitHub accepts it there."""
    by_path = (file for file in files if file.path == remark.path)
    return any(
        hunk.holds(remark.first, remark.line, remark.side)
        for file in by_path
        for hunk in file.hunks
    )


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
                "message": with_invisible_shown(each.message)[:MAX_MESSAGE_CHARACTERS],
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
        inline_comments=tuple(r for r in chosen if is_placed(r, pull.files)),
        body_comments=tuple(r for r in chosen if not is_placed(r, pull.files)),
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
    told = [(each.place, remark_body(each, number)) for each in review.inline_comments]
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
        update={
            "inline_comments": with_links(review.inline_comments),
            "body_comments": with_links(review.body_comments),
        }
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


ADDED = frozenset({"added", "pushed", "updated"})
"""The values of `how` with which a change became a part of the pull request."""


@dataclass(frozen=True)
class RepliesPosted:
    """The replies that were posted.

    comment_url: URL of the reply that answers the whole request, "" if there is none.
    warnings: what could not be done.
    """

    comment_url: str = ""
    warnings: tuple[str, ...] = ()


def answer_threads(
    report: Report, log: RunLog, forge: Forge, redactor: Redactor, *, resolve: bool
) -> RepliesPosted:
    """Post the replies of a finished run.

    A run that did not finish posts none; its final comment says how it ended. Never raises
    ForgeError: replies that were posted stay, and a warning says what is missing.

    resolve: mark the threads that were addressed as resolved.
    """
    task, outcome, publication = report.task, report.outcome, report.publication
    if task is None or outcome is None or not task.asked or outcome.state not in DONE_STATES:
        return RepliesPosted()
    finish = log.state.finish
    said = finish.threads if finish else ()
    replies = compose_replies(task.asked, said, outcome, _is_public(report))
    if not replies:
        return RepliesPosted()
    # A question in a single thread is answered in that thread only, without a final comment.
    whole = report.answers and report.trigger.in_thread and len(task.asked) == 1
    started = time.monotonic()
    replies = tuple(
        redactor.redact_model(each.model_copy(update={"is_only_answer": whole})) for each in replies
    )
    commit = (publication.commit or "") if publication.how in ADDED else ""
    try:
        done = forge.answer_threads(report, replies, commit, resolve=resolve)
    except ForgeError as error:
        words = render("run/unanswered_threads.md.j2", why=error.what, next_step=error.next_step)
        return RepliesPosted(warnings=(words.strip(),))
    log.stage("answered", done.url, time.monotonic() - started)
    warnings: tuple[str, ...] = ()
    if done.missing_places or done.resolve_problem:
        words = render(
            "run/answered_threads.md.j2", gone=done.missing_places, unresolved=done.resolve_problem
        )
        warnings = (words.strip(),)
    return RepliesPosted(done.url if whole else "", warnings)


def compose_replies(
    asked: Sequence[AskedThread], said: Sequence[ThreadAnswer], outcome: Outcome, is_public: bool
) -> tuple[ThreadReply, ...]:
    """Return the replies, in the order of the threads.

    said: the agent's answers.
    is_public: whether a change of this run is published; without one, nothing counts as addressed.

    If there is only one thread and the agent has not answered it, its final message is the reply.
    """
    if len(asked) == 1 and not said:
        words = outcome.message if not is_public else outcome.change or outcome.message
        done = is_public and outcome.task_completed
        return (
            (ThreadReply(thread=asked[0], is_addressed=done, text=words),) if words.strip() else ()
        )
    by_id = {each.id: each for each in said}
    replies = []
    for each in asked:
        answer = by_id.get(each.label)
        done = answer is not None and answer.addressed and is_public
        if answer is not None and (done or answer.answer.strip()):
            replies.append(ThreadReply(thread=each, is_addressed=done, text=answer.answer))
    return tuple(replies)


def _is_public(report: Report) -> bool:
    """Return True if the people who made the request can see a change of this run."""
    publication = report.publication
    if report.answers or publication.how == "unchanged":
        return False
    if publication.how in ADDED:
        return publication.commit is not None
    return publication.pull_request is not None and publication.pull_request.url is not None
