"""Renders the comments of a run from prompts/comments/, within GitHub's size limit.

The templates escape everything that a model or a user wrote.
"""

import re
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from resolver.github.comments.report import Report
from resolver.github.comments.templates import render_comment, safe
from resolver.github.comments.verification_text import verification_values
from resolver.github.events.starting_events import REQUEST_METHODS
from resolver.github.text.comment_markdown import MAX_BODY, is_closed, safe_markdown
from resolver.github.text.markdown import visible, without_bot_commands
from resolver.github.text.markers import Ending, refusal_marker, run_marker
from resolver.models.run import Outcome, RunState, TriggerKind
from resolver.trace.untrusted_text import utf16_length

RESERVED_TRACE_LENGTH = 45_000
"""Room that is reserved for the trace in a comment, in UTF-16 units.

The other parts lose detail until this much room, or enough for the whole trace, is left.
"""

_SECTIONS = {
    "cause": "What was wrong",
    "change": "What changed",
    "verification": "What the agent checked",
    "remaining": "What is left",
}
"""Fields of the agent's final message, and the heading that each one gets."""


@dataclass(frozen=True)
class DetailLevel:
    """Limits for one level of detail in a comment.

    `message` is a length in UTF-16 units, `output` (of one command) a length in characters.
    `files`, `commands` and `lines` (of lists such as warnings) are numbers of items.
    """

    message: int
    files: int
    commands: int
    output: int
    lines: int


LEVELS = (
    DetailLevel(message=12_000, files=100, commands=15, output=1_500, lines=30),
    DetailLevel(message=4_000, files=30, commands=8, output=400, lines=10),
    DetailLevel(message=1_000, files=10, commands=3, output=100, lines=5),
)


def comment_body(report: Report) -> str:
    """Return the run's final comment, which has at most 65,536 characters."""
    ending = report.ending
    if ending is Ending.REFUSED:
        marker = refusal_marker(report.trigger.actor.login)
    else:
        marker = run_marker(report.trigger.key, ending)
    outcome, pull = report.outcome, report.pull_request
    message = outcome.message if outcome else ""
    if outcome and pull and ending is Ending.PULL_REQUEST:
        message = message_below_title(outcome, outcome.title, pull.title)
    return _render_to_fit(f"{ending.value}.md.j2", report, marker, message)


def message_below_title(outcome: Outcome, *titles: str) -> str:
    """Return the agent's message, without its first line if that is in a title already."""
    first, _, rest = visible(outcome.message).strip().partition("\n")
    line = first.strip(" .#*").casefold()
    is_title = any(title.strip(" .").casefold().endswith(line) for title in titles if line)
    return rest.strip() if is_title else outcome.message


def _render_to_fit(template: str, report: Report, marker: str, message: str) -> str:
    """Render the template at the highest level of detail that leaves room for the trace.

    The trace gets the room that is left. `message` is the agent's final message.
    """
    trace = report.render_trace(RESERVED_TRACE_LENGTH).strip() if report.render_trace else ""
    for detail in LEVELS:
        values = comment_values(report, message, detail)
        text = _render_comment(template, marker, values, "")
        room = MAX_BODY - utf16_length(text) - 500
        if room >= min(utf16_length(trace), RESERVED_TRACE_LENGTH):
            break
    if report.render_trace:
        trace = report.render_trace(room).strip()
    is_shown = trace and utf16_length(trace) <= room and is_closed(trace)
    return _render_comment(template, marker, values, trace) if is_shown else text


def _render_comment(template: str, marker: str, values: dict[str, Any], trace: str) -> str:
    text = render_comment(template, **values, trace=safe(without_bot_commands(trace))).strip()
    text = re.sub(r"\n{3,}", "\n\n", text) if not trace else text
    return f"{marker}\n\n{text}\n" if marker else f"{text}\n"


def comment_values(report: Report, message: str, detail: DetailLevel) -> dict[str, Any]:
    """Return what the templates of comments and pull requests read. They escape it.

    message: the agent's final message.
    """
    outcome, failure, patch, task = report.outcome, report.failure, report.patch, report.task
    files = patch.files if patch else ()
    return {
        **dict(report),
        "report": report,
        "detail": detail,
        "pull": task.pull if task else None,
        "summary": _markdown(report, message, detail.message),
        "summary_is_cut": utf16_length(message) > detail.message,
        "sections": _sections(report, detail.message // len(_SECTIONS)),
        "unfinished": outcome is not None and not is_task_completed(report),
        "closes": report.trigger.subject is not None and is_task_completed(report),
        "reason": outcome.reason if outcome else None,
        "cause": failure.cause if failure else outcome.because if outcome else None,
        "what": failure.what if failure else "",
        "next_step": failure.next_step if failure else outcome.next_step if outcome else None,
        "files": files[: detail.files],
        "files_left_out": max(0, len(files) - detail.files),
        "commands": report.commands[-detail.commands :],
        "commands_left_out": max(0, len(report.commands) - detail.commands),
        "request_method": REQUEST_METHODS.get(report.trigger.kind, ""),
        "is_local": report.trigger.kind is TriggerKind.LOCAL,
        "left_out": task.left_out if task else (),
        "extension": _example_extension(report),
        **verification_values(report, detail.output),
    }


def _markdown(report: Report, text: str, limit: int) -> Markup:
    own_issue, host = report.trigger.subject, report.forge_host
    return safe(safe_markdown(text, own_issue=own_issue, limit=limit, forge_host=host))


def _sections(report: Report, limit: int) -> tuple[tuple[str, Markup], ...]:
    """Return heading and text of each part of the agent's final message that is not empty.

    Each text is escaped and shortened separately, so that markup left open in one part does not
    reach the next.
    """
    parts = ((heading, getattr(report.outcome, name, "")) for name, heading in _SECTIONS.items())
    return tuple(
        (heading, _markdown(report, text, limit)) for heading, text in parts if text.strip()
    )


def _example_extension(report: Report) -> str:
    """Return an example of additional limits to grant, large enough for the run to get further."""
    limit = report.outcome.limit if report.outcome else None
    return {"budget": "+$2", "time": "+30 min"}.get(limit or "", "+50 iterations")


def is_task_completed(report: Report) -> bool:
    """Return True if the agent finished and reported the whole task as completed."""
    outcome = report.outcome
    return outcome is not None and outcome.state is RunState.FINISHED and outcome.task_completed
