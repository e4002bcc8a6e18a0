"""Answers a reviewer's comments, and finds their lines in the diff.

The answer says at once whether GitHub can show the comment at its lines.
"""

from collections.abc import Callable, Sequence

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ObservationBase
from resolver.models.pull_request import DiffFile, PullRequestContext, Remark


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
