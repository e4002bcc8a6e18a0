"""Takes the comments that a reviewer makes, and shows it the pull request.

When the reviewer comments, the observation says at once whether GitHub can show the comment at its
lines, which is decided by the pinned diff.
"""

from collections.abc import Callable, Sequence

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ObservationBase
from resolver.git.pull_request import MAX_MESSAGE_CHARACTERS
from resolver.models.pull_request import DiffFile, PullRequestContext, Remark
from resolver.security.invisible_text import with_invisible_shown


def review_comment_handler(
    pull: PullRequestContext | None,
) -> Callable[[a.ReviewComment], ObservationBase]:
    """Return the function that handles the agent's action to comment on lines.

    pull: None if no pull request is known, as in a delegate's review.
    """

    def handle(action: a.ReviewComment) -> ObservationBase:
        if pull is None:
            return o.ReviewCommentNoted(content="Noted.")
        remark = match_diff_side(to_remark(action), pull.files)
        in_diff = fits_in_diff(remark, pull.files)
        file = pull.file(remark.path)
        text = render("agent/review_comment_noted.md.j2", remark=remark, placed=in_diff, file=file)
        return o.ReviewCommentNoted(content=text.strip(), placed=in_diff)

    return handle


def to_remark(event: a.ReviewComment) -> Remark:
    """Return the comment as the model of a review's comment."""
    return Remark.model_validate(event, from_attributes=True)


def match_diff_side(remark: Remark, files: Sequence[DiffFile]) -> Remark:
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


def fits_in_diff(remark: Remark, files: Sequence[DiffFile]) -> bool:
    """Return True if all lines of the comment are in one hunk, so that GitHub accepts it there."""
    matching_files = (file for file in files if file.path == remark.path)
    return any(
        hunk.holds(remark.first, remark.line, remark.side)
        for file in matching_files
        for hunk in file.hunks
    )


def readable_pull_request(pull: PullRequestContext) -> PullRequestContext:
    """Return the pull request with invisible characters made visible.

    That applies to texts chosen by people: authors and messages of commits, the branch name, and
    paths of review threads.
    """
    commits = (
        commit.model_copy(
            update={
                "author": with_invisible_shown(commit.author),
                "message": with_invisible_shown(commit.message)[:MAX_MESSAGE_CHARACTERS],
            }
        )
        for commit in pull.commits
    )
    threads = (
        thread.model_copy(update={"path": with_invisible_shown(thread.path)})
        for thread in pull.threads
    )
    return pull.model_copy(
        update={
            "head_branch": with_invisible_shown(pull.head_branch),
            "commits": tuple(commits),
            "threads": tuple(threads),
        }
    )
