"""The nouns of a pull request: what is read of one before work on it, and what a review says.

Made in `resolver.github` (what people wrote) and `resolver.git` (what git knows), read by the
prompts and by whatever publishes a review.
"""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from resolver.models.base import FrozenModel, LoggedModel

Side = Literal["LEFT", "RIGHT"]
"""Of a diff: LEFT is the file before, RIGHT the file after."""


class AuthoredText(LoggedModel):
    """What one person wrote on a pull request's code, cleaned of hidden text."""

    id: int = Field(description="The forge's number; 0 when it gives none.")
    author: str = Field(description="Login of who wrote it.")
    association: str = Field(
        default="NONE", description="GitHub's author_association; not a permission."
    )
    at: datetime = Field(description="When it was made public.")
    body: str = Field(description="The words.")
    url: str = Field(default="", description="Its page.")
    review: int | None = Field(
        default=None, description="The review that it is part of, where the forge says so."
    )


class ReviewThread(LoggedModel):
    """A conversation about lines of the diff."""

    id: str = Field(description="The forge's id of the thread.")
    path: str = Field(description="File that it is about.")
    line: int | None = Field(
        default=None, description="Last line of it in the newest diff; None when outdated."
    )
    start_line: int | None = Field(default=None, description="First line, where it has several.")
    original_line: int | None = Field(default=None, description="Last line as it was written.")
    side: Side = Field(default="RIGHT", description="Which file's lines are counted.")
    is_resolved: bool = Field(default=False, description="Whether somebody has resolved it.")
    is_outdated: bool = Field(default=False, description="Whether its lines have changed since.")
    comments: tuple[AuthoredText, ...] = Field(default=(), description="The words, oldest first.")
    root: int = Field(default=0, description="The forge's number of its first comment.")
    hunk: str = Field(
        default="", description="The diff around its lines when it began; the end of a long one."
    )


class AskedThread(LoggedModel):
    """A conversation on lines that the request asks about. Made from what was read of the pull
    request, told to the agent, and answered where it stands."""

    label: str = Field(description="T1, T2, ...: how the agent names it.")
    thread: ReviewThread = Field(description="The conversation as the requester saw it.")
    request: str = Field(default="", description="What the requester says in it.")
    code: str = Field(default="", description="The lines that it is about, with some around them.")
    is_then: bool = Field(
        default=False, description="Whether that is the code of when it began, which has moved."
    )

    @property
    def line(self) -> int | None:
        """The last line that it is about: of the pinned head, or as it was written."""
        return self.thread.original_line if self.is_then else self.thread.line

    @property
    def place(self) -> str:
        """As `src/a.py:30`."""
        return self.thread.path + (f":{self.line}" if self.line else "")


class ThreadAnswer(LoggedModel):
    """What the agent says to a conversation that it was asked about."""

    id: str = Field(description="T1, T2, ...")
    addressed: bool = Field(default=False, description="Whether it did what is asked there.")
    answer: str = Field(default="", description="What it tells the person.")


class ThreadReply(FrozenModel):
    """What is said in a conversation on lines when the run is over.

    done: what was asked there is in what the run has published; words alone are an answer.
    whole: it is all that is told of the request.
    """

    asked: AskedThread
    done: bool = False
    whole: bool = False
    words: str = ""


class AnsweredThreads(FrozenModel):
    """What became of the replies. url: page of the first one. gone: places of conversations that
    are not there any more. unresolved: why some could not be resolved, "" where all were."""

    url: str = ""
    gone: tuple[str, ...] = ()
    unresolved: str = ""


class PastReview(LoggedModel):
    """A review that somebody has submitted, with words of its own."""

    state: str = Field(description="COMMENTED, APPROVED, CHANGES_REQUESTED or DISMISSED.")
    commit: str = Field(default="", description="The commit that was reviewed.")
    words: AuthoredText = Field(description="Who, when and what.")


class LinkedIssue(LoggedModel):
    """An issue that the pull request closes when it is merged."""

    number: int = Field(description="Its number.")
    title: str = Field(description="Its title, cleaned.")
    body: str = Field(default="", description="Its text, cleaned; the beginning of a long one.")
    author: str = Field(default="", description="Login of who opened it.")
    association: str = Field(
        default="NONE", description="The author's author_association; not a permission."
    )


class DiffHunk(LoggedModel):
    """A part of a file's diff; lines are counted from 1, a length may be 0."""

    old_start: int = Field(description="First line in the file before.")
    old_lines: int = Field(description="How many lines of the file before.")
    new_start: int = Field(description="First line in the file after.")
    new_lines: int = Field(description="How many lines of the file after.")

    def holds(self, first: int, last: int, side: Side) -> bool:
        """Whether all lines from `first` to `last` are part of it."""
        start, length = (
            (self.new_start, self.new_lines)
            if side == "RIGHT"
            else (self.old_start, self.old_lines)
        )
        return start <= first <= last < start + length


class DiffFile(LoggedModel):
    """A file of the diff. Paths are quoted the way git prints them when they have odd bytes."""

    path: str = Field(description="Where it is now; where it was, when it is deleted.")
    old_path: str | None = Field(default=None, description="Where it was, when it was moved.")
    status: str = Field(description="added, modified, deleted, renamed or type_changed.")
    additions: int | None = Field(default=None, description="Lines; None for binary content.")
    deletions: int | None = Field(default=None, description="Lines; None for binary content.")
    hunks: tuple[DiffHunk, ...] = Field(default=(), description="What a review can comment on.")


class PullRequestCommit(LoggedModel):
    """A commit of the pull request."""

    id: str = Field(description="The commit's id.")
    author: str = Field(description="Name in the commit, which proves nothing.")
    message: str = Field(description="The beginning of its message.")


class PullRequestContext(LoggedModel):
    """A pull request at one commit, as the requester saw it."""

    number: int = Field(description="Its number.")
    head: str = Field(description="The commit that is worked on; later pushes are not used.")
    base_branch: str = Field(description="Branch that it is to be merged into.")
    base: str = Field(default="", description="Tip of that branch; set when it is cloned.")
    merge_base: str = Field(default="", description="Where the two parted; set when cloned.")
    head_branch: str = Field(default="", description="Branch that it comes from.")
    head_repository: str = Field(
        default="", description="OWNER/NAME that it comes from; empty when that is deleted."
    )
    is_fork: bool = Field(default=False, description="Whether that is another repository.")
    is_draft: bool = Field(default=False, description="Whether its author calls it unfinished.")
    default_branch: str = Field(
        default="", description="The default branch of where it is for; set when it is cloned."
    )
    author: str = Field(default="", description="Login of who opened it.")
    association: str = Field(
        default="NONE", description="The author's author_association; not a permission."
    )
    conflicts: tuple[str, ...] = Field(
        default=(),
        description="Files that git could not merge with its base, where that is the work.",
    )
    conflict_notes: tuple[str, ...] = Field(
        default=(), description="What git says of each of them."
    )
    moved: str = Field(
        default="", description="What is known of pushes since the request, for a person."
    )
    closes: tuple[LinkedIssue, ...] = Field(default=(), description="What it is to resolve.")
    threads: tuple[ReviewThread, ...] = Field(default=(), description="Conversations on lines.")
    reviews: tuple[PastReview, ...] = Field(default=(), description="Reviews, oldest first.")
    commits: tuple[PullRequestCommit, ...] = Field(
        default=(), description="Its commits, oldest first."
    )
    files: tuple[DiffFile, ...] = Field(default=(), description="What it changes, bounded.")
    files_left_out: int = Field(default=0, description="Files beyond that bound.")

    def file(self, path: str) -> DiffFile | None:
        """The file of the diff with that path, before or after; None when it has none."""
        by_name = (f for f in self.files if path in {f.path, f.old_path})
        return next(by_name, None)


class OpenPullRequest(LoggedModel):
    """A pull request of ours that is open for an issue, as of the request. Read by the forge, told
    to the agent, and added to."""

    number: int = Field(description="Its number.")
    title: str = Field(description="Its title, cleaned.")
    url: str = Field(default="", description="Its page.")
    branch: str = Field(description="Branch of this repository that it comes from.")
    head: str = Field(description="The commit that is worked on; later pushes are not read.")
    base_branch: str = Field(description="Branch that it is to be merged into.")
    moved: str = Field(
        default="", description="What is known of pushes since the request, for a person."
    )


class PullRequestSource(FrozenModel):
    """Where a pull request comes from, as the forge says at this moment. Read before anything is
    pushed there.

    repository: "" when it is deleted. can_modify: whether its author lets maintainers push to a
    fork's branch. is_protected: whether the branch has rules; those of a fork are not asked for.
    """

    is_open: bool
    repository: str
    branch: str
    is_fork: bool
    can_modify: bool = False
    is_protected: bool = False


class ReviewVerdict(StrEnum):
    """What a review says as a whole."""

    COMMENT = "comment"
    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"


class Remark(FrozenModel):
    """One comment of a review as the agent made it; `event` is the action's id in the log."""

    path: str
    line: int
    start_line: int | None = None
    side: Side = "RIGHT"
    body: str
    suggestion: str | None = None
    severity: Literal["high", "medium", "low"] = "medium"

    @property
    def first(self) -> int:
        """The first line that it is about."""
        return self.line if self.start_line is None else self.start_line

    @property
    def place(self) -> str:
        """`path:first-last`, for a person."""
        lines = f"{self.line}" if self.first == self.line else f"{self.first}-{self.line}"
        return f"{self.path}:{lines}"


class Review(FrozenModel):
    """A review that is ready to be published.

    placed: comments on lines of the diff. beside: comments whose lines are no part of it, which
    go into the body. repeated: comments that an open thread makes already; only counted.
    left_out: comments beyond the setting's bound, the least important ones.
    """

    commit: str
    verdict: ReviewVerdict = ReviewVerdict.COMMENT
    placed: tuple[Remark, ...] = ()
    beside: tuple[Remark, ...] = ()
    repeated: int = 0
    left_out: int = 0


class PublishedReview(FrozenModel):
    """A review on the forge, or what would have been one. url: its page, "" when there is none."""

    commit: str
    url: str = ""
    verdict: ReviewVerdict = ReviewVerdict.COMMENT
    placed: int = 0
    beside: int = 0
    repeated: int = 0
    left_out: int = 0


def describe_review(review: Review, url: str = "") -> PublishedReview:
    """What is told of a review that is published at `url`, or nowhere."""
    return PublishedReview(
        commit=review.commit,
        url=url,
        verdict=review.verdict,
        placed=len(review.placed),
        beside=len(review.beside),
        repeated=review.repeated,
        left_out=review.left_out,
    )
