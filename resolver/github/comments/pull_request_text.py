"""Renders the title and body of a pull request, and the messages of its commits.

The body fills in the repository's pull request template if there is one that can be filled in, and
has Resolver's own sections otherwise. Titles and commit subjects follow the repository's style.

What people edited is never overwritten. A hidden marker after the run's marker holds digests of the
title and text that Resolver wrote. A title or text that no longer matches is not replaced; what is
new goes into a folded section at the end of the body.
"""

import hashlib
import re
import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from resolver.config.templates import render
from resolver.github.comments.comment_text import (
    LEVELS,
    is_whole,
    looks_like_scratch,
    template_values,
)
from resolver.github.comments.markers import run_marker
from resolver.github.comments.pull_request_template import (
    Fact,
    Part,
    fill_template,
    text_beneath,
    with_heading,
)
from resolver.github.comments.report import Ending, Report
from resolver.github.comments.titles import (
    CommitSubject,
    Style,
    is_about_the_work,
    is_test_path,
    read_style,
    says_what_changed,
    write_subject,
)
from resolver.github.text.comment_markdown import MAX_BODY, is_closed
from resolver.github.text.markdown import code_span, quieted, shorten_text, title, visible
from resolver.models.run import FileChange, TriggerKind
from resolver.trace.markdown import utf16_length

_WORDS = re.compile(
    r"<!-- resolver:words title=([0-9a-f]{16}) body=([0-9a-f]{16})(?: (draft|theirs))? -->"
)
_ANY_MARKER = re.compile(r"\A(?:\s*<!-- resolver:[^\n]*? -->)+\s*")
_FOLD = re.compile(
    r"\n*<!-- resolver:newest(?: run=[0-9A-Za-z-]{1,60})? -->\n.*?\n<!-- resolver:end -->\n*",
    re.DOTALL,
)
_STANDING = re.compile(
    r"\n*<!-- resolver:standing -->\n.*?\n<!-- resolver:stands -->\n*", re.DOTALL
)

Drafting = Literal["", "draft", "theirs"]
"""Who decides on the draft status of a pull request.

"" means ready for review, as Resolver set it; "draft" means a draft, as Resolver set it. "theirs"
means that a person changed the status, and from then on people decide.
"""


def words_marker(title: str, text: str, *, draft: bool) -> str:
    """Return the marker of the given title and body text.

    `draft` says if the pull request is opened as a draft.
    """
    end = " draft -->" if draft else " -->"
    return f"<!-- resolver:words title={_digest(title)} body={_digest(text)}{end}"


def _digest(text: str) -> str:
    # GitHub's web editor saves CRLF line ends. These and trailing spaces do not count as an edit.
    lines = (line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    plain = "\n".join(lines).strip()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def text_of(body: str) -> str:
    """Return a body without the markers at its start."""
    return _ANY_MARKER.sub("", body, count=1)


def title_is_ours(title: str, body: str) -> bool:
    """Return True if the title is as Resolver wrote it. Without a marker it counts as edited."""
    found = _WORDS.search(_markers(body))
    return found is not None and found[1] == _digest(title)


def body_is_ours(body: str) -> bool:
    """Return True if the text is as Resolver wrote it. Without a marker it counts as edited."""
    found = _WORDS.search(_markers(body))
    return found is not None and found[2] == _digest(text_of(body))


def drafting_in(body: str, *, is_draft: bool) -> Drafting:
    """Return who decides on the draft status. Without a marker, people do.

    `is_draft` is the current status: if it differs from the marker, a person changed it.
    """
    found = _WORDS.search(_markers(body))
    if found is None or (found[3] == "draft") != is_draft:
        return "theirs"
    return "theirs" if found[3] == "theirs" else "draft" if is_draft else ""


def with_title(body: str, title: str) -> str:
    """Return the body with the marker updated to a new title. Without a marker it is unchanged."""
    head = _markers(body)
    marked = _WORDS.sub(lambda m: m[0].replace(m[1], _digest(title), 1), head, count=1)
    return marked + body[len(head) :]


def with_drafting(body: str, drafting: Drafting) -> str:
    """Return the body with the draft status in its marker updated.

    Without a marker it is unchanged.
    """
    head = _markers(body)
    end = f" {drafting} -->" if drafting else " -->"
    marked = _WORDS.sub(lambda m: f"{m[0].split(' body=')[0]} body={m[2]}{end}", head, count=1)
    return marked + body[len(head) :]


def run_marker_of(body: str) -> str:
    """Return the first marker of a body, "" if it has none."""
    head = _markers(body)
    return head.strip().split("\n")[0].strip() if head else ""


def tells_of(body: str, run: str) -> bool:
    """Return True if the body has a folded section about this run."""
    return f"<!-- resolver:newest run={run} -->" in body


def _markers(body: str) -> str:
    found = _ANY_MARKER.match(body)
    return found[0] if found else ""


def with_newest(
    body: str, marker: str, newest: str, *, beside: bool = False, run: str = "", standing: str = ""
) -> str:
    """Return the body with `newest` in a folded section at its end, in place of earlier ones.

    The result stays below GitHub's limit: if the folded section does not fit, it is left out.

    `marker` is the run's marker. `newest` is the text to fold, "" for none. With `beside`, earlier
    folded sections are kept. `run` is recorded in the section, so that its text is not added twice.
    `standing` is shown above the section and replaces what an earlier run put there.
    """
    text = _STANDING.sub("\n\n", text_of(body).replace("\r\n", "\n"))
    theirs = (text if beside else _FOLD.sub("\n\n", text)).strip()
    mark = _WORDS.search(_markers(body))
    head = "\n".join(filter(None, (marker, mark[0] if mark else "")))
    kept = f"{head}\n\n{theirs}\n".lstrip("\n")
    if not newest:
        return kept
    fold = render("comments/pull_request_newest.md.j2", newest=newest).strip()
    above = f"\n<!-- resolver:standing -->\n{standing}\n<!-- resolver:stands -->\n"
    begin = f"<!-- resolver:newest{f' run={run}' if run else ''} -->"
    whole = f"{kept}{above if standing else ''}\n{begin}\n{fold}\n<!-- resolver:end -->\n"
    return whole if utf16_length(whole) <= MAX_BODY else kept


def room_below(body: str, *, beside: bool = False) -> int:
    """Return how many UTF-16 units are left for a folded section at the end of a body.

    With `beside`, earlier folded sections are kept and take room.
    """
    text = text_of(body)
    return MAX_BODY - utf16_length(text if beside else _FOLD.sub("", text)) - 1_500


MOST_MESSAGE = 1_500
"""Maximum length of a commit message between its subject and its trailers, in characters."""

WIDTH = 72

_MOST_TO_START = 3
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.M | re.S)
_FORGED = re.compile(r"^(\s*)([\w-]+-(?:by|run)|skip-checks)(\s*:)", re.I | re.M)
_CHANGELOG = re.compile(
    r"(?:^|/)(?:changelog|changes|news|newsfragments?|whatsnew|release[-_]?notes?|history)\b", re.I
)
_MANIFESTS = {
    "package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "pyproject.toml",
    "setup.py", "setup.cfg", "poetry.lock", "uv.lock", "pipfile", "pipfile.lock", "go.mod",
    "go.sum", "cargo.toml", "cargo.lock", "gemfile", "gemfile.lock", "pom.xml", "build.gradle",
    "composer.json", "composer.lock", "dockerfile", "makefile",
}  # fmt: skip


def pull_request_title(report: Report) -> str:
    """Return the title of a new pull request, 1 to 256 characters, in the repository's style.

    It is the first line of the agent's message if that says what changed, else the issue's title.
    """
    return _subject(report, None)


def new_title(report: Report) -> str:
    """Return a new title for an existing pull request to which the change was added.

    It is the title that the agent proposes, in the repository's style, or "" if the current title
    can stay.
    """
    words = report.outcome.pull_request_title if report.outcome else ""
    return _subject(report, None, words) if _split_title(report, words)[0] else ""


def commit_message(report: Report) -> str:
    """Return the commit message: subject, explanation and trailers.

    The explanation says what was wrong and what changed; the trailers name the issue and the run.
    """
    outcome, issue = report.outcome, report.trigger.subject
    told = ""
    if outcome is not None:
        _, rest = _split_title(report, outcome.message)
        told = "\n\n".join(filter(None, (outcome.cause.strip(), outcome.change.strip()))) or rest
    return render(
        "run/commit.j2",
        subject=_subject(report, _style(report.conventions.subjects).max_length),
        why=_plain(told),
        issue=issue if _closes(report) else None,
        refers=issue,
        run=report.run,
    ).strip()


def _subject(report: Report, limit: int | None, words: str = "") -> str:
    issue, task = report.trigger.subject, report.task
    style = _style(report.conventions.subjects)
    asked = task.title if task else ""
    words, _ = _split_title(report, words or (report.outcome.message if report.outcome else ""))
    if words and _is_dictated(words, report.trigger.instruction):
        return shorten_text(title(words, own_issue=issue), limit or 256)
    if not words and task and (task.pull or task.follows):
        # The title of the pull request does not describe the commit that was added to it.
        words = _said(report)
    elif not words:
        prefixed = issue is not None and style.kind == "plain" and not says_what_changed(asked)
        words = f"Fix #{issue}: {asked}" if prefixed else asked
    subject = CommitSubject(
        text=title(words, own_issue=issue),
        paths=tuple(file.path for file in report.patch.files) if report.patch else (),
        issue=issue,
        labels=task.labels if task else (),
        ticket_text=f"{asked}\n{task.body if task else ''}",
    )
    return shorten_text(write_subject(style, subject, limit=limit), 256) or "Change"


@lru_cache(maxsize=16)
def _style(subjects: tuple[str, ...]) -> Style:
    return read_style(subjects)


def _is_dictated(words: str, instruction: str) -> bool:
    """Return True if the requester dictated the title, which is then used as written."""
    asks = re.search(
        r"\btitled?\b|\bcall (?:it|this|the (?:pull request|PR|commit))\b", instruction
    )
    return asks is not None and words in instruction


def _split_title(report: Report, message: str) -> tuple[str, str]:
    """Return title and rest if the first line can be a title, else "" and the whole text."""
    first, _, rest = visible(message).lstrip().partition("\n")
    plain = re.sub(r"^[#>*\-\s]+|[*`]", "", first.strip()).strip()
    fits = 2 <= len(plain.split()) <= 14 and len(plain) <= 80
    may_be = fits and not first.startswith("#") and plain[-1] not in ":?"
    dictated = may_be and _is_dictated(plain.rstrip("."), report.trigger.instruction)
    if dictated or (may_be and says_what_changed(plain, _known(report))):
        return plain.rstrip("."), rest.strip()
    return "", message


def _known(report: Report) -> list[str]:
    """Return the texts that name the change's subject: issue title, instruction, changed paths."""
    task, paths = report.task, [file.path for file in report.patch.files] if report.patch else []
    return [task.title if task else "", report.trigger.instruction, *paths[:100]]


def _said(report: Report) -> str:
    """Return a description of the change for when the agent gave no title.

    It is the first sentence that describes the change, else the names of the changed files.
    """
    outcome, files = report.outcome, report.patch.files if report.patch else ()
    for text in (outcome.change, outcome.message) if outcome else ():
        for line in _FENCED.sub("", visible(text)).splitlines():
            plain = re.sub(r"^(?:[>*\-\s]|\d+[.)]\s)+|[*`]", "", line.strip())
            sentence = re.split(r"(?<=[.!;])\s", plain, maxsplit=1)[0].rstrip(" .!;")
            is_prose = not plain.startswith(("#", "|", "<")) and not sentence.endswith((":", "?"))
            if is_prose and len(sentence.split()) > 1 and not is_about_the_work(sentence):
                return sentence
    if not files:
        return "Change"
    others = len(files) - 1
    more = f" and {others} other file{'' if others == 1 else 's'}" if others else ""
    return f"Change {files[0].path}{more}"


def _plain(text: str) -> str:
    """Return the agent's text wrapped and shortened for a commit message.

    Mentions are broken up so that they notify nobody. Trailers such as `Signed-off-by:` are broken
    up, because GitHub and git would act on them. This is done before and after wrapping: a wrapped
    line may begin with a trailer that was mid-line before.
    """
    quiet = _FORGED.sub(r"\1\2 -", quieted(visible(text)))
    paragraphs = re.split(r"\n\s*\n", shorten_text(quiet.strip(), MOST_MESSAGE))
    wrapped = "\n\n".join(_wrapped(paragraph) for paragraph in paragraphs)
    return _FORGED.sub(r"\1\2 -", wrapped).strip()


def _wrapped(paragraph: str) -> str:
    if re.search(r"^(?:\s|[-*+>|#]|\d+[.)]|```)", paragraph, re.M):
        return paragraph  # Lists, tables and code keep their line breaks.
    return textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)


def pull_request_body(report: Report) -> str:
    """Return the body of the pull request: at most 65,536 characters, all HTML tags closed."""
    text = _fitting_text(report)
    if report.trigger.kind is TriggerKind.LOCAL:
        return f"{text}\n"
    trigger = report.trigger
    marker = run_marker(trigger.key, Ending.PULL_REQUEST, trigger.subject, report.run)
    words = words_marker(pull_request_title(report), text, draft=report.draft)
    return f"{marker}\n{words}\n\n{text}\n"


def latest_changes_text(report: Report, room: int) -> str:
    """Return Resolver's own sections to add below a body that a person edited.

    The template is left out. Returns "" if not even the shortest version fits into `room` UTF-16
    units.
    """
    on_pull = report.task is not None and report.task.pull is not None
    for index in range(len(LEVELS)):
        parts = parts_of(report, index)
        # On a pull request, the number of the request is the pull request's own.
        text = _own({part: "" if part is Part.ISSUE and on_pull else parts[part] for part in parts})
        if utf16_length(text) <= room and is_closed(text):
            return text
    return ""


def _fitting_text(report: Report) -> str:
    most = MAX_BODY - 500
    for index in range(len(LEVELS)):
        text = _text(report, parts_of(report, index))
        if utf16_length(text) <= most and is_closed(text):
            return text
    return _own(parts_of(report, len(LEVELS) - 1))


def _text(report: Report, parts: dict[Part, str]) -> str:
    """Return the filled-in template.

    If the template asks for nothing that is known, return Resolver's own sections with the
    template's checkboxes below.
    """
    template, issue = report.conventions.template, report.trigger.subject
    if not template.strip():
        return _own(parts)
    facts = _facts(report)
    nobody = render("comments/pull_request_part.md.j2", part="nobody").strip()
    text = fill_template(template, parts, facts, own_issue=issue, label=_label, empty_text=nobody)
    if text is not None and is_closed(text):
        return text
    rest = text_beneath(template, facts, own_issue=issue)
    return f"{_own(parts)}\n\n***\n\n{rest}" if rest else _own(parts)


def _own(parts: dict[Part, str]) -> str:
    told = ((part, text) for part, text in parts.items() if text and part is not Part.CHANGELOG)
    return "\n\n".join(with_heading(part, text, _label) for part, text in told)


def _label(part: Part) -> str:
    return render("comments/pull_request_part.md.j2", part="label", of=part.value).strip()


def parts_of(report: Report, level: int) -> dict[Part, str]:
    """Return the rendered sections about the change, in display order.

    `level` is an index into LEVELS, from most to least detail.
    """
    message = report.outcome.message if report.outcome else ""
    _, rest = _split_title(report, message)
    told = report.outcome is not None and any(
        getattr(report.outcome, name) for name in ("cause", "change", "verification", "remaining")
    )
    values = template_values(report, rest if told else rest or message, LEVELS[level])
    values["told"] = dict(values["sections"])
    values["start"], values["careful"] = _to_look_at(report.patch.files if report.patch else ())
    values["changelog"] = [code_span(shorten_text(p, 200)) for p in _changelog(report)[:3]]
    values["fold_files"] = len(values["files"]) > 6
    rendered = {
        part: render("comments/pull_request_part.md.j2", part=part.value, **values).strip()
        for part in Part
    }
    return {part: re.sub(r"\n{3,}", "\n\n", text) for part, text in rendered.items()}


def _closes(report: Report) -> bool:
    on_pull = report.task is not None and report.task.pull is not None
    return report.trigger.subject is not None and is_whole(report) and not on_pull


def _to_look_at(files: Sequence[FileChange]) -> tuple[list[str], list[str]]:
    """Return the files to read first, most changed first, and those that need careful review."""
    # Binary files are flagged in the table of files instead: nobody can start reading with one.
    readable = [f for f in files if f.additions is not None or f.status == "deleted"]
    code = [f for f in readable if _is_code(f) and f.status != "deleted"]
    code.sort(key=lambda f: -((f.additions or 0) + (f.deletions or 0)))
    careful = []
    for file in readable:
        name = file.path.rsplit("/", 1)[-1].lower()
        odd = file.new_mode != file.old_mode and file.status == "modified"
        why = (
            "deleted"
            if file.status == "deleted"
            else "its mode changes"
            if odd
            else "a symlink"
            if file.new_mode == "120000"
            else "a submodule"
            if file.new_mode == "160000"
            else "how the project is built"
            if name in _MANIFESTS
            else ""
        )
        if why:
            careful.append(f"{code_span(shorten_text(file.path, 200))} ({why})")
    start = [code_span(shorten_text(f.path, 200)) for f in code[:_MOST_TO_START]]
    return (start if len(files) > 1 else []), careful[:10]


def _is_code(file: FileChange) -> bool:
    name = file.path.rsplit("/", 1)[-1].lower()
    is_prose = name.endswith((".md", ".rst", ".txt", ".adoc"))
    is_other = is_prose or name in _MANIFESTS or is_test_path(file.path)
    return not (is_other or looks_like_scratch(file))


def _facts(report: Report) -> frozenset[Fact]:
    """Return the statements on checkboxes that are known to be true, so that they can be ticked."""
    changed = _written_paths(report)
    facts = set()
    if any(is_test_path(path) for path in changed):
        facts.add(Fact.TESTS)
    if any(re.match(r"(?:.*/)?(?:docs?/|readme)", path, re.I) for path in changed):
        facts.add(Fact.DOCS)
    if _changelog(report):
        facts.add(Fact.CHANGELOG)
    if _closes(report):
        facts.add(Fact.ISSUE)
    return frozenset(facts)


def _written_paths(report: Report) -> list[str]:
    files = report.patch.files if report.patch else ()
    return [file.path for file in files if file.status in {"added", "modified"}]


def _changelog(report: Report) -> list[str]:
    """Return the changelog files that the change adds or modifies."""
    return [path for path in _written_paths(report) if _CHANGELOG.search(path)]
