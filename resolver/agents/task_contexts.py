"""The values that the template of the task prompt reads.

They contain text of other people and output of tools, truncated but otherwise unchanged: the
template encloses it in lines with a marker.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class UntrustedBlock:
    """A text that is enclosed in lines with the marker. heading: what the text is."""

    heading: str
    text: str


@dataclass(frozen=True)
class ShownComment:
    """A comment on the issue or pull request.

    time: when it was written.
    skipped: number of comments before it that are not shown.
    """

    author: str
    time: str
    text: str
    skipped: int


@dataclass(frozen=True)
class IssueToClose:
    """An issue that the pull request closes."""

    number: int
    author: str
    title: str
    body: str


@dataclass(frozen=True)
class PullRequestPart:
    """The part of the prompt on the pull request that the task is about.

    is_trusted: True if the author may have write access.
    base: the newest commit of the base branch.
    conflicts, conflict_notes: paths of files in conflict, and git's messages about them.
    reviews, threads: texts of earlier reviews and of conversations on lines.
    threads_left_out: number of conversations that are not shown.
    """

    author: str
    association: str
    is_trusted: bool
    head_branch: str
    head_repository: str
    is_fork: bool
    is_draft: bool
    base_branch: str
    merge_base: str
    base: str
    conflicts: str
    conflict_notes: str
    commits: str
    closes: tuple[IssueToClose, ...]
    reviews: tuple[UntrustedBlock, ...]
    threads: tuple[UntrustedBlock, ...]
    threads_left_out: int
    diff: str


@dataclass(frozen=True)
class RequestedThread:
    """A review thread that the request is about.

    code: the lines that it is about; "" if they are not shown.
    is_earlier_code: True if `code` is from the time at which the thread was started, because the
    lines have changed since.
    """

    heading: str
    code: str
    is_earlier_code: bool
    conversation: str


@dataclass(frozen=True)
class RequestedThreads:
    """All review threads that the request is about.

    takes_answers: True if the agent's `finish` takes an answer for each of them.
    example: a `finish` with answers, as tags; "" for agents that call tools.
    """

    threads: tuple[RequestedThread, ...]
    labels: tuple[str, ...]
    takes_answers: bool
    example: str

    @property
    def length(self) -> int:
        """Number of characters of their texts."""
        texts = sum(len(t.heading) + len(t.code) + len(t.conversation) for t in self.threads)
        return texts + len(self.example)


@dataclass(frozen=True)
class FollowedPullRequest:
    """The open pull request to which the change is added."""

    number: int
    title: str
    branch: str
    base_branch: str


@dataclass(frozen=True)
class TaskPrompt:
    """The whole task.

    number: of the issue or pull request; None for a local run.
    facts: labels, type, milestone and assignees.
    requester: who asks; the login.
    has_failed_check: True if a failed check started the run.
    subjects: of the repository's newest commits, one on each line.
    template: the pull request template that the agent fills in; "" for none.
    left_out: texts that the agent is deliberately not shown; more_left_out: number of further ones.
    base: the commit that the work starts from. root: the repository's path in the sandbox.
    reachable: the hosts that programs in the sandbox can reach; "" for none.
    expects_answer, expects_review, has_fixed_task: as in `render_task`.
    """

    number: int | None
    is_pull_request: bool
    title: str
    author: str
    body: str
    facts: str
    comments: tuple[ShownComment, ...]
    requester: str
    instruction: str
    has_failed_check: bool
    requested_threads: RequestedThreads | None
    followed: FollowedPullRequest | None
    pull: PullRequestPart | None
    checks: tuple[UntrustedBlock, ...]
    references: tuple[UntrustedBlock, ...]
    pictures: str
    subjects: str
    template: str
    left_out: tuple[str, ...]
    more_left_out: int
    base_branch: str
    base: str
    root: str
    reachable: str
    expects_answer: bool
    expects_review: bool
    has_fixed_task: bool
