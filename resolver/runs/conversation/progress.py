"""Starts the progress comment: the reaction to the request and the comment that is edited from then
on.

It is only written for a run that may start and that publishes its work.
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
    """React to the request and start the progress comment. Returns at once; never raises.

    publication: what an earlier attempt of this run has published. Returns None if the run gets no
    progress comment.
    """
    if not request.publish:
        return None
    forge.acknowledge(request.trigger)
    # A question in a review thread is answered in that thread and nowhere else.
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
            verifies=settings.verify,
        ),
        settings.progress_interval,
        CheckTracker().take,
        request.redactor(settings).redact_text,
    )
    telling.start()
    return telling
