"""Renders a reply in a review thread. The model's text in it is escaped."""

from resolver.config.templates import render
from resolver.github.comments.markers import thread_marker
from resolver.github.comments.report import Report
from resolver.github.text.escape import code_span
from resolver.github.text.safe_markdown import safe_markdown
from resolver.models.pull_request import ThreadReply

LONGEST = 6_000
"""Maximum length of the agent's text, in UTF-16 units."""


def thread_reply(report: Report, reply: ThreadReply, link: str, *, resolved: bool) -> str:
    """Return the text of the reply.

    `link` is the page of the commit that was added to the pull request. It is "" if there is none:
    the change then is in a separate pull request, or was not published. `resolved` says that the
    thread was marked as resolved after the request.
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
    """Return the marker that the reply begins with and is found by."""
    return thread_marker(report.trigger.key, reply.asked.thread.id, whole=reply.whole)
