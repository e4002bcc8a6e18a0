"""What an earlier run or an earlier attempt has already published of the same request.

It is looked up twice, because the second look-up costs requests that only people who may start work
can cause: `find_finished_work` before anything else, `find_pushed_work` after authorization.
"""

from resolver.config.templates import render
from resolver.git.branch_names import branches_of_issue
from resolver.github.forge import Forge
from resolver.models.run import Publication, TriggerKind
from resolver.runs.stages import PublishedRun, RunRequest


def find_finished_work(request: RunRequest, forge: Forge) -> PublishedRun | None:
    """Return what an earlier run of this key has published; None when the run is to start."""
    if not request.publish:
        return None
    earlier = forge.find_publication(request.trigger)
    return _as_repeated(request, earlier) if earlier else None


def find_pushed_work(request: RunRequest, forge: Forge) -> PublishedRun | None:
    """Return what an earlier attempt of this run has pushed without telling anybody."""
    if not request.publish:
        return None
    prefix = branches_of_issue(request.trigger.subject or 0)
    earlier = forge.heads().pushed(request.trigger, request.run, prefix)
    return _as_repeated(request, earlier) if earlier else None


def _as_repeated(request: RunRequest, earlier: Publication) -> PublishedRun | None:
    """A resumed run has its log to report from and publishes only what is missing; every other one
    has nothing left to do but its comment."""
    resumes = request.resume and request.output.has_events
    if resumes and earlier.how == "added":
        return None  # a commit of its own is found again where it is added
    trigger = request.trigger
    in_review = trigger.kind is TriggerKind.REVIEW_COMMENT or trigger.review_id is not None
    lost = in_review and not resumes and earlier.comment_url is None
    return PublishedRun(
        publication=earlier.model_copy(update={"repeated": not resumes}),
        warnings=(render("run/answers_lost.md.j2").strip(),) if lost else (),
        is_earlier=not resumes,
    )
