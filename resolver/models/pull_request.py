"""Models of a pull request: what is read of one before work on it, and what a review contains.

Created by `resolver.github` (what people wrote) and `resolver.git` (what git knows), used by the
prompts and by `resolver.publishing`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from resolver.models.base import FrozenModel, LoggedModel

Side = Literal["LEFT", "RIGHT"]
"""Side of a diff: LEFT is the old file, RIGHT the new one."""


class AuthoredText(LoggedModel):
    """A text that one person wrote in a pull request's reviews, cleaned of hidden text."""

    id: int = Field(description="GitHub's id of the text; 0 when there is none.")
    author: str = Field(description="Login of its author.")
    association: str = Field(
        default="NONE", description="GitHub's author_association; not a permission."
    )
    at: datetime = Field(description="When it was made public.")
    body: str = Field(description="The text.")
    url: str = Field(default="", description="Address of its page.")
    review: int | None = Field(
        default=None, description="Id of the review that it is part of, when it is known."
    )


class ReviewThread(LoggedModel):
    """A review thread: a conversation about lines of the diff."""

    id: str = Field(description="GitHub's id of the thread.")
    path: str = Field(description="Path of the file that the thread is about.")
    line: int | None = Field(
        default=None,
        description="Its last line in the newest diff; None when the thread is outdated.",
    )
    start_line: int | None = Field(
        default=None, description="Its first line, when it spans several."
    )
    original_line: int | None = Field(
        default=None, description="Its last line at the time it was started."
    )
    side: Side = Field(default="RIGHT", description="Side of the diff that the lines belong to.")
    is_resolved: bool = Field(
        default=False, description="True when somebody has resolved the thread."
    )
    is_outdated: bool = Field(default=False, description="True when its lines have changed since.")
    comments: tuple[AuthoredText, ...] = Field(
        default=(), description="Its comments, oldest first."
    )
    root: int = Field(default=0, description="GitHub's id of its first comment.")
    hunk: str = Field(
        default="",
        description="The diff around its lines when it was started; only the end of a long one.",
    )


class ThreadRequest(LoggedModel):
    """A review thread that the request asks about.

    It is shown to the agent, and the answer is posted in the thread.
    """

    label: str = Field(description="T1, T2, ...: the name by which the agent refers to it.")
    thread: ReviewThread = Field(description="The thread as the requester saw it.")
    request: str = Field(default="", description="What the requester asks in it.")
    code: str = Field(
        default="", description="The end of its diff, whose last line it was started on."
    )
    is_then: bool = Field(
        default=False,
        description="True when the code has changed since the thread was started.",
    )

    @property
    def line(self) -> int | None:
        """The last line that it is about.

        It is a line of the pinned head commit or, if the code has changed, of the file as it was
        when the thread was started.
        """
        return self.thread.original_line if self.is_then else self.thread.line

    @property
    def place(self) -> str:
        """The place as text, such as `src/a.py:30`."""
        return self.thread.path + (f":{self.line}" if self.line else "")


class ThreadAnswer(LoggedModel):
    """The agent's answer to a review thread that it was asked about."""

    id: str = Field(description="Label of the thread: T1, T2, ...")
    addressed: bool = Field(
        default=False, description="True when the agent did what the thread asks."
    )
    answer: str = Field(default="", description="The agent's answer to the person.")


class ThreadReply(FrozenModel):
    """The reply that is posted in a review thread at the end of the run.

    thread: the thread.
    is_addressed: True when what the thread asks is part of the published change; False for an
        answer in words only.
    is_only_answer: True when the reply is the only answer to the request, without a final
        comment.
    text: the text of the answer.
    """

    thread: ThreadRequest
    is_addressed: bool = False
    is_only_answer: bool = False
    text: str = ""


class AnsweredThreads(FrozenModel):
    """The result of posting the replies.

    url: address of the first reply's page.
    missing_places: places of the threads that no longer exist.
    """

    url: str = ""
    missing_places: tuple[str, ...] = ()


class PastReview(LoggedModel):
    """A submitted review that has a text of its own."""

    state: str = Field(description="COMMENTED, APPROVED, CHANGES_REQUESTED or DISMISSED.")
    commit: str = Field(default="", description="Id of the commit that was reviewed.")
    text: AuthoredText = Field(description="Its text, with author and time.")


class DiffHunk(LoggedModel):
    """A hunk of a file's diff. Lines are counted from 1; a length can be 0."""

    old_start: int = Field(description="First line in the old file.")
    old_lines: int = Field(description="Number of lines in the old file.")
    new_start: int = Field(description="First line in the new file.")
    new_lines: int = Field(description="Number of lines in the new file.")

    def holds(self, first: int, last: int, side: Side) -> bool:
        """Return True if all lines from `first` to `last` on this side are part of the hunk."""
        start, length = (
            (self.new_start, self.new_lines)
            if side == "RIGHT"
            else (self.old_start, self.old_lines)
        )
        return start <= first <= last < start + length


class DiffFile(LoggedModel):
    """A file of the diff. A path with unusual bytes is quoted as a Python literal."""

    path: str = Field(description="Path of the new file; of the old one when it was deleted.")
    old_path: str | None = Field(
        default=None, description="Path of the old file, when it was renamed."
    )
    status: str = Field(description="added, modified, deleted, renamed or type_changed.")
    additions: int | None = Field(
        default=None, description="Number of added lines; None for binary content."
    )
    deletions: int | None = Field(
        default=None, description="Number of deleted lines; None for binary content."
    )
    hunks: tuple[DiffHunk, ...] = Field(
        default=(), description="The hunks, which a review can comment on."
    )


class PullRequestCommit(LoggedModel):
    """A commit of the pull request."""

    id: str = Field(description="Id of the commit.")
    author: str = Field(description="Name of the author in the commit, which proves nothing.")
    message: str = Field(description="Beginning of the commit message.")


class PullRequestContext(LoggedModel):
    """A pull request at one commit, as the requester saw it."""

    number: int = Field(description="Number of the pull request.")
    head: str = Field(description="The commit that is worked on; later pushes are not used.")
    base_branch: str = Field(description="Branch that it is to be merged into.")
    base: str = Field(
        default="", description="Newest commit of that branch; set when the repository is cloned."
    )
    merge_base: str = Field(
        default="", description="Merge base of the two branches; set when the repository is cloned."
    )
    head_branch: str = Field(default="", description="Branch that it comes from.")
    head_repository: str = Field(
        default="",
        description="OWNER/NAME of the repository that it comes from; empty when that was deleted.",
    )
    is_fork: bool = Field(default=False, description="True when it comes from another repository.")
    is_draft: bool = Field(default=False, description="True when it is a draft.")
    default_branch: str = Field(
        default="",
        description="Default branch of the repository that it is for; set when the repository is "
        "cloned.",
    )
    author: str = Field(default="", description="Login of the person who opened it.")
    association: str = Field(
        default="NONE", description="The author's author_association; not a permission."
    )
    conflicts: tuple[str, ...] = Field(
        default=(),
        description="Files that git could not merge with the base branch, when merging is the "
        "work.",
    )
    conflict_notes: tuple[str, ...] = Field(
        default=(), description="Git's messages about these conflicts."
    )
    moved: str = Field(
        default="", description="What is known about pushes since the request, for a person."
    )
    threads: tuple[ReviewThread, ...] = Field(default=(), description="Review threads.")
    reviews: tuple[PastReview, ...] = Field(default=(), description="Reviews, oldest first.")
    commits: tuple[PullRequestCommit, ...] = Field(default=(), description="Commits, oldest first.")
    files: tuple[DiffFile, ...] = Field(
        default=(), description="Changed files, up to a maximum number."
    )
    files_left_out: int = Field(
        default=0, description="Number of changed files beyond that maximum."
    )

    def file(self, path: str) -> DiffFile | None:
        """Return the changed file with this old or new path, or None."""
        by_name = (f for f in self.files if path in {f.path, f.old_path})
        return next(by_name, None)


class OpenPullRequest(LoggedModel):
    """An open pull request of Resolver for an issue, as of the request.

    The run adds its change to this pull request.
    """

    number: int = Field(description="Number of the pull request.")
    title: str = Field(description="Title of the pull request, cleaned.")
    url: str = Field(default="", description="Address of its page.")
    branch: str = Field(description="Branch of this repository that it comes from.")
    head: str = Field(description="The commit that is worked on; later pushes are not used.")
    base_branch: str = Field(description="Branch that it is to be merged into.")
    moved: str = Field(
        default="", description="What is known about pushes since the request, for a person."
    )


class PullRequestSource(FrozenModel):
    """The branch that a pull request comes from, read from GitHub just before a push to it.

    is_open: True while the pull request is open.
    repository: OWNER/NAME of the branch's repository; "" when it was deleted.
    branch: name of the branch.
    is_fork: True when the branch is in another repository.
    can_modify: True when the author allows maintainers to push to the fork's branch.
    is_protected: True when the branch has rules. It is not determined for a fork.
    """

    is_open: bool
    repository: str
    branch: str
    is_fork: bool
    can_modify: bool = False
    is_protected: bool = False


class Remark(FrozenModel):
    """One comment of a review, as the agent made it."""

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
        """The place as text, `path:first-last`, for a person."""
        lines = f"{self.line}" if self.first == self.line else f"{self.first}-{self.line}"
        return f"{self.path}:{lines}"


class Review(FrozenModel):
    """A review that is ready to be published.

    commit: the commit that was reviewed.
    inline_comments: comments on lines of the diff.
    body_comments: comments on lines outside the diff, which go into the review's body.
    repeated: number of comments that an open thread already makes.
    left_out: number of comments beyond the configured maximum, the least important ones.
    """

    commit: str
    inline_comments: tuple[Remark, ...] = ()
    body_comments: tuple[Remark, ...] = ()
    repeated: int = 0
    left_out: int = 0


class PublishedReview(FrozenModel):
    """A published review with the number of its comments."""

    commit: str = Field(description="The commit that was reviewed.")
    url: str = Field(default="", description="Address of its page; empty if it was not published.")
    placed: int = Field(default=0, description="Number of comments on lines of the diff.")
    in_body: int = Field(default=0, description="Number of comments in the body of the review.")
    repeated: int = Field(
        default=0, description="Number of findings that open review threads contained already."
    )
    left_out: int = Field(
        default=0, description="Number of comments beyond the maximum, the least important ones."
    )


def describe_review(review: Review, url: str = "") -> PublishedReview:
    """Return the numbers of a review that was published at `url`, or not published at all."""
    return PublishedReview(
        commit=review.commit,
        url=url,
        placed=len(review.inline_comments),
        in_body=len(review.body_comments),
        repeated=review.repeated,
        left_out=review.left_out,
    )


@dataclass(frozen=True)
class PostedReplies:
    """The replies that were posted.

    comment_url: URL of the reply that answers the whole request, None if there is none.
    warnings: what could not be done.
    """

    comment_url: str | None = None
    warnings: tuple[str, ...] = ()
