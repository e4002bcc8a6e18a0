"""The first user message: the task as the agent gets it.

It shows the issue or pull request, its context (the issue form, failed checks, pictures and
referenced issues) and the review threads that the request is about. All parts share one budget of
characters. All untrusted text is enclosed in lines with a marker that does not occur in it, so that
no text can end its own block, whatever markup it imitates.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from resolver.agents.tags import write_tags
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.models.issue_context import FailedCheck, Form, Picture, Reference
from resolver.models.pull_request import (
    AskedThread,
    AuthoredText,
    PullRequestContext,
    ReviewThread,
    ThreadAnswer,
)
from resolver.models.run import Comment, Task
from resolver.models.truncate import BEGINNING, shorten_thread, truncate_middle

MOST_THREADS = 40_000
"""Maximum length of all review threads together, in characters.

Open threads come first, then the newest.
"""

MOST_OF_THREAD = 6_000
"""Maximum length of one review thread, in characters."""
MOST_REVIEWS = 10
MOST_OF_REVIEW = 4_000
MOST_COMMITS = 20_000
MOST_LINE = 300
MOST_CONFLICTS = 10_000

_WRITERS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Author associations of people who may have write access.

They are only shown to the agent and authorize nothing.
"""


def render_pull_request(
    pull: PullRequestContext | None, diff: str, asked: Collection[str] = ()
) -> dict[str, Any] | None:
    """Return the template values of the pull request, None if there is none.

    asked: ids of the review threads that are left out here, because they are rendered separately.
    """
    if pull is None:
        return None
    threads, left_out = _threads(pull, asked)
    commits = "\n".join(f"{c.id[:12]} {_single_line(c.author)}: {c.message}" for c in pull.commits)
    return {
        "author": _single_line(pull.author),
        "association": pull.association,
        "is_trusted": pull.association in _WRITERS,
        "head_branch": _single_line(pull.head_branch),
        "head_repository": pull.head_repository,
        "is_fork": pull.is_fork,
        "is_draft": pull.is_draft,
        "base_branch": _single_line(pull.base_branch),
        "merge_base": pull.merge_base,
        "base": pull.base,
        "conflicts": truncate_middle("\n".join(pull.conflicts), MOST_CONFLICTS),
        "conflict_notes": truncate_middle("\n".join(pull.conflict_notes), MOST_CONFLICTS),
        "commits": truncate_middle(commits, MOST_COMMITS),
        "closes": [
            {
                "number": i.number,
                "by": who(i.author, i.association),
                "title": _single_line(i.title),
                "body": i.body,
            }
            for i in pull.closes
        ],
        "reviews": [
            {
                "head": f"review by {who(r.words.author, r.words.association)}: {r.state}",
                "body": truncate_middle(r.words.body, MOST_OF_REVIEW),
            }
            for r in pull.reviews[-MOST_REVIEWS:]
        ],
        "threads": threads,
        "threads_left_out": left_out,
        "diff": diff or "(nothing)",
    }


def _threads(pull: PullRequestContext, asked: Collection[str]) -> tuple[list[dict[str, str]], int]:
    newest = [thread for thread in reversed(pull.threads) if thread.id not in asked]
    ordered = sorted(newest, key=lambda t: t.is_resolved or t.is_outdated)
    told: list[dict[str, str]] = []
    room = MOST_THREADS
    for thread in ordered:
        text = truncate_middle(_words(thread), MOST_OF_THREAD)
        room -= len(text)
        if room < 0:
            break
        told.append({"head": head_of(thread), "body": text})
    return told, len(ordered) - len(told)


def head_of(thread: ReviewThread) -> str:
    """Return the heading of a review thread: its state, file and line."""
    state = "resolved" if thread.is_resolved else "outdated" if thread.is_outdated else "open"
    line = thread.line or thread.original_line
    place = _single_line(thread.path) + (f":{line}" if line else "")
    side = ", a line that is taken out" if thread.side == "LEFT" else ""
    return f"{state} conversation on {place}{side}"


def _words(thread: ReviewThread) -> str:
    return "\n\n".join(f"{who(c.author, c.association)}: {c.body}" for c in thread.comments)


def who(author: str, association: str) -> str:
    """Return the author with the association, marked if not known to have write access."""
    trusted = "" if association in _WRITERS else ", not known to have write access"
    return f"{_single_line(author)} ({_single_line(association)}{trusted})"


def _single_line(text: str) -> str:
    return truncate_middle(" ".join(text.split()), MOST_LINE)


ROOM = 200_000
"""Approximate maximum length of a task prompt, in characters.

The most important parts take their share first.
"""

LEAST = 400
"""Minimum number of characters that a part gets, even if the budget is used up."""

# Maximum lengths of single parts and of all references together, in characters.
MOST_OF_FORM = 6_000
MOST_OF_FIELD = 400
MOST_OF_CHECK = 12_000
MOST_OF_REFERENCE = 3_000
MOST_REFERENCES = 18_000


@dataclass
class PromptRoom:
    """The character budget of a prompt.

    left: characters that are not used yet.
    """

    left: int = ROOM

    def cut(self, text: str, most: int) -> str:
        """Return the text truncated to `most` characters or to what is left of the budget.

        The length of the result is subtracted from `left`. A text always gets LEAST characters, so
        that `left` can become negative.
        """
        told = truncate_middle(text, min(most, max(self.left, LEAST)))
        self.left -= len(told)
        return told


def fit_pull(pull: dict[str, Any] | None, room: PromptRoom) -> dict[str, Any] | None:
    """Return the values of a pull request truncated to the budget, with the diff first."""
    if pull is None:
        return None
    fitted = {**pull, "diff": room.cut(pull["diff"], len(pull["diff"]))}
    for name in ("threads", "closes", "reviews"):
        fitted[name] = [
            {**each, "body": room.cut(each["body"], len(each["body"]))} for each in pull[name]
        ]
    return {**fitted, "commits": room.cut(pull["commits"], len(pull["commits"]))}


def render_failed_checks(checks: Sequence[FailedCheck], room: PromptRoom) -> list[dict[str, str]]:
    """Return one block for each failed check."""
    return [
        {"head": _check_head(check), "body": room.cut(_check_body(check), MOST_OF_CHECK)}
        for check in checks
    ]


def _check_head(check: FailedCheck) -> str:
    step = f", in its step {format_line(check.step)}" if check.step else ""
    return f"failed check {format_line(check.name)}: {format_line(check.conclusion)}{step}"


def _check_body(check: FailedCheck) -> str:
    notes = "\n".join(
        f"{format_line(note.path)}:{note.line}: {format_line(note.level)}: {note.message.strip()}"
        for note in check.annotations
    )
    log = f"The end of its log:\n{check.log}" if check.log else ""
    parts = (check.summary.strip(), notes, log)
    return "\n\n".join(part for part in parts if part) or "(it says nothing)"


def render_pictures(pictures: Sequence[Picture]) -> str:
    """Return one line for each picture."""
    return "\n".join(_picture(picture) for picture in pictures)


def _picture(picture: Picture) -> str:
    what = f"{picture.kind.upper()}, {picture.width} x {picture.height}"
    if picture.why_not:
        host = f" on {format_line(picture.host)}" if picture.host else ""
        what = f"not fetched: {format_line(picture.why_not)}; it lies{host or ' nowhere'}"
    alt = f". Its alternative text, not visible on the page: {format_line(picture.alt)}"
    shown = alt if picture.alt else ""
    return f"picture {picture.number}, {format_line(picture.where)}: {what}{shown}"


def render_references(references: Sequence[Reference], room: PromptRoom) -> list[dict[str, str]]:
    """Return one block for each referenced issue or pull request."""
    part = PromptRoom(min(room.left, MOST_REFERENCES))
    told = [
        {"head": _reference_head(each), "body": part.cut(_reference_body(each), MOST_OF_REFERENCE)}
        for each in references
    ]
    room.left -= min(room.left, MOST_REFERENCES) - part.left
    return told


def _reference_head(reference: Reference) -> str:
    kind = "pull request" if reference.is_pull_request else "issue"
    by = who(reference.author, reference.association)
    known = f"{format_line(reference.relation)}, {format_line(reference.state)}"
    return f"{kind} #{reference.number}, {known}, by {by}"


def _reference_body(reference: Reference) -> str:
    late = "(its text was edited after the request)" if reference.is_late else "(no text)"
    return f"{reference.title}\n\n{reference.body.strip() or late}"


def render_facts(task: Task) -> str:
    """Return labels, type, milestone and assignees, one line each."""
    facts = (
        ("Labels", ", ".join(map(format_line, task.labels))),
        ("Type", format_line(task.issue_type)),
        ("Milestone", format_line(task.milestone)),
        ("Assigned to", ", ".join(map(format_line, task.assignees))),
    )
    return "\n".join(f"{name}: {value}" for name, value in facts if value)


def render_form(form: Form | None, room: PromptRoom) -> str:
    """Return the fields of the issue form, one line each; "" if the form is unknown."""
    if form is None:
        return ""
    notes = {"given": "", "empty": " [left empty]", "missing": " [its heading is not there]"}
    lines = [
        f"- {format_line(each.label)}{notes[each.answer]}"
        + (f" -- {truncate_middle(each.description, MOST_OF_FIELD)}" if each.description else "")
        for each in form.fields
    ]
    head = f"{format_line(form.name)} ({format_line(form.path)})"
    return room.cut("\n".join([head, *lines]), MOST_OF_FORM)


def format_line(text: str) -> str:
    """Return the text on one line, truncated."""
    return truncate_middle(" ".join(text.split()), MOST_LINE)


MOST_OF_WORDS = 6_000
"""Maximum length of the comments of one thread, in characters."""

MOST_OF_CODE = 6_000
"""Maximum length of the code of one thread, in characters."""
MOST = 80_000
"""Maximum length of all threads together, in characters.

Of the threads beyond it only the request is shown.
"""


def render_requested_threads(
    asked: Sequence[AskedThread], requester: str, dialect: str, *, offered: bool = True
) -> dict[str, Any] | None:
    """Return the template values, None if the run is not asked about review threads.

    requester: login of the person who asks.
    dialect: the dialect of the agent.
    offered: the agent's `finish` takes an answer for each of the threads.
    """
    if not asked:
        return None
    room = MOST
    threads: list[dict[str, Any]] = []
    for each in asked:
        code = truncate_middle(each.code, MOST_OF_CODE)
        words = truncate_middle(_conversation(each, requester), MOST_OF_WORDS)
        room -= len(code) + len(words)
        if room < 0:
            code, words = "", truncate_middle(each.request, MOST_OF_WORDS // 4)
        head = f"{each.label}, {head_of(each.thread)}"
        threads.append({"head": head, "code": code, "words": words, "is_then": each.is_then})
    example = a.Finish(
        message="Round half() to the nearest even",
        threads=(
            ThreadAnswer(id="T1", addressed=True, answer="Renamed to `half`, with its callers."),
            ThreadAnswer(id="T2", answer="It is kept: `cli.py` passes None here."),
        ),
    )
    return {
        "threads": threads,
        "labels": [each.label for each in asked],
        "offered": offered,
        "example": write_tags(example) if dialect == "tags" else "",
    }


def _conversation(asked: AskedThread, requester: str) -> str:
    said = "\n\n".join(_said(words, requester) for words in asked.thread.comments)
    return said or asked.request


def _said(words: AuthoredText, requester: str) -> str:
    asks = ", who asks" if words.author.casefold() == requester.casefold() else ""
    return f"{who(words.author, words.association)}{asks}: {words.body}"


MAX_BODY = 40_000
"""Maximum length of the issue's description, in characters."""

MAX_COMMENTS = 60_000
"""Maximum length of all comments together, in characters. The oldest and the newest are kept."""

LEAST_OF_COMMENTS = 20_000
"""Characters that are available for comments even if the prompt is full."""

MAX_COMMENT = 15_000
"""Maximum length of one comment, in characters."""
MOST_REASONS = 40
"""Maximum number of omissions that are listed individually."""

MAX_LINE = 500
"""Maximum length of a value that is shown on one line, in characters."""
MAX_INSTRUCTION = 10_000
"""Maximum length of the instruction, in characters."""


def render_task(
    task: Task,
    base: str,
    root: str,
    reachable: str = "",
    *,
    asks: bool = False,
    reviews: bool = False,
    calls: bool = False,
    diff: str = "",
    dialect: str = "tools",
    threads: bool = True,
) -> str:
    """Return the task prompt.

    base, root: the commit that the work starts from, and the repository's path in the sandbox.
    reachable: the hosts that programs in the sandbox can reach; "" for none.
    asks, reviews: the result is an answer or report instead of a change; it is a review.
    calls: the agent does a specific kind of work, described in its system prompt.
    diff, dialect: the diff of the task's pull request, and the dialect of the agent.
    threads: its `finish` takes an answer for each review thread that it is asked about.
    """
    requester = task.trigger.actor.login
    asked = render_requested_threads(task.asked, requester, dialect, offered=threads)
    room = PromptRoom(ROOM - len(str(asked or "")))
    values = {
        "title": _line(task.title),
        "instruction": room.cut(task.trigger.instruction.strip(), MAX_INSTRUCTION),
        "body": room.cut(task.body, MAX_BODY),
        "author": _who(task.author, task.association, requester) if task.author else "",
        "form": render_form(task.form, room),
        "facts": render_facts(task),
        "requester": _line(requester),
        "asked": asked,
        "checks": render_failed_checks(task.checks, room),
        "follows": _follows(task),
        "pull": fit_pull(
            render_pull_request(task.pull, diff, [each.thread.id for each in task.asked]), room
        ),
        "comments": _comments(task.comments, requester, room),
        "references": render_references(task.references, room),
        "pictures": render_pictures(task.pictures),
    }
    return render(
        "agent/task.md.j2",
        **values,
        left_out=[_line(reason) for reason in task.left_out[:MOST_REASONS]],
        more_left_out=max(0, len(task.left_out) - MOST_REASONS),
        number=task.trigger.number,
        is_pull_request=task.trigger.is_pull_request,
        check=bool(task.trigger.check),
        base_branch=_line(task.base_branch),
        base=base,
        root=root,
        reachable=reachable,
        asks=asks,
        reviews=reviews,
        calls=calls,
        marker=_marker(repr(values), task),
    ).strip()


def _comments(
    comments: tuple[Comment, ...], requester: str, room: PromptRoom
) -> list[dict[str, Any]]:
    """Return the oldest and the newest comments that fit, in chronological order."""
    most = max(LEAST_OF_COMMENTS, min(MAX_COMMENTS, room.left))
    each = min(MAX_COMMENT, int(most * BEGINNING) - 100)  # 100: the note about the truncation
    cut = [c.model_copy(update={"body": truncate_middle(c.body, each)}) for c in comments]
    told = shorten_thread(cut, most)
    room.left -= sum(len(comment.body) for comment in told)
    return [
        {
            "by": _speaker(comment, requester),
            "at": f"{comment.created_at:%Y-%m-%d %H:%M}",
            "body": comment.body.strip(),
            "skipped": comment.skipped,
        }
        for comment in told
    ]


def _speaker(comment: Comment, requester: str) -> str:
    if comment.is_ours:
        return "yourself at the end of an earlier run"
    return _who(comment.author, comment.association, requester)


def _follows(task: Task) -> dict[str, Any] | None:
    """Return the values of the open pull request that the change is added to, if any."""
    follows = task.follows
    if follows is None:
        return None
    names = {"branch": _line(follows.branch), "base_branch": _line(follows.base_branch)}
    return {"number": follows.number, "title": _line(follows.title), **names}


def _who(author: str, association: str, requester: str) -> str:
    """Return the author with the association.

    The requester is marked as such and is known to be authorized.
    """
    if requester and author.casefold() == requester.casefold():
        known = f"{_line(association)}, " if association else ""
        return f"{_line(author)} ({known}who asks)"
    return who(author, association) if association else _line(author)


def _line(text: str) -> str:
    return truncate_middle(" ".join(text.split()), MAX_LINE)


def _marker(shown: str, task: Task) -> str:
    """Return a word that no untrusted text contains. The same task gives the same word."""
    words = task.model_dump_json(exclude={"pictures": {"__all__": {"data"}}})
    whole = f"{shown}\n{words}".lower()
    seed = whole
    while True:
        word = hashlib.sha256(seed.encode(errors="replace")).hexdigest()[:16]
        if word not in whole:
            return word
        seed += word
