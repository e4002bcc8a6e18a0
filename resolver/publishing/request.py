"""The input of publishing: the change, its task, and the report that people get."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from resolver.config.settings import Settings
from resolver.events.run_log import RunLog
from resolver.git.git import Credential
from resolver.github.comments.report import Report
from resolver.models.run import Continuation, Patch, Publication, Task, Trigger, Unverified


def is_draft(setting: str, missing: Unverified) -> bool:
    """Return True if the pull request is to be a draft: as the setting says, or for "auto" if
    something is missing."""
    return setting == "always" if setting != "auto" else missing != ""


@dataclass(frozen=True)
class PublishRequest:
    """A change to publish.

    run: id of the run.
    committed_at: date of the commits. It is the same in each attempt of a run, so that each attempt
        makes the same commits.
    credential: called for each use, because a token may expire.
    report: the report as it is before anything is published.
    continuation: the earlier run that this one continues, None if there is none.
    log: where the branch name is written before the push, None if no agent has worked.
    notices: what the reader of the pull request should know about how the change was published.
        Publishing adds to it.
    """

    run: str
    trigger: Trigger
    task: Task
    patch: Patch
    settings: Settings
    committed_at: datetime
    credential: Callable[[], Credential | None]
    report: Report
    continuation: Continuation | None = None
    log: RunLog | None = None
    notices: list[str] = field(default_factory=list)

    def report_with(self, publication: Publication) -> Report:
        """Return the report of the run with what has been published so far."""
        report = self.report
        untouched = any(conflict.untouched for conflict in publication.conflicts)
        missing: Unverified = "untouched" if untouched else report.unverified
        commit = publication.commit or self.patch.commit
        return report.model_copy(
            update={
                "patch": self.patch.model_copy(update={"commit": commit}),
                "branch": publication.branch,
                "pull_request": publication.pull_request,
                "review": publication.review,
                "how": publication.how,
                "publication": publication,
                "unverified": missing,
                "draft": is_draft(self.settings.draft, missing),
                "warnings": (*report.warnings, *self.notices),
            }
        )


@dataclass(frozen=True)
class PushedChange:
    """A change that was pushed, or kept as a patch.

    propose_onto: the branch to open a pull request against, "" for none.
    """

    publication: Publication
    propose_onto: str = ""
