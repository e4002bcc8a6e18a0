"""What publishing is given: the change, the task it is for, and what people are told about it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from resolver.config.settings import Settings
from resolver.events.run_log import RunLog
from resolver.git.git import Credential
from resolver.github.comments.report import Report
from resolver.models.run import Continuation, Patch, Publication, Task, Trigger


@dataclass(frozen=True)
class PublishRequest:
    """A change to publish.

    committed_at: the time of its commits; the same in each attempt of a run, so that each makes the
    same commits. credential: asked for anew at each use, because a token may expire. log: where the
    branch is written before it is pushed; None where no agent has worked. report: as it stands
    before anything is published.
    notices: what the reader of the pull request should know of how the change was published; added
    to while publishing goes on, and part of what it returns.
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
        """Return the report of the run with what is public by now."""
        report, setting = self.report, self.settings.draft
        untouched = any(conflict.untouched for conflict in publication.conflicts)
        missing = "untouched" if untouched else report.unverified
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
                "draft": missing != "" if setting == "auto" else setting == "always",
                "warnings": (*report.warnings, *self.notices),
            }
        )


@dataclass(frozen=True)
class PushedChange:
    """A change that is pushed, or kept as a patch.

    propose_onto: the branch that a pull request is to be opened for, "" where none is to be.
    """

    publication: Publication
    propose_onto: str = ""
