"""Renders the title and body of a pull request, and the messages of its commits.

The body has the repository's pull request template, if the agent filled it in, and Resolver's own
sections. Titles and commit subjects are the agent's, if they say what changed.
"""

import re
import textwrap
from typing import Any

from resolver.config.templates import render
from resolver.github.comments.comment_text import message_below_title, report_values
from resolver.github.comments.pull_request_template import fill_template
from resolver.github.comments.report import Report
from resolver.github.comments.templates import render_comment, render_to_fit, safe
from resolver.github.text.comment_markdown import MAX_BODY
from resolver.github.text.markdown import (
    format_title,
    shorten_text,
    visible,
    without_bot_commands,
    without_notifications,
)
from resolver.github.text.markers import Ending, run_marker
from resolver.models.run import TriggerKind
from resolver.models.titles import MAX_TITLE_CHARACTERS
from resolver.trace.plain import plural

MAX_MESSAGE_CHARACTERS = 1_500
"""Maximum length of a commit message between its subject and its trailers, in characters."""

MAX_FILLED_LENGTH = 12_000
"""Maximum length of the agent's text for the repository's template, in UTF-16 units."""

LINE_WIDTH = 72

_TRAILER = re.compile(r"^([^\S\n]*)([\w-]+-(?:by|run)|skip-checks)(\s*:)", re.I | re.M)


def pull_request_title(report: Report) -> str:
    """Return the title of a new pull request: the agent's, else the issue's."""
    return _subject(report)


def commit_message(report: Report) -> str:
    """Return the commit message: subject, explanation and trailers.

    The explanation says what was wrong and what changed; the trailers name the issue and the run.
    """
    outcome, issue = report.outcome, report.trigger.subject
    explanation = ""
    if outcome is not None:
        explanation = "\n\n".join(
            filter(None, (outcome.cause.strip(), outcome.change.strip()))
        ) or message_below_title(outcome, outcome.title)
    return render(
        "run/commit.j2",
        subject=_subject(report, MAX_TITLE_CHARACTERS),
        why=_prepare_commit_text(explanation),
        issue=issue if _closes(report) else None,
        refers=issue,
        run=report.run,
    ).strip()


def _subject(report: Report, limit: int | None = None) -> str:
    """Return the title of a change as a subject: the agent's, else the issue's.

    For a change that is added to a pull request, whose title describes another change, the names of
    the changed files take the place of the issue's title.
    """
    outcome, task = report.outcome, report.task
    is_addition = task is not None and (task.pull is not None or task.follows is not None)
    text = outcome.title if outcome else ""
    text = text or (_describe_files(report) if is_addition else task.title if task else "")
    title = format_title(text, own_issue=report.trigger.subject)
    if limit is None or len(title) <= limit:
        return title
    shortened = textwrap.shorten(title, limit, placeholder="…")
    return shortened if len(shortened) > limit // 2 else shorten_text(title, limit)


def _describe_files(report: Report) -> str:
    """Return the name of the first changed file and the number of others; "" for no change."""
    files = report.patch.files if report.patch else ()
    if not files:
        return ""
    others = f" and {plural(len(files) - 1, 'other file')}" if len(files) > 1 else ""
    return f"Change {files[0].path}{others}"


def _prepare_commit_text(text: str) -> str:
    """Return the agent's text wrapped and shortened for a commit message.

    Mentions are broken up so that they notify nobody. Trailers such as `Signed-off-by:` are broken
    up, because GitHub and git would act on them. This is done before and after wrapping: a wrapped
    line may begin with a trailer that was mid-line before.
    """
    cleaned = _TRAILER.sub(r"\1\2 -", without_notifications(visible(text)))
    paragraphs = re.split(r"\n\s*\n", shorten_text(cleaned.strip(), MAX_MESSAGE_CHARACTERS))
    wrapped = "\n\n".join(_wrap_paragraph(paragraph) for paragraph in paragraphs)
    return without_bot_commands(_TRAILER.sub(r"\1\2 -", wrapped)).strip()


def _wrap_paragraph(paragraph: str) -> str:
    if re.search(r"^(?:\s|[-*+>|#]|\d+[.)]|```)", paragraph, re.M):
        return paragraph  # Lists, tables and code keep their line breaks.
    return textwrap.fill(paragraph, LINE_WIDTH, break_long_words=False, break_on_hyphens=False)


def pull_request_body(report: Report) -> str:
    """Return the body of the pull request: at most 65,536 characters, all HTML tags closed.

    It has the repository's template if the agent's text follows it, and Resolver's own sections.
    """
    filled = _fill_template(report)
    states_issue = not (filled and _closes_issue(filled, report))
    text = _render_body(
        report, filled=safe(filled or ""), states_issue=states_issue, is_addition=False
    )
    trigger = report.trigger
    if trigger.kind is TriggerKind.LOCAL:
        return f"{text}\n"
    marker = run_marker(trigger.key, Ending.PULL_REQUEST, trigger.subject, report.run)
    return f"{marker}\n\n{text}\n"


def addition_text(report: Report) -> str:
    """Return the comment on a pull request that says what a later request has added to it.

    The pull request's own text closes the issue, and the comment on the issue tells of the run.
    """
    return render_comment(
        "addition.md.j2",
        commit=(report.publication.commit or "")[:12],
        issue=report.trigger.number,
        text=safe(_render_body(report, filled=None, is_addition=True, states_issue=False)),
    ).strip()


def _render_body(report: Report, **values: Any) -> str:
    outcome = report.outcome
    message = message_below_title(outcome, outcome.title, _subject(report)) if outcome else ""
    values = {**report_values(report, message), **values}
    return render_to_fit("pull_request_body.md.j2", MAX_BODY - 500, **values)


def _closes_issue(text: str, report: Report) -> bool:
    """Return True if GitHub closes the issue because of a line of the text. In code, it would
    not."""
    closing = rf"^[^`\n]*\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?):? #{report.trigger.subject}\b"
    return re.search(closing, text, re.I | re.M) is not None


def _fill_template(report: Report) -> str | None:
    """Return the template with the agent's text for it, None if there is no valid one."""
    template, outcome = report.conventions.template, report.outcome
    if outcome is None or not template.strip() or not outcome.pull_request_body.strip():
        return None
    return fill_template(
        template,
        outcome.pull_request_body,
        # A reference could close an issue that the change does not resolve.
        own_issue=report.trigger.subject if _closes(report) else None,
        limit=MAX_FILLED_LENGTH,
        forge_host=report.forge_host,
    )


def _closes(report: Report) -> bool:
    is_on_pull = report.task is not None and report.task.pull is not None
    return report.trigger.subject is not None and report.is_completed and not is_on_pull
