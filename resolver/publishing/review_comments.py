"""What a reviewer is told of each comment at once: whether it can stand on its lines."""

from collections.abc import Callable, Sequence

from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ObservationBase
from resolver.models.pull_request import DiffFile, PullRequestContext, Remark


def note_comment(pull: PullRequestContext | None) -> Callable[[a.ReviewComment], ObservationBase]:
    """What answers a comment.

    pull: None where there is no pull request that is known, as for a delegate's review.
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
    """The comment as a review has it."""
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
    """The remark with the path and the side that the diff has for it: a moved file's lines stand
    under its new name, and a file that is only there before, or only after, has one side."""
    by_name = {file.old_path: file for file in files if file.old_path}
    by_name |= {file.path: file for file in files}
    file = by_name.get(remark.path)
    if file is None:
        return remark
    side = {"deleted": "LEFT", "added": "RIGHT"}.get(file.status, remark.side)
    return remark.model_copy(update={"path": file.path, "side": side})


def is_placed(remark: Remark, files: Sequence[DiffFile]) -> bool:
    """Whether the comment can stand on its lines: all of them are part of one hunk."""
    by_path = (file for file in files if file.path == remark.path)
    return any(
        hunk.holds(remark.first, remark.line, remark.side)
        for file in by_path
        for hunk in file.hunks
    )
