"""Renders the title and body of a pull request, and the messages of its commits.

The body has the repository's pull request template, if the agent filled it in, and Resolver's own
sections. Titles and commit subjects are the agent's, if they say what changed.

What people edited is never overwritten. A hidden marker after the run's marker holds digests of the
title and text that Resolver wrote. A title or text that no longer matches is not replaced; what is
new goes into a folded section at the end of the body.
"""

import hashlib
import re
import textwrap
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

from resolver.config.templates import render
from resolver.github.comments.comment_contexts import PullRequestSections
from resolver.github.comments.comment_text import (
    LEVELS,
    comment_context,
    find_files_to_review,
    is_task_completed,
)
from resolver.github.comments.markers import run_marker
from resolver.github.comments.pull_request_template import fill_template
from resolver.github.comments.report import Ending, Report
from resolver.github.comments.titles import write_subject
from resolver.github.text.comment_markdown import MAX_BODY, is_closed
from resolver.github.text.markdown import (
    MAX_TITLE,
    format_title,
    shorten_text,
    visible,
    without_bot_commands,
    without_notifications,
)
from resolver.models.run import FileChange, Outcome, TriggerKind
from resolver.models.titles import MAX_TITLE_CHARACTERS
from resolver.trace.plain import plural
from resolver.trace.untrusted_text import utf16_length

_TEXT_MARKER = re.compile(
    r"<!-- resolver:(?:text|words) title=([0-9a-f]{16}) body=([0-9a-f]{16})"
    r"(?: (draft|by_people|theirs))? -->"
)
"""The marker with the digests of title and text. Older versions wrote `words` and `theirs`."""

_DRAFTING_BY_PEOPLE = {"by_people", "theirs"}
_ANY_MARKER = re.compile(r"\A(?:\s*<!-- resolver:[^\n]*? -->)+\s*")
_NEWEST_SECTION = re.compile(
    r"\n*<!-- resolver:newest(?: run=[0-9A-Za-z-]{1,60})? -->\n.*?\n<!-- resolver:end -->\n*",
    re.DOTALL,
)
_STANDING_SECTION = re.compile(
    r"\n*<!-- resolver:standing -->\n.*?\n<!-- resolver:stands -->\n*", re.DOTALL
)


class BodySection(StrEnum):
    """Resolver's own sections of a pull request's body, in display order."""

    WARNING = "warning"
    VERDICT = "verdict"
    ISSUE = "issue"
    WHAT = "what"
    WHY = "why"
    CHANGE = "change"
    VERIFICATION = "verification"
    TESTED = "tested"
    LOOK = "look"
    LEFT = "left"
    RUN = "run"


DraftControl = Literal["", "draft", "by_people"]
"""The party that decides on the draft status of a pull request.

"" means ready for review, as Resolver set it; "draft" means a draft, as Resolver set it.
"by_people" means that a person changed the status, and from then on people decide.
"""


def text_marker(title: str, text: str, *, draft: bool) -> str:
    """Return the marker of the given title and body text.

    `draft` says if the pull request is opened as a draft.
    """
    end = " draft -->" if draft else " -->"
    return f"<!-- resolver:text title={_digest(title)} body={_digest(text)}{end}"


def _digest(text: str) -> str:
    # GitHub's web editor saves CRLF line ends. These and trailing spaces do not count as an edit.
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    normalized = "\n".join(lines).strip()
    return hashlib.sha256(normalized.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def text_of(body: str) -> str:
    """Return a body without the markers at its start."""
    return _ANY_MARKER.sub("", body, count=1)


def is_generated_title(title: str, body: str) -> bool:
    """Return True if the title is as Resolver wrote it. Without a marker it counts as edited."""
    match = _TEXT_MARKER.search(_markers(body))
    return match is not None and match[1] == _digest(title)


def is_generated_body(body: str) -> bool:
    """Return True if the text is as Resolver wrote it. Without a marker it counts as edited."""
    match = _TEXT_MARKER.search(_markers(body))
    return match is not None and match[2] == _digest(text_of(body))


def drafting_in(body: str, *, is_draft: bool) -> DraftControl:
    """Return who decides on the draft status. Without a marker, people do.

    `is_draft` is the current status: if it differs from the marker, a person changed it.
    """
    match = _TEXT_MARKER.search(_markers(body))
    if match is None or (match[3] == "draft") != is_draft:
        return "by_people"
    return "by_people" if match[3] in _DRAFTING_BY_PEOPLE else "draft" if is_draft else ""


def with_title(body: str, title: str) -> str:
    """Return the body with the marker updated to a new title. Without a marker it is unchanged."""
    markers = _markers(body)
    new_markers = _TEXT_MARKER.sub(
        lambda m: m[0].replace(m[1], _digest(title), 1), markers, count=1
    )
    return new_markers + body[len(markers) :]


def with_drafting(body: str, drafting: DraftControl) -> str:
    """Return the body with the draft status in its marker updated.

    Without a marker it is unchanged.
    """
    markers = _markers(body)
    end = f" {drafting} -->" if drafting else " -->"
    new_markers = _TEXT_MARKER.sub(
        lambda m: f"<!-- resolver:text title={m[1]} body={m[2]}{end}", markers, count=1
    )
    return new_markers + body[len(markers) :]


def run_marker_of(body: str) -> str:
    """Return the first marker of a body, "" if it has none."""
    markers = _markers(body)
    return markers.strip().split("\n")[0].strip() if markers else ""


def has_section_of_run(body: str, run: str) -> bool:
    """Return True if the body has a folded section about this run."""
    return f"<!-- resolver:newest run={run} -->" in body


def _markers(body: str) -> str:
    match = _ANY_MARKER.match(body)
    return match[0] if match else ""


def add_newest_section(
    body: str,
    marker: str,
    newest: str,
    *,
    keep_earlier: bool = False,
    run: str = "",
    warning: str = "",
) -> str:
    """Return the body with `newest` in a folded section at its end, in place of earlier ones.

    The result stays below GitHub's limit: if the folded section does not fit, it is left out.

    `marker` is the run's marker. `newest` is the text to fold, "" for none. With `keep_earlier`,
    earlier folded sections are kept. `run` is recorded in the section, so that its text is not
    added twice.
    `warning` is shown above the section and replaces what an earlier run put there.
    """
    text = _STANDING_SECTION.sub("\n\n", text_of(body).replace("\r\n", "\n"))
    existing_text = (text if keep_earlier else _NEWEST_SECTION.sub("\n\n", text)).strip()
    match = _TEXT_MARKER.search(_markers(body))
    markers = "\n".join(filter(None, (marker, match[0] if match else "")))
    without_newest = f"{markers}\n\n{existing_text}\n".lstrip("\n")
    if not newest:
        return without_newest
    fold = render("comments/pull_request_newest.md.j2", newest=newest).strip()
    standing_section = f"\n<!-- resolver:standing -->\n{warning}\n<!-- resolver:stands -->\n"
    start_marker = f"<!-- resolver:newest{f' run={run}' if run else ''} -->"
    above = standing_section if warning else ""
    section = f"{start_marker}\n{fold}\n<!-- resolver:end -->\n"
    with_section = f"{without_newest}{above}\n{section}"
    return with_section if utf16_length(with_section) <= MAX_BODY else without_newest


def remaining_length(body: str, *, keep_earlier: bool = False) -> int:
    """Return how many UTF-16 units are left for a folded section at the end of a body.

    With `keep_earlier`, earlier folded sections are kept and take room.
    """
    text = text_of(body)
    return MAX_BODY - utf16_length(text if keep_earlier else _NEWEST_SECTION.sub("", text)) - 1_500


MAX_MESSAGE_CHARACTERS = 1_500
"""Maximum length of a commit message between its subject and its trailers, in characters."""

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
        ) or _summary(outcome)
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
    return shorten_text(write_subject(report.conventions.subjects, title, limit=limit), MAX_TITLE)


def _describe_files(report: Report) -> str:
    """Return the name of the first changed file and the number of others; "" for no change."""
    files = report.patch.files if report.patch else ()
    if not files:
        return ""
    others = f" and {plural(len(files) - 1, 'other file')}" if len(files) > 1 else ""
    return f"Change {files[0].path}{others}"


def _summary(outcome: Outcome) -> str:
    """Return the agent's message, without its first line if that repeats the title."""
    first, _, rest = visible(outcome.message).strip().partition("\n")
    return rest.strip() if first.strip(" .#*") == outcome.title.strip(" .") else outcome.message


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
    """Return the body of the pull request: at most 65,536 characters, all HTML tags closed."""
    text = _fitting_text(report)
    if report.trigger.kind is TriggerKind.LOCAL:
        return f"{text}\n"
    trigger = report.trigger
    marker = run_marker(trigger.key, Ending.PULL_REQUEST, trigger.subject, report.run)
    content_marker = text_marker(pull_request_title(report), text, draft=report.draft)
    return f"{marker}\n{content_marker}\n\n{text}\n"


def latest_changes_text(report: Report, max_length: int) -> str:
    """Return Resolver's own sections to add below a body that a person edited.

    The template is left out. Returns "" if not even the shortest version fits into `max_length`
    UTF-16 units.
    """
    is_on_pull = report.task is not None and report.task.pull is not None
    for index in range(len(LEVELS)):
        parts = render_parts(report, index)
        # On a pull request, the number of the request is the pull request's own.
        text = _join_own_sections(
            {
                part: "" if part is BodySection.ISSUE and is_on_pull else parts[part]
                for part in parts
            }
        )
        if utf16_length(text) <= max_length and is_closed(text):
            return text
    return ""


def _fitting_text(report: Report) -> str:
    max_length = MAX_BODY - 500
    for index in range(len(LEVELS)):
        text = _with_template(report, index)
        if utf16_length(text) <= max_length and is_closed(text):
            return text
    return _join_own_sections(render_parts(report, len(LEVELS) - 1))


_SECTIONS_ABOVE_TEMPLATE = (BodySection.WARNING, BodySection.VERDICT, BodySection.ISSUE)
_SECTIONS_IN_TEMPLATE = (BodySection.WHAT, BodySection.WHY)
"""Sections whose content is in a template that was filled in."""


def _with_template(report: Report, level: int) -> str:
    """Return the repository's template, filled in, between Resolver's own sections.

    Without a text that follows the template, return Resolver's own sections alone.
    """
    filled = _fill_template(report, level)
    if filled is None:
        return _join_own_sections(render_parts(report, level))
    parts = render_parts(report, level, omitted_statement="What changed")
    # In code, the words would not close the issue.
    closing = rf"^[^`\n]*\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?):? #{report.trigger.subject}\b"
    if re.search(closing, filled, re.I | re.M):
        del parts[BodySection.ISSUE]
    above = {part: text for part, text in parts.items() if part in _SECTIONS_ABOVE_TEMPLATE}
    below = {
        part: text
        for part, text in parts.items()
        if part not in _SECTIONS_ABOVE_TEMPLATE + _SECTIONS_IN_TEMPLATE
    }
    blocks = (_join_own_sections(above), filled, "***", _join_own_sections(below))
    return "\n\n".join(filter(None, blocks))


def _fill_template(report: Report, level: int) -> str | None:
    """Return the template with the agent's text for it, None if there is no valid one."""
    template, outcome = report.conventions.template, report.outcome
    if outcome is None or not template.strip() or not outcome.pull_request_body.strip():
        return None
    return fill_template(
        template,
        outcome.pull_request_body,
        # A reference could close an issue that the change does not resolve.
        own_issue=report.trigger.subject if _closes(report) else None,
        limit=LEVELS[level].message,
        forge_host=report.forge_host,
    )


def _join_own_sections(parts: dict[BodySection, str]) -> str:
    return "\n\n".join(_with_heading(part, text) for part, text in parts.items() if text)


def _with_heading(part: BodySection, text: str) -> str:
    """Return the part below a heading of its own, if it has a name."""
    name = render("comments/pull_request_part.md.j2", part="label", of=part.value).strip()
    return f"### {name}\n\n{text}" if name else text


def render_parts(
    report: Report, level: int, *, omitted_statement: str = ""
) -> dict[BodySection, str]:
    """Return the rendered sections about the change, in display order.

    `level` is an index into LEVELS, from most to least detail. `omitted_statement` is the heading
    of a section of the agent's message that is left out.
    """
    message = report.outcome.message if report.outcome else ""
    rest = _summary(report.outcome) if report.outcome else ""
    has_sections = report.outcome is not None and any(
        getattr(report.outcome, name) for name in ("cause", "change", "verification", "remaining")
    )
    context = comment_context(report, rest if has_sections else rest or message, LEVELS[level])
    start, careful = find_files_to_review(report.patch.files if report.patch else ())
    statements = {
        name: text for name, text in context.message.sections if name != omitted_statement
    }
    sections = PullRequestSections(
        statements=statements,
        start=tuple(start),
        careful=tuple(careful),
        size=_size(report.patch.files if report.patch else ()),
    )
    rendered = {
        part: render(
            "comments/pull_request_part.md.j2", *context, sections, part=part.value
        ).strip()
        for part in BodySection
    }
    return {part: re.sub(r"\n{3,}", "\n\n", text) for part, text in rendered.items()}


def _closes(report: Report) -> bool:
    is_on_pull = report.task is not None and report.task.pull is not None
    return report.trigger.subject is not None and is_task_completed(report) and not is_on_pull


def _size(files: Sequence[FileChange]) -> str:
    """Return how many files and lines the change has. Binary files have no lines."""
    added = sum(file.additions or 0 for file in files)
    deleted = sum(file.deletions or 0 for file in files)
    return f"{plural(len(files), 'file')}, +{added:,} \u2212{deleted:,}"
