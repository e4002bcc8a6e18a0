"""Renders the comments of a run from prompts/comments/, within GitHub's size limit.

The templates read the models, and escape everything that a model, a user or a sandbox wrote.
"""

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from resolver.github.comments.report import Report
from resolver.github.comments.templates import LEVELS, MAX_NAMES, code, page, render_comment, safe
from resolver.github.events.starting_events import REQUEST_METHODS
from resolver.github.text.comment_markdown import MAX_BODY, is_closed
from resolver.github.text.markdown import fence, shorten_text, visible, without_bot_commands
from resolver.github.text.markers import Ending, refusal_marker, run_marker
from resolver.models.run import Outcome
from resolver.models.verification import UNFINISHED, ChangedExpectation
from resolver.trace.untrusted_text import utf16_length

RESERVED_TRACE_LENGTH = 45_000
"""Room that is reserved for the trace in a comment, in UTF-16 units.

The other parts lose detail until this much room, or enough for the whole trace, is left.
"""

MAX_LINES = 5
"""Maximum number of lines that are shown of one part of a test."""


def comment_body(report: Report) -> str:
    """Return the run's final comment, which has at most 65,536 characters.

    It has the highest level of detail that leaves room for the trace, which gets the rest.
    """
    ending = report.ending
    if ending is Ending.REFUSED:
        marker = refusal_marker(report.trigger.actor.login)
    else:
        marker = run_marker(report.trigger.key, ending)
    outcome, pull = report.outcome, report.pull_request
    message = outcome.message if outcome else ""
    if outcome and pull and ending is Ending.PULL_REQUEST:
        message = message_below_title(outcome, outcome.title, pull.title)
    values = report_values(report, message)
    trace = report.render_trace(RESERVED_TRACE_LENGTH).strip() if report.render_trace else ""
    for detail in LEVELS:
        text = render_comment(f"{ending.value}.md.j2", **values, detail=detail, trace=safe(""))
        text = re.sub(r"\n{3,}", "\n\n", text.strip())
        room = MAX_BODY - utf16_length(text) - 500
        if room >= min(utf16_length(trace), RESERVED_TRACE_LENGTH):
            break
    if report.render_trace:
        trace = report.render_trace(room).strip()
        if trace and utf16_length(trace) <= room and is_closed(trace):
            shown = safe(without_bot_commands(trace))
            text = render_comment(f"{ending.value}.md.j2", **values, detail=detail, trace=shown)
    return f"{marker}\n\n{text.strip()}\n"


def message_below_title(outcome: Outcome, *titles: str) -> str:
    """Return the agent's message, without its first line if that is in a title already."""
    first, _, rest = visible(outcome.message).strip().partition("\n")
    line = first.strip(" .#*").casefold()
    is_title = any(title.strip(" .").casefold().endswith(line) for title in titles if line)
    return rest.strip() if is_title else outcome.message


def report_values(report: Report, message: str) -> dict[str, Any]:
    """Return what the templates of comments and pull requests read.

    message: the agent's final message.
    """
    outcome, failure, patch, task = report.outcome, report.failure, report.patch, report.task
    return {
        **dict(report),
        "report": report,
        "pull": task.pull if task else None,
        "message": message,
        "unfinished": outcome is not None and not report.is_completed,
        "reason": outcome.reason if outcome else None,
        "cause": failure.cause if failure else outcome.because if outcome else None,
        "what": failure.what if failure else None,
        "next_step": failure.next_step if failure else outcome.next_step if outcome else None,
        "files": patch.files if patch else (),
        "request_method": REQUEST_METHODS.get(report.trigger.kind),
        "left_out": task.left_out if task else (),
        **verification_values(report),
    }


def verification_values(report: Report) -> dict[str, Any]:
    """Return what the templates read of the verification; it is None if there was none."""
    verification = report.verification or (UNFINISHED if report.patch else None)
    if verification is None or verification.reason == "no_change":
        return {"verification": None}
    checks = verification.checks
    head = report.patch.commit if report.patch else None
    # The page of a commit in a fork is known by the publication only.
    head_url = None if report.publication.repository else report.repository_url
    former = {name for check in checks for name in check.former}
    tests: dict[str, list[str]] = {"reproduction": list(verification.reproduction)}
    for kind in ("broken", "missing", "former", "failing", "known", "useless", "not_run"):
        names = dict.fromkeys(name for check in checks for name in getattr(check, kind))
        is_result = kind in {"broken", "missing"}
        tests[kind] = [name for name in names if not (is_result and name in former)]
    return {
        "verification": verification,
        "tests": tests,
        "expectations": _expectations(verification.expectations[:MAX_NAMES]),
        "base_commit": _commit(report.base, _page(report.repository_url, report.base)),
        "head_commit": _commit(head, report.publication.commit_url or _page(head_url, head)),
    }


def _expectations(parts: Sequence[ChangedExpectation]) -> Markup:
    """Return parts of tests as a diff in a code block; "" if there are none."""
    lines: list[str] = []
    for part in parts:
        lines.append(f"@@ {shorten_text(' '.join(part.path.split()), 200)} @@")
        for sign, text in (("-", part.old), ("+", part.new)):
            shown = [line for line in text.splitlines() if line.strip()][:MAX_LINES]
            lines += [f"{sign} {shorten_text(line, 100)}" for line in shown]
    return safe(fence("\n".join(lines), "diff") if lines else "")


def _page(repository_url: str | None, commit: str | None) -> str | None:
    return f"{repository_url}/commit/{commit}" if repository_url and commit else None


def _commit(commit: str | None, url: str | None) -> Markup:
    """Return the first digits of a commit, with a link to its page if it has one."""
    label, target = code((commit or "")[:12]), page(url or "")
    return safe(f"[{label}]({target})") if label and target else label
