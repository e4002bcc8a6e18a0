"""Looks up work that an earlier run or an earlier attempt has already published for the same
request.

There are two look-ups, because the second one costs requests to GitHub that only people who may
start work should be able to cause: `find_finished_work` runs before anything else,
`find_pushed_work` after authorization.
"""

from resolver.config.templates import render
from resolver.git.push import branches_of_issue
from resolver.github.forge import Forge
from resolver.models.run import Publication, TriggerKind
from resolver.runs.stages import PublishedRun, RunRequest


def find_finished_work(request: RunRequest, forge: Forge) -> PublishedRun | None:
    """Return what an earlier run with the same key has published; None if the run is to start."""
    if not request.publish:
        return None
    earlier = forge.find_publication(request.trigger)
    return _as_repeated(request, earlier) if earlier else None


def find_pushed_work(request: RunRequest, forge: Forge) -> PublishedRun | None:
    """Return what an earlier attempt of this run has pushed without writing its final comment."""
    if not request.publish:
        return None
    prefix = branches_of_issue(request.trigger.subject or 0)
    earlier = forge.heads().pushed(request.trigger, request.run, prefix)
    return _as_repeated(request, earlier) if earlier else None


def _as_repeated(request: RunRequest, earlier: Publication) -> PublishedRun | None:
    """Return the earlier publication, as far as this run takes it over.

    A resumed run has its log to report from and publishes only what is missing. Any other run has
    nothing left to do except its comment.
    """
    resumes = request.resume and request.output.has_events
    if resumes and earlier.how == "added":
        return None  # a commit added to an existing branch is found again when it is pushed
    trigger = request.trigger
    in_review = trigger.kind is TriggerKind.REVIEW_COMMENT or trigger.review_id is not None
    lost = in_review and not resumes and earlier.comment_url is None
    return PublishedRun(
        publication=earlier.model_copy(update={"repeated": not resumes}),
        warnings=(render("run/answers_lost.md.j2").strip(),) if lost else (),
        is_earlier=not resumes,
    )
