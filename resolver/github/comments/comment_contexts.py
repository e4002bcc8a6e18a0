"""The values that the templates of comments and pull requests read, in groups.

A template reads a field by its name, so the groups of `CommentContext` share no field name. Text is
escaped markdown unless a field says otherwise; an empty text means that there is nothing to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from resolver.errors import Cause
from resolver.github.comments.report import CommentPreferences
from resolver.github.comments.verification_text import VerificationTable
from resolver.models.run import DeclineReason, PublicationMethod, PullRequest, UnverifiedReason


@dataclass(frozen=True)
class AgentMessage:
    """The agent's final message.

    sections: heading and text of its parts that are not empty.
    summary_is_cut: True if the message is longer than `summary`.
    """

    summary: str
    summary_is_cut: bool
    sections: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EndingFacts:
    """The end of the run.

    unfinished: True if the agent's work is not complete.
    reason: why the agent's work ended.
    cause: of a failure, if it is a known one.
    declined: why the agent declined the task.
    what: the failure.
    next_step: what a person can do about the failure.
    retry_until: time until which the run is repeated after an outage.
    """

    unfinished: bool
    reason: str
    cause: Cause
    declined: DeclineReason
    what: str
    next_step: str
    retry_until: str


@dataclass(frozen=True)
class FileRow:
    """A changed file. scratch: True if it looks like scratch work."""

    path: str
    status: str
    lines: str
    scratch: bool


@dataclass(frozen=True)
class ExecutedCommand:
    """A command that the agent executed.

    command: the command line as inline code.
    html: the command line, escaped as HTML.
    ended: how it ended.
    output: the end of its output in a code block.
    """

    command: str
    html: str
    ended: str
    output: str


@dataclass(frozen=True)
class WorkSummary:
    """The files that the agent changed and the commands that it executed, the last ones of each."""

    files: tuple[FileRow, ...]
    files_left_out: int
    commands: tuple[ExecutedCommand, ...]
    commands_left_out: int


@dataclass(frozen=True)
class RunFacts:
    """The request, the requester and the cost of the run.

    run: id of the run.
    issue: number of the issue or pull request; None for a local run.
    closes: True if the change closes the issue.
    requester: login as inline code. login: the same as plain text.
    request_method: how the run was requested, if without a text.
    check: name of the failed check that started the run.
    local: True if the run works on a local checkout.
    seen: the commit and the point in time that the run worked from.
    numbers: name and value of each number about the run's cost.
    left_out: what the agent was not shown.
    page: address of the page with the whole trace. log_url: address of the log.
    warnings: facts that the reader should know.
    """

    run: str
    issue: int | None
    closes: bool
    requester: str
    login: str
    instruction: str
    request_method: str
    check: str
    local: bool
    seen: str
    numbers: tuple[tuple[str, str], ...]
    left_out: tuple[str, ...]
    page: str
    log_url: str
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class ReplyCommands:
    """The comments with which people can answer, as inline code.

    continues: True if a comment can continue the run.
    publishable: how the stored change can be published.
    continue_command: continues the run. extend: continues it with an example of additional limits.
    """

    continues: bool
    continue_command: str
    extend: str
    publishable: Literal["", "comment", "folder"]
    publish: str


@dataclass(frozen=True)
class DraftStatus:
    """The status of a pull request that is a draft.

    intended: True if Resolver made it a draft on purpose.
    became_draft: True if it was not a draft before this run.
    """

    intended: bool
    became_draft: bool


@dataclass(frozen=True)
class ConflictRow:
    """The resolution of a conflict. untouched: True if the agent did not edit the file."""

    path: str
    kept: str
    untouched: bool


@dataclass(frozen=True)
class PushedChangeSummary:
    """A change to a pull request that existed before the run.

    branch, commit, url: where the change was pushed. repository: of the branch, if it is a fork.
    base, head: branches of the pull request.
    conflicts: the files that had conflicts. conflict_rows: how the conflicts were resolved.
    why: why the change was not pushed to the pull request's branch.
    patch: the change in a code block, if it could not be pushed.
    """

    branch: str
    repository: str
    commit: str
    url: str
    base: str
    head: str
    conflicts: str
    conflict_rows: tuple[ConflictRow, ...]
    conflicts_left_out: int
    why: str
    patch: str


@dataclass(frozen=True)
class PublicationFacts:
    """The place to which the change was published.

    how: as in `Publication`.
    pull_request: unescaped; templates read its number and URL only.
    unverified: the verification that the change lacks to be ready for review.
    follows: True if the run adds to the work of an earlier one.
    """

    how: PublicationMethod
    pull_request: PullRequest | None
    pull_request_title: str
    branch: str
    commit: str
    unverified: UnverifiedReason
    is_draft: bool
    follows: bool
    pushed: PushedChangeSummary


@dataclass(frozen=True)
class ReviewSummary:
    """A published review, other than its own text.

    findings: numbers of comments and remarks.
    moved: how the pull request's branch moved during the run.
    """

    url: str
    commit: str
    findings: str
    verdict: str
    moved: str


@dataclass(frozen=True)
class ApprovalRequest:
    """An action that waits for approval.

    rule: the operator's rule by which it needs approval; None if it needs approval by its risk.
    block: the action in a code block.
    approve, deny: the comments with which a person decides.
    waits: True if the run is in progress and waits.
    """

    kind: str
    level: str
    rule: str | None
    block: str
    approve: str
    deny: str
    waits: bool


@dataclass(frozen=True)
class Assessments:
    """Statements of the checks and the agent, and what needs a person's decision.

    approval: the action that waits for approval.
    """

    verification: VerificationTable | None
    review: ReviewSummary | None
    approval: ApprovalRequest | None


class CommentContext(NamedTuple):
    """All groups of values that a run's comment is rendered with."""

    message: AgentMessage
    ending: EndingFacts
    work: WorkSummary
    run: RunFacts
    preferences: CommentPreferences
    reply: ReplyCommands
    publication: PublicationFacts
    assessments: Assessments


@dataclass(frozen=True)
class BodyRemark:
    """A comment of a review that is in the review's body. place: its file and lines, as a link."""

    place: str
    text: str
    severity: Literal["high", "medium", "low"]


@dataclass(frozen=True)
class ReviewBody:
    """The body of a review.

    marker: hidden text by which Resolver recognizes the review.
    verification, remaining: what the agent ran, and what it did not check.
    remarks: comments that are not on lines of the diff; more_remarks: number of further ones.
    refused: number of these for whose lines GitHub did not accept a comment.
    repeated: number of findings that open threads have already.
    left_out: number of findings that exceed the maximum.
    """

    marker: str
    summary: str
    remarks: tuple[BodyRemark, ...]
    more_remarks: int
    refused: int
    verification: str
    remaining: str
    repeated: int
    left_out: int
    commit: str


@dataclass(frozen=True)
class PullRequestSections:
    """The parts of a pull request's body that a comment does not have.

    statements: text of the sections of the agent's message, by heading.
    start: files to read first. careful: files that need careful review, with the reason.
    size: number of changed files and lines.
    """

    statements: Mapping[str, str]
    start: tuple[str, ...]
    careful: tuple[str, ...]
    size: str
