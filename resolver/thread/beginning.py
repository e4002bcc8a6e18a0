"""Says on the thread that a run has begun: the reaction, and the comment that is edited from then
on. Only of a run that may begin and that publishes.
"""

from resolver.forge.base import Forge
from resolver.forge.progress import Progress
from resolver.forge.telling import Telling
from resolver.model import TriggerKind
from resolver.record import Record
from resolver.verify.course import Following


def begin_telling(record: Record, forge: Forge) -> None:
    """React to the request, and begin the run's comment. Returns at once; never raises."""
    job, settings = record.job, record.settings
    if not job.publish:
        return
    forge.acknowledge(job.trigger)
    # a question in a conversation on lines is answered there, and in no second place
    told = record.publication.comment_url is not None or job.trigger.in_thread
    if told or not settings.progress_comments or job.trigger.kind is TriggerKind.LOCAL:
        return
    now = job.now()
    redact = record.redactor().redact_text
    record.telling = Telling(
        forge.apart,
        Progress(
            trigger=job.trigger,
            run=job.run,
            since=now,
            until=now + settings.longest_run,
            mention=settings.mention,
            job=job.actions_run,
            log_url=job.log_url or job.page,
        ),
        settings.progress_interval,
        Following().take,
        redact,
    )
    record.telling.start()


def show(record: Record, **known: object) -> None:
    """Tell what is known of the run now, where its progress is told; fields of Progress."""
    if record.telling is not None:
        record.telling.show(**known)
