"""Renders the summary that GitHub shows on the page of a job: the result, the change, the steps.

It is made of the run's final comment, and of the parts of the trace, which may be longer than in a
comment. See
https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary
"""

from resolver.config.templates import render
from resolver.github.comments.comment_text import comment_body
from resolver.github.comments.report import Report
from resolver.models.run import Publication
from resolver.trace.markdown import render_changed_files

MAX_TRACE_LENGTH = 120_000
"""Maximum length of the trace and of the change, in UTF-16 units. A summary has at most 1 MiB, and
a unit takes three bytes at most."""

_SLOT = "<!-- the trace -->"


def render_job_summary(
    report: Report, publication: Publication, *, state: str, server: str, diff: str
) -> str:
    """Return the summary as Markdown.

    state: state that the run ended in. server: GitHub's address.
    diff: the change as `git diff` prints it. It is shown only if it was pushed: a change that was
        refused may hold what nobody should see.
    """
    trace = report.trace_markdown
    if trace and report.render_trace:
        trace = report.render_trace(MAX_TRACE_LENGTH)
    changes = render_changed_files(diff, MAX_TRACE_LENGTH) if publication.branch else ""
    # The summary is shown on the job's page, so it needs no link to it.
    slot = {"log_url": "", "trace_markdown": _SLOT, "render_trace": None}
    comment = comment_body(report.model_copy(update=slot))
    text, _, end = comment.partition(_SLOT)
    return render(
        "run/summary.md.j2",
        trigger=report.trigger,
        server=server,
        state=state,
        publication=publication,
        report=text.strip(),
        changes=changes,
        trace=trace.strip(),
        end=end.strip(),
    )
