"""Implements `Forge` for a checkout on this machine.

The issue is a file, and the pull request is only rendered.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from resolver.errors import UsageError
from resolver.github.client.snapshot import SnapshotQuery
from resolver.github.comments import pull_request_text
from resolver.github.comments.progress import RunProgress
from resolver.github.comments.report import Report
from resolver.github.comments.run_comments import AuthoredComment
from resolver.github.text.hidden_text import strip_hidden
from resolver.github.text.markdown import shorten_text
from resolver.models.pull_request import (
    AnsweredThreads,
    PublishedReview,
    PullRequestSource,
    Review,
    ThreadReply,
    describe_review,
)
from resolver.models.request_status import RequestStatus
from resolver.models.run import Actor, Publication, PullRequest, Task, Trigger, TriggerKind

MAX_ISSUE_FILE = 1_000_000
"""Maximum size of an issue file in bytes; a larger file is probably a mistake."""


def local_trigger(repository: Path, *, run: str, login: str, at: datetime) -> Trigger:
    """Return the trigger for work on a checkout. Its key is the run's id: every request is new."""
    return Trigger(
        key=f"local:{run}",
        kind=TriggerKind.LOCAL,
        repository=str(repository),
        actor=Actor(login=login),
        at=at,
    )


def read_issue_file(path: Path, trigger: Trigger, base_branch: str) -> Task:
    """Return the task from an issue file.

    The first line that is not empty is the title (`# Title` or plain text), the rest is the body.
    Raises UsageError if the file cannot be read or has no title.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", "give an issue file with --issue") from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder", "give a file with --issue") from None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", "check the file") from None
    return parse_issue(decode_issue(data, str(path)), str(path), trigger, base_branch)


def decode_issue(data: bytes, name: str) -> str:
    """Return the text of an issue. name: its file, for messages. Raises UsageError."""
    if len(data) > MAX_ISSUE_FILE:
        raise UsageError(f"{name} is larger than {MAX_ISSUE_FILE:,} bytes", "shorten it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text", "write the issue as text") from None
    if "\0" in text:
        raise UsageError(f"{name} is a binary file", "write the issue as text")
    return text


def parse_issue(text: str, name: str, trigger: Trigger, base_branch: str) -> Task:
    """Return the task from the text of an issue. Raises UsageError if it has no title."""
    cleaned = strip_hidden(text)
    lines = cleaned.text.strip().splitlines()
    title = lines[0].lstrip("#").strip() if lines else ""
    if not title:
        raise UsageError(f"{name} has no title", "write the issue's title on its first line")
    return Task(
        trigger=trigger,
        title=shorten_text(title, 256),
        body="\n".join(lines[1:]).strip(),
        author=trigger.actor.login,
        left_out=(f"hidden in the issue: {', '.join(cleaned.removed)}",) if cleaned.removed else (),
        base_branch=base_branch,
        source=trigger.repository,
    )


@dataclass(frozen=True)
class LocalForge:
    """A `Forge` that sends nothing.

    `branch_names` are the branches of the checkout, so that a new one gets another name.
    """

    issue_file: Path
    base_branch: str
    branch_names: Collection[str] = ()

    def whoami(self) -> str:
        return ""

    def account(self) -> Actor:
        return Actor(login="")

    def signer(self) -> None:
        return None

    def permission(self, login: str) -> str:  # noqa: ARG002 - anyone who can edit the files may
        return "write"

    def is_member(self, team: str, login: str) -> bool:  # noqa: ARG002 - as above
        return True

    def operator_may_push(self) -> bool:
        return True

    def acknowledge(self, trigger: Trigger) -> None:
        """Do nothing: the terminal shows the run."""

    def read(self, trigger: Trigger) -> Task:
        return read_issue_file(self.issue_file, trigger, self.base_branch)

    def request_status(self, trigger: Trigger) -> RequestStatus:  # noqa: ARG002
        return RequestStatus()

    def find_publication(self, trigger: Trigger) -> Publication | None:  # noqa: ARG002
        return None

    def branches(self, prefix: str) -> set[str]:
        return {name for name in self.branch_names if name.startswith(prefix)}

    def branches_at_start(self, prefix: str) -> set[str]:
        return self.branches(prefix)

    def is_public(self) -> bool | None:
        return None

    def snapshot(self, query: SnapshotQuery) -> None:  # noqa: ARG002 - git reads it as fast
        return None

    def discard_abandoned(self, prefix: str, run: str) -> None:
        """Do nothing: every new run has a new key here, so no earlier branch is in its way."""

    def open_head(self, branch: str) -> str | None:  # noqa: ARG002 - there are no pull requests
        return None

    def heads(self) -> "LocalForge":
        return self

    def source(self, number: int) -> PullRequestSource:
        raise UsageError(
            f"a checkout has no pull request #{number}", "name one on GitHub: OWNER/NAME#N"
        )

    def of_issue(self, trigger: Trigger, prefix: str) -> None:
        """Return None: there are no pull requests."""

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> None:
        """Return None: there are no pull requests to push to."""

    def open_pull_request(
        self,
        report: Report,
        branch: str,  # noqa: ARG002
        is_new: bool = False,  # noqa: ARG002
    ) -> PullRequest:
        return PullRequest(
            title=pull_request_text.pull_request_title(report),
            body=pull_request_text.pull_request_body(report),
            draft=report.draft,
        )

    def publish_check_run(self, report: Report, commit: str) -> None:
        """Do nothing: a checkout has no check runs."""

    def publish_review(self, report: Report, review: Review) -> PublishedReview:  # noqa: ARG002
        return describe_review(review)

    def answer_threads(
        self,
        report: Report,  # noqa: ARG002 - there are no review threads
        replies: Sequence[ThreadReply],  # noqa: ARG002
        commit: str,  # noqa: ARG002
    ) -> AnsweredThreads:
        return AnsweredThreads()

    def has_active_run(self, trigger: Trigger) -> bool:  # noqa: ARG002 - there are no comments
        return False

    def progress_writer(self) -> "LocalForge":
        return self

    def write_progress(self, progress: RunProgress, comment_id: int | None) -> int | None:  # noqa: ARG002
        return None  # the terminal shows it

    def close_killed_runs(self, progress: RunProgress) -> None:
        """Do nothing: there are no comments of runs."""

    def recent_comments(self, number: int) -> Sequence[AuthoredComment]:  # noqa: ARG002
        return ()

    def ask(self, report: Report) -> datetime | None:  # noqa: ARG002 - there is no issue to ask on
        return None

    def comment(
        self,
        report: Report,  # noqa: ARG002 - the terminal shows it
        seconds: float | None = None,  # noqa: ARG002
    ) -> str:
        return ""
