"""Renders the comments of a run from prompts/comments/, within GitHub's size limit.

Everything that a model or a user wrote is escaped here; the templates add only Resolver's own text.
New files that look like scratch work are pointed out: reproduction scripts, experiments, logs and
copies that were left behind. So are the files that a reader should begin with or look at closely.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from resolver.config.templates import render
from resolver.github.comments.comment_contexts import (
    AgentMessage,
    ApprovalRequest,
    Assessments,
    CommentContext,
    ConflictRow,
    EndingFacts,
    ExecutedCommand,
    FileRow,
    PublicationFacts,
    PushedChangeSummary,
    ReplyCommands,
    ReviewSummary,
    RunFacts,
    WorkSummary,
)
from resolver.github.comments.markers import refusal_marker, run_marker
from resolver.github.comments.report import CommentPreferences, Ending, Report
from resolver.github.comments.verification_text import tabulate_verification
from resolver.github.events.starting_events import REQUEST_METHODS
from resolver.github.text.comment_markdown import MAX_BODY, safe_markdown, shorten_markdown
from resolver.github.text.markdown import (
    code_span,
    fence,
    shorten_text,
    single_line,
    visible,
    without_bot_commands,
)
from resolver.models.run import CheckedCommand, FileChange, Outcome, RunState, TriggerKind
from resolver.models.test_files import is_test_file
from resolver.models.truncate import keep_last_lines
from resolver.security.invisible_text import with_invisible_shown
from resolver.trace.plain import duration, money
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

_STATUS_LABELS = {
    "added": "new",
    "modified": "changed",
    "deleted": "deleted",
    "type_changed": "type",
}


_URL = re.compile(r"https?://[^\s<>()]+")


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
    return _render_to_fit(f"comments/{ending.value}.md.j2", report, marker, message)


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
        context = comment_context(report, message, detail)
        text = _render_comment(template, marker, context, "")
        trace_limit = MAX_BODY - utf16_length(text) - 500
        if trace_limit >= min(utf16_length(trace), RESERVED_TRACE_LENGTH):
            break
    if trace and report.render_trace:
        trace = report.render_trace(trace_limit).strip()
    return (
        _render_comment(template, marker, context, shorten_markdown(trace, trace_limit))
        if trace
        else text
    )


def _render_comment(template: str, marker: str, context: CommentContext, trace: str) -> str:
    text = render(template, *context, trace=without_bot_commands(trace)).strip()
    text = re.sub(r"\n{3,}", "\n\n", text) if not trace else text
    return f"{marker}\n\n{text}\n" if marker else f"{text}\n"


def comment_context(report: Report, message: str, detail: DetailLevel) -> CommentContext:
    """Return the values that the templates of comments and pull requests are rendered with."""
    return CommentContext(
        message=_message(report, message, detail),
        ending=_ending(report),
        work=_work(report, detail),
        run=_run_facts(report, detail),
        preferences=_as_inline_code(report.comment_preferences),
        reply=_reply_commands(report),
        publication=_publication(report),
        assessments=Assessments(
            verification=tabulate_verification(report, detail.output),
            review=_review(report),
            approval=_approval_request(report),
        ),
    )


def _message(report: Report, message: str, detail: DetailLevel) -> AgentMessage:
    return AgentMessage(
        summary=safe_markdown(
            message,
            own_issue=report.trigger.subject,
            limit=detail.message,
            forge_host=report.forge_host,
        ),
        summary_is_cut=utf16_length(message) > detail.message,
        sections=_sections(report, detail.message // len(_SECTIONS)),
    )


def _ending(report: Report) -> EndingFacts:
    outcome, failure = report.outcome, report.failure
    return EndingFacts(
        unfinished=outcome is not None and not is_task_completed(report),
        reason=_as_sentence(outcome.reason) if outcome else "",
        cause=failure.cause if failure else outcome.because if outcome else "",
        declined=outcome.declined if outcome else "",
        what=_as_sentence(failure.what if failure else ""),
        next_step=_capitalize(_as_sentence(_next_step(report))),
        retry_until=f"{report.retry_until:%Y-%m-%d %H:%M} UTC" if report.retry_until else "",
    )


def _work(report: Report, detail: DetailLevel) -> WorkSummary:
    # Scratch files go last, so that they do not crowd out the change itself.
    files = sorted(report.patch.files, key=looks_like_scratch) if report.patch else []
    commands = report.commands
    return WorkSummary(
        files=tuple(_file_row(change) for change in files[: detail.files]),
        files_left_out=max(0, len(files) - detail.files),
        commands=tuple(
            _command(command, detail.output) for command in commands[-detail.commands :]
        ),
        commands_left_out=max(0, len(commands) - detail.commands),
    )


def _run_facts(report: Report, detail: DetailLevel) -> RunFacts:
    trigger = report.trigger
    return RunFacts(
        run=code_span(report.run),
        issue=trigger.subject,
        closes=trigger.subject is not None and is_task_completed(report),
        requester=code_span(trigger.actor.login),
        login=single_line(trigger.actor.login, 100),
        instruction=single_line(trigger.instruction, 300),
        request_method=REQUEST_METHODS.get(trigger.kind, ""),
        check=code_span(trigger.check, in_table=True) if trigger.check else "",
        local=trigger.kind is TriggerKind.LOCAL,
        seen=_describe_version(report),
        numbers=_cost_rows(report),
        left_out=_limit_lines(report.task.left_out if report.task else (), detail.lines),
        page=report.page if _URL.fullmatch(report.page) else "",
        log_url=report.log_url if _URL.fullmatch(report.log_url) else "",
        warnings=_limit_lines(report.warnings, detail.lines),
    )


def _as_inline_code(preferences: CommentPreferences) -> CommentPreferences:
    """Return the preferences with each text as inline code, so that no value is read as markup."""
    texts = {name: value for name, value in asdict(preferences).items() if isinstance(value, str)}
    return replace(preferences, **{name: code_span(text) for name, text in texts.items()})


def _reply_commands(report: Report) -> ReplyCommands:
    return ReplyCommands(
        continues=report.continues,
        continue_command=code_span(f"{report.mention} continue"),
        extend=code_span(f"{report.mention} continue {_example_extension(report)}"),
        publishable=report.publishable,
        publish=code_span(f"{report.mention} publish"),
    )


def _publication(report: Report) -> PublicationFacts:
    pull = report.pull_request
    return PublicationFacts(
        how=report.publication.how,
        pull_request=pull,
        pull_request_title=single_line(pull.title) if pull else "",
        branch=code_span(shorten_text(report.branch or "", 300)),
        commit=code_span((report.patch.commit or "")[:12]) if report.patch else "",
        unverified=report.unverified,
        is_draft=pull is not None and pull.draft,
        follows=bool(report.task and report.task.follows),
        pushed=_pushed_change(report),
    )


def _next_step(report: Report) -> str:
    """Return what a person can do about the failure, or "" if nothing failed."""
    if report.failure is not None:
        return report.failure.next_step
    return report.outcome.next_step if report.outcome else ""


def _describe_version(report: Report) -> str:
    """Return a description of the commit and the point in time that the run worked from.

    Returns "" if nothing was cloned or the run was local.
    """
    trigger = report.trigger
    if not report.base or trigger.kind is TriggerKind.LOCAL:
        return ""
    is_late = report.base_committed_at is not None and report.base_committed_at > trigger.at
    return (
        f"commit {code_span(report.base[:12])}{', made after the request' if is_late else ''}; the "
        f"conversation as of {trigger.at:%Y-%m-%d %H:%M:%S} UTC"
    )


def _sections(report: Report, limit: int) -> tuple[tuple[str, str], ...]:
    """Return heading and text of each part of the agent's final message that is not empty.

    Each text is escaped and shortened separately, so that markup left open in one part does not
    reach the next.
    """
    outcome, issue = report.outcome, report.trigger.subject
    if outcome is None:
        return ()
    parts = ((heading, getattr(outcome, name)) for name, heading in _SECTIONS.items())
    return tuple(
        (heading, safe_markdown(text, own_issue=issue, limit=limit, forge_host=report.forge_host))
        for heading, text in parts
        if text.strip()
    )


def _review(report: Report) -> ReviewSummary | None:
    """Return a published review, other than the review's own text; None if there is none."""
    review = report.review
    if review is None:
        return None
    pull = report.task.pull if report.task else None
    parts = [_format_count(review.placed, "comment"), _format_count(review.in_body, "remark")]
    findings = " and ".join(part for part in parts if part) or "no comments on lines"
    return ReviewSummary(
        url=review.url if _URL.fullmatch(review.url) else "",
        commit=code_span(review.commit[:12]),
        findings=findings,
        verdict=review.verdict.value,
        moved=_capitalize(_as_sentence(pull.moved)) if pull else "",
    )


def _format_count(count: int, noun: str) -> str:
    """Return a number with its noun, such as "3 comments", or "" for zero."""
    return f"{count} {noun}{'' if count == 1 else 's'}" if count else ""


def _pushed_change(report: Report) -> PushedChangeSummary:
    """Return the change to a pull request that existed before the run."""
    publication, pull = report.publication, report.task.pull if report.task else None
    patch = publication.patch
    return PushedChangeSummary(
        branch=code_span(shorten_text(publication.branch or "", 300)),
        repository=code_span(publication.repository) if publication.repository else "",
        commit=code_span((publication.commit or "")[:12]),
        url=publication.commit_url if _URL.fullmatch(publication.commit_url) else "",
        base=code_span(pull.base_branch if pull else ""),
        conflicts=", ".join(code_span(conflict) for conflict in pull.conflicts[:20])
        if pull
        else "",
        conflict_rows=tuple(
            ConflictRow(
                path=code_span(conflict.path), kept=conflict.kept, untouched=conflict.untouched
            )
            for conflict in publication.conflicts[:50]
        ),
        conflicts_left_out=max(0, len(publication.conflicts) - 50),
        head=code_span(pull.head_branch if pull else ""),
        why=single_line(publication.why, 500),
        patch=fence(patch, "diff") if patch else "",
    )


def _approval_request(report: Report) -> ApprovalRequest | None:
    """Return the action that waits for approval; None if there is none."""
    requested_action = report.pending_approval
    if requested_action is None:
        return None
    language = {"cmd_run": "bash", "ipython_run_cell": "python"}.get(requested_action.kind, "text")
    return ApprovalRequest(
        kind=code_span(requested_action.kind),
        level=requested_action.level.value,
        rule=None if requested_action.rule is None else code_span(requested_action.rule),
        block=fence(with_invisible_shown(requested_action.text), language),
        approve=code_span(f"{report.mention} approve {requested_action.number}".strip()),
        deny=code_span(f"{report.mention} deny <reason>"),
        waits=report.outcome is None,
    )


def _example_extension(report: Report) -> str:
    """Return an example of additional limits to grant, large enough for the run to get further."""
    limit = report.outcome.limit if report.outcome else None
    return {"budget": "+$2", "time": "+30 min"}.get(limit or "", "+50 iterations")


def is_task_completed(report: Report) -> bool:
    """Return True if the agent finished and reported the whole task as completed."""
    outcome = report.outcome
    return outcome is not None and outcome.state is RunState.FINISHED and outcome.task_completed


def _cost_rows(report: Report) -> tuple[tuple[str, str], ...]:
    """Return what the run cost, as pairs of name and value."""
    outcome = report.outcome
    if outcome is None:
        return ()
    tokens = outcome.tokens
    cached = f", {tokens.cached:,} of them cached" if tokens.cached else ""
    rows = [
        ("Cost", money(outcome.cost)),
        ("Iterations", f"{outcome.iterations:,}"),
        ("Time", duration(outcome.seconds)),
        ("Tokens", f"{tokens.input:,} in{cached}, {tokens.output:,} out"),
    ]
    if report.model:
        rows.append(("Model", code_span(shorten_text(report.model, 100), in_table=True)))
    return tuple(rows)


def _file_row(change: FileChange) -> FileRow:
    line_counts = f"+{change.additions} −{change.deletions}"
    if change.additions is None or change.deletions is None:
        line_counts = "**binary**" if change.status == "added" else "binary"
    mode = (
        f", mode {change.old_mode} → {change.new_mode}"
        if change.status == "modified" and change.old_mode != change.new_mode
        else ""
    )
    if change.status == "added" and change.new_mode == "100755":
        mode = ", executable"
    return FileRow(
        path=code_span(shorten_text(change.path, 300), in_table=True),
        status=_STATUS_LABELS[change.status] + mode,
        lines=line_counts,
        scratch=looks_like_scratch(change),
    )


def _command(command: CheckedCommand, limit: int) -> ExecutedCommand:
    ended = "did not end" if command.exit_code is None else f"exit code {command.exit_code}"
    output = visible(command.output_tail).strip("\n")
    line = shorten_text(" ".join(visible(command.command).split()), 200)
    return ExecutedCommand(
        command=code_span(line),
        html=html.escape(line),
        ended=ended,
        output=fence(keep_last_lines(output, limit)) if output.strip() else "",
    )


def _limit_lines(lines: Sequence[str], max_lines: int) -> tuple[str, ...]:
    limited = tuple(single_line(line, 300) for line in lines[:max_lines])
    return limited + ((f"and {len(lines) - max_lines} more",) if len(lines) > max_lines else ())


def _as_sentence(text: str) -> str:
    """Return `text` as one escaped line that ends with a punctuation mark."""
    line = single_line(text, 800)
    return line if not line or line[-1] in ".!?…" else f"{line}."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


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


def find_files_to_review(files: Sequence[FileChange]) -> tuple[list[str], list[str]]:
    """Return the files to read first, most changed first, and those that need careful review."""
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
            careful.append(f"{code_span(shorten_text(file.path, 200))} ({reason})")
    start = [code_span(shorten_text(file.path, 200)) for file in code[:_MAX_FILES_TO_START]]
    return (start if len(files) > 1 else []), careful[:10]


def _is_code(file: FileChange) -> bool:
    name = file.path.rsplit("/", 1)[-1].lower()
    is_prose = name.endswith((".md", ".rst", ".txt", ".adoc"))
    is_other = is_prose or name in _MANIFESTS or is_test_file(file.path)
    return not (is_other or looks_like_scratch(file) or _is_generated(file.path))


def _is_generated(path: str) -> bool:
    return _GENERATED.search(path) is not None
