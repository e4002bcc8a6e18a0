"""Says on the thread that a run has begun: the reaction, and the comment that is edited from then
on. Only of a run that may begin and that publishes.
"""

from resolver.config.settings import Settings
from resolver.github.comments.progress import RunProgress
from resolver.github.comments.progress_reporter import ProgressReporter
from resolver.github.forge import Forge
from resolver.models.run import Publication
from resolver.runs.stages import RunRequest
from resolver.verification.check_tracker import CheckTracker


def start_progress_comment(
    request: RunRequest, settings: Settings, publication: Publication, forge: Forge
) -> ProgressReporter | None:
    """React to the request and start the run's comment. Returns at once; never raises.

    publication: what an earlier attempt of this run has made public.
    """
    if not request.publish:
        return None
    forge.acknowledge(request.trigger)
    # A question in a review thread is answered there, and in no second place.
    told = publication.comment_url is not None or request.trigger.in_thread
    if told or not settings.progress_comments or request.is_local:
        return None
    now = request.now()
    telling = ProgressReporter(
        forge.apart,
        RunProgress(
            trigger=request.trigger,
            run=request.run,
            since=now,
            until=now + settings.longest_run,
            mention=settings.mention,
            job=request.actions_run,
            log_url=request.log_url or request.page,
        ),
        settings.progress_interval,
        CheckTracker().take,
        request.redactor(settings).redact_text,
    )
    telling.start()
    return telling
