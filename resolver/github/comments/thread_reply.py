"""The words of a reply in a conversation on lines. What the model wrote in it is made inert."""

from resolver.config.templates import render
from resolver.github.comments.markers import thread_marker
from resolver.github.comments.report import Report
from resolver.github.text.escape import code_span
from resolver.github.text.safe_markdown import safe_markdown
from resolver.models.pull_request import ThreadReply

LONGEST = 6_000
"""UTF-16 units of the agent's words."""


def thread_reply(report: Report, reply: ThreadReply, link: str, *, resolved: bool) -> str:
    """The text of the reply.

    link: page of the commit that was added to the pull request, "" for none: then what was done
    is in a pull request of its own, or public nowhere. resolved: somebody has marked the
    conversation as resolved since the request.
    """
    number, patch = report.trigger.number, report.patch
    elsewhere = report.pull_request.url if report.pull_request and not link else ""
    commit = patch.commit if patch is not None and patch.commit else ""
    return render(
        "comments/thread_reply.md.j2",
        marker=marker_of(report, reply),
        words=safe_markdown(reply.words, own_issue=number, limit=LONGEST),
        done=reply.done,
        commit=code_span(commit[:12]),
        link=link,
        elsewhere=elsewhere or "",
        resolved=resolved,
        then=reply.asked.thread.is_outdated,
    )


def marker_of(report: Report, reply: ThreadReply) -> str:
    """What the reply begins with, and is found by."""
    return thread_marker(report.trigger.key, reply.asked.thread.id, whole=reply.whole)
