"""A forge in memory, for tests of what a run does with one.

It keeps what is written to it: pull requests by branch, reviews and comments by the key of their
request. `tests/github/test_forge_contract.py` compares it with GitHub.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from resolver.errors import UsageError
from resolver.github.comments.report import Report
from resolver.github.local_issue import read_issue_file
from resolver.models.pull_request import (
    AnsweredThreads,
    PublishedReview,
    PullRequestSource,
    Review,
    ThreadReply,
    describe_review,
)
from resolver.models.request_status import RequestStatus
from resolver.models.run import Actor, Publication, PullRequest, Task, Trigger
from resolver.publishing.pull_request import render_pull_request

PAGE = "https://github.com/octo/demo"


@dataclass
class MemoryForge:
    """issue_file: the text of the issue that every request is about. tips: commits by branch.
    level: everybody's permission."""

    issue_file: Path = Path("issue.md")
    base_branch: str = "main"
    tips: dict[str, str] = field(default_factory=dict)
    level: str = "write"
    login: str = "resolver[bot]"
    pulls: dict[str, PullRequest] = field(default_factory=dict)
    published: dict[str, Publication] = field(default_factory=dict)
    reviews: dict[str, PublishedReview] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    acknowledged: list[Trigger] = field(default_factory=list)

    def whoami(self) -> str:
        return self.login

    def account(self) -> Actor:
        return Actor(login=self.login)

    def signer(self) -> Any:
        return None

    def permission(self, login: str) -> str:
        return self.level

    def is_member(self, team: str, login: str) -> bool:
        return False

    def operator_may_push(self) -> bool:
        return self.level == "write"

    def snapshot(self, ref: str, path: str, ref_prefix: str, siblings: Any) -> Any:
        return None

    def acknowledge(self, trigger: Trigger) -> None:
        self.acknowledged.append(trigger)

    def read(self, trigger: Trigger) -> Task:
        return read_issue_file(self.issue_file, trigger, self.base_branch)

    def request_status(self, trigger: Trigger) -> RequestStatus:
        return RequestStatus()

    def request_status_at_start(self, trigger: Trigger) -> RequestStatus:
        return self.request_status(trigger)

    def find_publication(self, trigger: Trigger) -> Publication | None:
        found = self.published.get(trigger.key)
        return found.model_copy(update={"repeated": True}) if found else None

    def branches(self, prefix: str) -> set[str]:
        return {name for name in self.tips if name.startswith(prefix)}

    def open_from(self, branch: str) -> int | None:
        return self.pulls[branch].number if branch in self.pulls else None

    def heads(self) -> "MemoryForge":
        return self

    def source(self, number: int) -> PullRequestSource:
        raise UsageError(f"there is no pull request #{number}")

    def of_issue(self, trigger: Trigger, prefix: str) -> Any:
        return None

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Publication | None:
        return None

    def open_pull_request(self, report: Report, branch: str, is_new: bool = False) -> PullRequest:
        if branch not in self.pulls:
            number = len(self.pulls) + 101
            where = {"number": number, "url": f"{PAGE}/pull/{number}"}
            pull = self.pulls[branch] = render_pull_request(report).model_copy(update=where)
            self.published[report.trigger.key] = Publication(
                branch=branch, commit=self.tips.get(branch), pull_request=pull
            )
        return self.pulls[branch]

    def publish_review(self, report: Report, review: Review) -> PublishedReview:
        return self.reviews.setdefault(report.trigger.key, describe_review(review))

    def answer_threads(
        self, report: Report, replies: Sequence[ThreadReply], commit: str | None
    ) -> AnsweredThreads:
        return AnsweredThreads(url=f"{PAGE}/pull/7#discussion_r1")

    def has_active_run(self, trigger: Trigger) -> bool:
        return False

    def progress_writer(self) -> "MemoryForge":
        return self

    def write_progress(self, progress: Any, comment_id: int | None) -> int | None:
        return None

    def close_killed_runs(self, *_: Any) -> int:
        """Do nothing: no run is killed here."""
        return 0

    def recent_comments(self, number: int) -> Sequence[Any]:
        return ()

    def ask(self, report: Report) -> datetime | None:
        return report.trigger.at

    def comment(self, report: Report, seconds: float | None = None) -> str:
        """Keep the report, in place of the one that the run's comment had before."""
        keys = [earlier.trigger.key for earlier in self.reports]
        place = keys.index(report.trigger.key) if report.trigger.key in keys else len(keys)
        self.reports[place : place + 1] = [report]
        url = f"{PAGE}/issues/{report.trigger.number}#issuecomment-{place + 1}"
        earlier = self.published.get(report.trigger.key, Publication())
        self.published[report.trigger.key] = earlier.model_copy(update={"comment_url": url})
        return url
