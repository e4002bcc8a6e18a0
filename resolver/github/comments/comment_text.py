"""Renders the comments of a run from prompts/comments/, within GitHub's size limit.

The templates escape everything that a model or a user wrote.
New files that look like scratch work are pointed out: reproduction scripts, experiments, logs and
copies that were left behind. So are the files that a reader should begin with or look at closely.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from resolver.github.comments.report import Report
from resolver.github.comments.templates import render_comment, safe
from resolver.github.comments.verification_text import verification_values
from resolver.github.events.starting_events import REQUEST_METHODS
from resolver.github.text.comment_markdown import MAX_BODY, safe_markdown, shorten_markdown
from resolver.github.text.markdown import visible, without_bot_commands
from resolver.github.text.markers import Ending, refusal_marker, run_marker
from resolver.models.run import FileChange, Outcome, RunState, TriggerKind
from resolver.models.test_files import is_test_file
from resolver.trace.untrusted_text import utf16_length

_SCRATCH_WORDS: Final = frozenset({"repro", "reproduce", "reproducer", "reproduction", "scratch"})
"""Words that mark scratch work anywhere in a path."""

_SCRATCH_PREFIXES: Final = frozenset(
    {
        "apply", "check", "debug", "demo", "experiment", "fix", "inspect", "modify", "patch",
        "temp", "test", "tmp", "trial", "try", "update", "verify",
    }
)  # fmt: skip
"""Words that mark scratch work at the start of a file name in the repository's root.

Agents put their scripts there, while projects keep scripts in a folder.
"""

_SCRATCH_SUFFIXES: Final = (".bak", ".diff", ".log", ".orig", ".patch", ".rej", ".swp", ".tmp", "~")
_SCRIPT_SUFFIXES: Final = (
    ".c",
    ".js",
    ".mjs",
    ".php",
    ".pl",
    ".py",
    ".rb",
    ".rs",
    ".sh",
    ".ts",
    ".txt",
)


def looks_like_scratch(change: FileChange) -> bool:
    """Return True for a new file whose name and location suggest scratch work.

    This is a guess from the path: such files are listed separately, but never left out.
    """
    if change.status != "added":
        return False
    path = change.path.strip('"').lower()
    if path.endswith(_SCRATCH_SUFFIXES) or not _SCRATCH_WORDS.isdisjoint(
        re.findall(r"[a-z]+", path)
    ):
        return True
    in_root = "/" not in path and path.endswith(_SCRIPT_SUFFIXES)
    return in_root and re.split(r"[^a-z]", path, maxsplit=1)[0] in _SCRATCH_PREFIXES


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

    The trace is shortened to the room that is left. `message` is the agent's final message.
    """
    trace = report.trace_markdown.strip()
    for detail in LEVELS:
        values = comment_values(report, message, detail)
        text = _render_comment(template, marker, values, "")
        trace_limit = MAX_BODY - utf16_length(text) - 500
        if trace_limit >= min(utf16_length(trace), RESERVED_TRACE_LENGTH):
            break
    if trace and report.render_trace:
        trace = report.render_trace(trace_limit).strip()
    return (
        _render_comment(template, marker, values, shorten_markdown(trace, trace_limit))
        if trace
        else text
    )


def _render_comment(template: str, marker: str, values: dict[str, Any], trace: str) -> str:
    text = render_comment(template, **values, trace=safe(without_bot_commands(trace))).strip()
    text = re.sub(r"\n{3,}", "\n\n", text) if not trace else text
    return f"{marker}\n\n{text}\n" if marker else f"{text}\n"


def comment_values(report: Report, message: str, detail: DetailLevel) -> dict[str, Any]:
    """Return what the templates of comments and pull requests read. They escape it.

    message: the agent's final message.
    """
    outcome, failure, patch, task = report.outcome, report.failure, report.patch, report.task
    # Scratch files go last, so that they do not crowd out the change itself.
    files = sorted(patch.files, key=looks_like_scratch) if patch else []
    return {
        "report": report,
        "detail": detail,
        "trigger": report.trigger,
        "outcome": outcome,
        "publication": report.publication,
        "pull_request": report.pull_request,
        "pull": task.pull if task else None,
        "summary": _markdown(report, message, detail.message),
        "summary_is_cut": utf16_length(message) > detail.message,
        "sections": _sections(report, detail.message // len(_SECTIONS)),
        "unfinished": outcome is not None and not is_task_completed(report),
        "closes": report.trigger.subject is not None and is_task_completed(report),
        "reason": outcome.reason if outcome else "",
        "cause": failure.cause if failure else outcome.because if outcome else "",
        "what": failure.what if failure else "",
        "next_step": failure.next_step if failure else outcome.next_step if outcome else "",
        "files": [(change, looks_like_scratch(change)) for change in files[: detail.files]],
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


_MAX_FILES_TO_START = 3
_MANIFESTS = {
    "package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "pyproject.toml",
    "setup.py", "setup.cfg", "poetry.lock", "uv.lock", "pipfile", "pipfile.lock", "go.mod",
    "go.sum", "cargo.toml", "cargo.lock", "gemfile", "gemfile.lock", "pom.xml", "build.gradle",
    "composer.json", "composer.lock", "dockerfile", "makefile",
}  # fmt: skip

_GENERATED = re.compile(
    r"(?:^|/)(?:dist|build|out|vendor|node_modules|third_party|__snapshots__|__generated__"
    r"|generated)/"
    r"|\.min\.(?:js|css)$|\.(?:map|snap)$|_pb2(?:_grpc)?\.pyi?$|\.pb\.(?:go|cc|h)$"
    r"|[._]g(?:en|enerated)?\.[a-z]+$",
    re.IGNORECASE,
)
"""Paths of files that programs write, in the conventions of common tools."""


def find_files_to_review(
    files: Sequence[FileChange],
) -> tuple[list[FileChange], list[tuple[FileChange, str]]]:
    """Return the files to read first, most changed first, and those that need careful review.

    The latter come with the reason.
    """
    # Binary files are flagged in the table of files instead: nobody can start reading with one.
    readable = [file for file in files if file.additions is not None or file.status == "deleted"]
    code = [file for file in readable if _is_code(file) and file.status != "deleted"]
    code.sort(key=lambda f: -((f.additions or 0) + (f.deletions or 0)))
    careful = []
    for file in readable:
        name = file.path.rsplit("/", 1)[-1].lower()
        has_new_mode = file.new_mode != file.old_mode and file.status == "modified"
        reason = (
            "deleted"
            if file.status == "deleted" and not _is_generated(file.path)
            else "its mode changes"
            if has_new_mode
            else "a symlink"
            if file.new_mode == "120000"
            else "a submodule"
            if file.new_mode == "160000"
            else "how the project is built"
            if name in _MANIFESTS
            else ""
        )
        if reason:
            careful.append((file, reason))
    return (code[:_MAX_FILES_TO_START] if len(files) > 1 else []), careful[:10]


def _is_code(file: FileChange) -> bool:
    name = file.path.rsplit("/", 1)[-1].lower()
    is_prose = name.endswith((".md", ".rst", ".txt", ".adoc"))
    is_other = is_prose or name in _MANIFESTS or is_test_file(file.path)
    return not (is_other or looks_like_scratch(file) or _is_generated(file.path))


def _is_generated(path: str) -> bool:
    return _GENERATED.search(path) is not None
