"""The first user message: the task as the agent gets it.

It shows the issue or pull request, its context (failed checks, pictures and
referenced issues) and the review threads that the request is about. All parts share one budget of
characters. All untrusted text is enclosed in lines with a marker that does not occur in it, so that
no text can end its own block, whatever markup it imitates.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from resolver.agents.tags import write_tags
from resolver.agents.task_contexts import (
    FollowedPullRequest,
    IssueToClose,
    PullRequestPart,
    RequestedThread,
    RequestedThreads,
    ShownComment,
    TaskPrompt,
    UntrustedBlock,
)
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.models.issue_context import FailedCheck, Picture, Reference
from resolver.models.pull_request import (
    AuthoredText,
    PullRequestContext,
    ReviewThread,
    ThreadAnswer,
    ThreadRequest,
)
from resolver.models.run import Comment, Task
from resolver.models.truncate import HEAD_SHARE, marker_for, shorten_thread, truncate_middle

MAX_THREADS_LENGTH = 40_000
"""Maximum length of all review threads together, in characters.

Open threads come first, then the newest.
"""

MAX_THREAD_LENGTH = 6_000
"""Maximum length of one review thread, in characters."""
MAX_REVIEWS = 10
MAX_REVIEW_LENGTH = 4_000
MAX_COMMITS_LENGTH = 20_000
MAX_LINE_LENGTH = 300
MAX_CONFLICTS_LENGTH = 10_000

_WRITER_ASSOCIATIONS = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Author associations of people who may have write access.

They are only shown to the agent and authorize nothing.
"""


def build_pull_request_part(
    pull: PullRequestContext | None, diff: str, excluded_ids: Collection[str] = ()
) -> PullRequestPart | None:
    """Return the pull request as the prompt shows it, None if there is none.

    excluded_ids: ids of the review threads that are left out here, because they are shown
    separately.
    """
    if pull is None:
        return None
    threads, left_out = _thread_blocks(pull, excluded_ids)
    commits = "\n".join(
        f"{commit.id[:12]} {format_line(commit.author)}: {commit.message}"
        for commit in pull.commits
    )
    return PullRequestPart(
        author=format_line(pull.author),
        association=pull.association,
        is_trusted=pull.association in _WRITER_ASSOCIATIONS,
        head_branch=format_line(pull.head_branch),
        head_repository=pull.head_repository,
        is_fork=pull.is_fork,
        is_draft=pull.is_draft,
        base_branch=format_line(pull.base_branch),
        merge_base=pull.merge_base,
        base=pull.base,
        conflicts=truncate_middle("\n".join(pull.conflicts), MAX_CONFLICTS_LENGTH),
        conflict_notes=truncate_middle("\n".join(pull.conflict_notes), MAX_CONFLICTS_LENGTH),
        commits=truncate_middle(commits, MAX_COMMITS_LENGTH),
        closes=tuple(
            IssueToClose(
                number=issue.number,
                author=format_author(issue.author, issue.association),
                title=format_line(issue.title),
                body=issue.body,
            )
            for issue in pull.closes
        ),
        reviews=tuple(
            UntrustedBlock(
                f"review by {format_author(review.text.author, review.text.association)}"
                f": {review.state}",
                truncate_middle(review.text.body, MAX_REVIEW_LENGTH),
            )
            for review in pull.reviews[-MAX_REVIEWS:]
        ),
        threads=threads,
        threads_left_out=left_out,
        diff=diff or "(nothing)",
    )


def _thread_blocks(
    pull: PullRequestContext, excluded_ids: Collection[str]
) -> tuple[tuple[UntrustedBlock, ...], int]:
    """Return the blocks of the threads that fit, and the number of the others."""
    newest = [thread for thread in reversed(pull.threads) if thread.id not in excluded_ids]
    ordered = sorted(newest, key=lambda t: t.is_resolved or t.is_outdated)
    blocks: list[UntrustedBlock] = []
    remaining = MAX_THREADS_LENGTH
    for thread in ordered:
        text = truncate_middle(_thread_text(thread), MAX_THREAD_LENGTH)
        remaining -= len(text)
        if remaining < 0:
            break
        blocks.append(UntrustedBlock(format_thread_heading(thread), text))
    return tuple(blocks), len(ordered) - len(blocks)


def format_thread_heading(thread: ReviewThread) -> str:
    """Return the heading of a review thread: its state, file and line."""
    state = "resolved" if thread.is_resolved else "outdated" if thread.is_outdated else "open"
    line = thread.line or thread.original_line
    place = format_line(thread.path) + (f":{line}" if line else "")
    side = ", a line that is taken out" if thread.side == "LEFT" else ""
    return f"{state} conversation on {place}{side}"


def _thread_text(thread: ReviewThread) -> str:
    return "\n\n".join(
        f"{format_author(comment.author, comment.association)}: {comment.body}"
        for comment in thread.comments
    )


def format_author(author: str, association: str) -> str:
    """Return the author with the association, marked if not known to have write access."""
    warning = "" if association in _WRITER_ASSOCIATIONS else ", not known to have write access"
    return f"{format_line(author)} ({format_line(association)}{warning})"


MAX_PROMPT_LENGTH = 200_000
"""Approximate maximum length of a task prompt, in characters.

The most important parts take their share first.
"""

MIN_PART_LENGTH = 400
"""Minimum number of characters that a part gets, even if the budget is used up."""

# Maximum lengths of single parts and of all references together, in characters.
MAX_CHECK_LENGTH = 12_000
MAX_REFERENCE_LENGTH = 3_000
MAX_REFERENCES_LENGTH = 18_000


@dataclass
class PromptBudget:
    """The character budget of a prompt.

    remaining: characters that are not used yet.
    """

    remaining: int = MAX_PROMPT_LENGTH

    def cut(self, text: str, max_length: int) -> str:
        """Return the text truncated to `max_length` characters or to what is left of the budget.

        The length of the result is subtracted from `remaining`. A text always gets MIN_PART_LENGTH
        characters, so that `remaining` can become negative.
        """
        truncated = truncate_middle(text, min(max_length, max(self.remaining, MIN_PART_LENGTH)))
        self.remaining -= len(truncated)
        return truncated


def fit_pull_request(pull: PullRequestPart | None, budget: PromptBudget) -> PullRequestPart | None:
    """Return the pull request with its texts truncated to the budget. The diff comes first."""
    if pull is None:
        return None

    def fit(text: str) -> str:
        return budget.cut(text, len(text))

    fitted = replace(pull, diff=fit(pull.diff))
    fitted = replace(fitted, threads=tuple(replace(t, text=fit(t.text)) for t in pull.threads))
    fitted = replace(fitted, closes=tuple(replace(i, body=fit(i.body)) for i in pull.closes))
    fitted = replace(fitted, reviews=tuple(replace(r, text=fit(r.text)) for r in pull.reviews))
    return replace(fitted, commits=fit(pull.commits))


def _check_blocks(
    checks: Sequence[FailedCheck], budget: PromptBudget
) -> tuple[UntrustedBlock, ...]:
    return tuple(
        UntrustedBlock(_check_heading(check), budget.cut(_check_body(check), MAX_CHECK_LENGTH))
        for check in checks
    )


def _check_heading(check: FailedCheck) -> str:
    step = f", in its step {format_line(check.step)}" if check.step else ""
    return f"failed check {format_line(check.name)}: {format_line(check.conclusion)}{step}"


def _check_body(check: FailedCheck) -> str:
    annotations = "\n".join(
        f"{format_line(annotation.path)}:{annotation.line}: {format_line(annotation.level)}: "
        f"{annotation.message.strip()}"
        for annotation in check.annotations
    )
    log = f"The end of its log:\n{check.log}" if check.log else ""
    parts = (check.summary.strip(), annotations, log)
    return "\n\n".join(part for part in parts if part) or "(it says nothing)"


def render_pictures(pictures: Sequence[Picture]) -> str:
    """Return one line for each picture."""
    return "\n".join(_picture(picture) for picture in pictures)


def _picture(picture: Picture) -> str:
    description = f"{picture.kind.upper()}, {picture.width} x {picture.height}"
    if picture.why_not:
        host = f" on {format_line(picture.host)}" if picture.host else ""
        description = f"not fetched: {format_line(picture.why_not)}; it lies{host or ' nowhere'}"
    alt = f". Its alternative text, not visible on the page: {format_line(picture.alt)}"
    alternative_text = alt if picture.alt else ""
    return (
        f"picture {picture.number}, {format_line(picture.where)}: {description}{alternative_text}"
    )


def _reference_blocks(
    references: Sequence[Reference], budget: PromptBudget
) -> tuple[UntrustedBlock, ...]:
    references_budget = PromptBudget(min(budget.remaining, MAX_REFERENCES_LENGTH))
    blocks = tuple(
        UntrustedBlock(
            _reference_heading(reference),
            references_budget.cut(_reference_body(reference), MAX_REFERENCE_LENGTH),
        )
        for reference in references
    )
    budget.remaining -= min(budget.remaining, MAX_REFERENCES_LENGTH) - references_budget.remaining
    return blocks


def _reference_heading(reference: Reference) -> str:
    kind = "pull request" if reference.is_pull_request else "issue"
    author = format_author(reference.author, reference.association)
    details = f"{format_line(reference.relation)}, {format_line(reference.state)}"
    return f"{kind} #{reference.number}, {details}, by {author}"


def _reference_body(reference: Reference) -> str:
    placeholder = "(its text was edited after the request)" if reference.is_late else "(no text)"
    return f"{reference.title}\n\n{reference.body.strip() or placeholder}"


def render_facts(task: Task) -> str:
    """Return labels, type, milestone and assignees, one line each."""
    facts = (
        ("Labels", ", ".join(map(format_line, task.labels))),
        ("Type", format_line(task.issue_type)),
        ("Milestone", format_line(task.milestone)),
        ("Assigned to", ", ".join(map(format_line, task.assignees))),
    )
    return "\n".join(f"{name}: {value}" for name, value in facts if value)


def format_line(text: str) -> str:
    """Return the text on one line, truncated."""
    return truncate_middle(" ".join(text.split()), MAX_LINE_LENGTH)


MAX_CONVERSATION_LENGTH = 6_000
"""Maximum length of the comments of one thread, in characters."""

MAX_CODE_LENGTH = 6_000
"""Maximum length of the code of one thread, in characters."""
MAX_REQUESTED_THREADS_LENGTH = 80_000
"""Maximum length of all threads together, in characters.

Of the threads beyond it only the request is shown.
"""


def describe_requested_threads(
    requested_threads: Sequence[ThreadRequest],
    requester: str,
    dialect: str,
    *,
    takes_answers: bool = True,
) -> RequestedThreads | None:
    """Return the threads as the prompt shows them, None if the request is not about any.

    requester: login of the person who asks.
    dialect: the dialect of the agent.
    takes_answers: the agent's `finish` takes an answer for each of the threads.
    """
    if not requested_threads:
        return None
    remaining = MAX_REQUESTED_THREADS_LENGTH
    threads: list[RequestedThread] = []
    for requested in requested_threads:
        code = truncate_middle(requested.code, MAX_CODE_LENGTH)
        conversation = truncate_middle(_conversation(requested, requester), MAX_CONVERSATION_LENGTH)
        remaining -= len(code) + len(conversation)
        if remaining < 0:
            code = ""
            conversation = truncate_middle(requested.request, MAX_CONVERSATION_LENGTH // 4)
        threads.append(
            RequestedThread(
                heading=f"{requested.label}, {format_thread_heading(requested.thread)}",
                code=code,
                is_earlier_code=requested.is_then,
                conversation=conversation,
            )
        )
    example = a.Finish(
        message="Round half() to the nearest even",
        threads=(
            ThreadAnswer(id="T1", addressed=True, answer="Renamed to `half`, with its callers."),
            ThreadAnswer(id="T2", answer="It is kept: `cli.py` passes None here."),
        ),
    )
    return RequestedThreads(
        threads=tuple(threads),
        labels=tuple(requested.label for requested in requested_threads),
        takes_answers=takes_answers,
        example=write_tags(example) if dialect == "tags" else "",
    )


def _conversation(requested_thread: ThreadRequest, requester: str) -> str:
    conversation = "\n\n".join(
        _comment_text(comment, requester) for comment in requested_thread.thread.comments
    )
    return conversation or requested_thread.request


def _comment_text(comment: AuthoredText, requester: str) -> str:
    requester_note = ", who asks" if comment.author.casefold() == requester.casefold() else ""
    return f"{format_author(comment.author, comment.association)}{requester_note}: {comment.body}"


MAX_BODY_LENGTH = 40_000
"""Maximum length of the issue's description, in characters."""

MAX_COMMENTS_LENGTH = 60_000
"""Maximum length of all comments together, in characters. The oldest and the newest are kept."""

MIN_COMMENTS_LENGTH = 20_000
"""Characters that are available for comments even if the prompt is full."""

MAX_COMMENT_LENGTH = 15_000
"""Maximum length of one comment, in characters."""
MAX_LISTED_OMISSIONS = 40
"""Maximum number of omissions that are listed individually."""

MAX_SUBJECTS = 15
"""Maximum number of commit subjects that are shown."""

MAX_TEMPLATE_LENGTH = 8_000
"""Maximum length of a pull request template that is shown, in characters.

A longer one is not shown at all, because a part of it can't be filled in.
"""

MAX_VALUE_LENGTH = 500
"""Maximum length of a value that is shown on one line, in characters."""
MAX_INSTRUCTION_LENGTH = 10_000
"""Maximum length of the instruction, in characters."""


def render_task(
    task: Task,
    base: str,
    root: str,
    reachable: str = "",
    *,
    expects_answer: bool = False,
    expects_review: bool = False,
    has_fixed_task: bool = False,
    diff: str = "",
    dialect: str = "tools",
    takes_answers: bool = True,
    subjects: Sequence[str] = (),
    template: str = "",
) -> str:
    """Return the task prompt.

    base, root: the commit that the work starts from, and the repository's path in the sandbox.
    reachable: the hosts that programs in the sandbox can reach; "" for none.
    expects_answer, expects_review: the result is an answer instead of a change; it is a review.
    has_fixed_task: the agent does a specific kind of work, described in its system prompt.
    diff, dialect: the diff of the task's pull request, and the dialect of the agent.
    takes_answers: its `finish` takes an answer for each review thread that it is asked about.
    subjects, template: of the repository's newest commits, and for its pull requests.
    """
    requester = task.trigger.actor.login
    asked = describe_requested_threads(task.asked, requester, dialect, takes_answers=takes_answers)
    budget = PromptBudget(MAX_PROMPT_LENGTH - (asked.length if asked else 0))
    # The values share the budget in the order in which they are computed here.
    prompt = TaskPrompt(
        number=task.trigger.number,
        is_pull_request=task.trigger.is_pull_request,
        title=_line(task.title),
        author=task.author and _author_or_requester(task.author, task.association, requester),
        instruction=budget.cut(task.trigger.instruction.strip(), MAX_INSTRUCTION_LENGTH),
        body=budget.cut(task.body, MAX_BODY_LENGTH),
        facts=render_facts(task),
        requester=_line(requester),
        has_failed_check=bool(task.trigger.check),
        requested_threads=asked,
        checks=_check_blocks(task.checks, budget),
        followed=_followed_pull_request(task),
        pull=_fitting_pull_request(task, diff, budget),
        comments=_shown_comments(task.comments, requester, budget),
        references=_reference_blocks(task.references, budget),
        pictures=render_pictures(task.pictures),
        subjects="\n".join(map(_line, subjects[:MAX_SUBJECTS])),
        template=template.strip() if len(template) <= MAX_TEMPLATE_LENGTH else "",
        left_out=tuple(_line(reason) for reason in task.left_out[:MAX_LISTED_OMISSIONS]),
        more_left_out=max(0, len(task.left_out) - MAX_LISTED_OMISSIONS),
        base_branch=_line(task.base_branch),
        base=base,
        root=root,
        reachable=reachable,
        expects_answer=expects_answer,
        expects_review=expects_review,
        has_fixed_task=has_fixed_task,
    )
    return _render_with_marker(prompt, task)


def _render_with_marker(prompt: TaskPrompt, task: Task) -> str:
    # The parts of the task that are left out here must not contain the marker either: the agent
    # may read them later.
    task_json = task.model_dump_json(exclude={"pictures": {"__all__": {"data"}}})
    marker = marker_for(f"{render('agent/task.md.j2', prompt, marker='')}\n{task_json}")
    return render("agent/task.md.j2", prompt, marker=marker).strip()


def _fitting_pull_request(task: Task, diff: str, budget: PromptBudget) -> PullRequestPart | None:
    requested_ids = [requested.thread.id for requested in task.asked]
    return fit_pull_request(build_pull_request_part(task.pull, diff, requested_ids), budget)


def _shown_comments(
    comments: tuple[Comment, ...], requester: str, budget: PromptBudget
) -> tuple[ShownComment, ...]:
    """Return the oldest and the newest comments that fit, in chronological order."""
    max_length = max(MIN_COMMENTS_LENGTH, min(MAX_COMMENTS_LENGTH, budget.remaining))
    max_comment_length = min(
        MAX_COMMENT_LENGTH, int(max_length * HEAD_SHARE) - 100
    )  # 100: the note about the truncation
    truncated = [
        c.model_copy(update={"body": truncate_middle(c.body, max_comment_length)}) for c in comments
    ]
    shown = shorten_thread(truncated, max_length)
    budget.remaining -= sum(len(comment.body) for comment in shown)
    return tuple(
        ShownComment(
            author=_comment_author(comment, requester),
            time=f"{comment.created_at:%Y-%m-%d %H:%M}",
            text=comment.body.strip(),
            skipped=comment.skipped,
        )
        for comment in shown
    )


def _comment_author(comment: Comment, requester: str) -> str:
    if comment.is_ours:
        return "yourself at the end of an earlier run"
    return _author_or_requester(comment.author, comment.association, requester)


def _followed_pull_request(task: Task) -> FollowedPullRequest | None:
    """Return the open pull request that the change is added to, if any."""
    pull_request = task.follows
    if pull_request is None:
        return None
    return FollowedPullRequest(
        number=pull_request.number,
        title=_line(pull_request.title),
        branch=_line(pull_request.branch),
        base_branch=_line(pull_request.base_branch),
    )


def _author_or_requester(author: str, association: str, requester: str) -> str:
    """Return the author with the association.

    The requester is marked as such and is known to be authorized.
    """
    if requester and author.casefold() == requester.casefold():
        association_prefix = f"{_line(association)}, " if association else ""
        return f"{_line(author)} ({association_prefix}who asks)"
    return format_author(author, association) if association else _line(author)


def _line(text: str) -> str:
    return truncate_middle(" ".join(text.split()), MAX_VALUE_LENGTH)
