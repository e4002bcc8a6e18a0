"""The nouns of a request: who asks for what, where, and of which moment."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from resolver.models.base import LoggedModel


class TriggerKind(StrEnum):
    """What started the work."""

    ISSUE_COMMENT = "issue_comment"
    ISSUE_LABELED = "issue_labeled"
    REVIEW_COMMENT = "review_comment"
    REVIEW_SUBMITTED = "review_submitted"
    REVIEW_REQUESTED = "review_requested"
    ISSUE_OPENED = "issue_opened"
    ISSUE_ASSIGNED = "issue_assigned"
    DISPATCHED = "dispatched"
    CHECK_FAILED = "check_failed"
    BOX_TICKED = "box_ticked"
    COMMAND_LINE = "command_line"
    LOCAL = "local"


class Actor(LoggedModel):
    """The person (or bot) who asked. `id` is the forge's number, None when not known."""

    login: str = Field(description="Name on the forge.")
    id: int | None = Field(default=None, description="The forge's number; None when not known.")
    is_bot: bool = Field(default=False, description="True when no person stands behind it.")


class Command(StrEnum):
    """What a mention asks for."""

    FIX = "fix"
    QUESTION = "question"
    REVIEW = "review"
    UPDATE = "update"
    HELP = "help"
    CONTINUE = "continue"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    DENY = "deny"
    PUBLISH = "publish"


class Snapshot(LoggedModel):
    """The issue as the requester saw it, from the event's own payload."""

    title: str = Field(description="The issue's title.")
    body: str = Field(description="The issue's text.")
    author: str = Field(default="", description="Login of who opened it.")
    labels: tuple[str, ...] | None = Field(
        default=None, description="Its labels; None where the event does not say what it wears."
    )
    milestone: str = Field(default="", description="Title of its milestone.")
    assignees: tuple[str, ...] = Field(default=(), description="Logins of who it is assigned to.")


class Extension(LoggedModel):
    """What a maintainer grants on top of a run's limits: replies, US dollars, seconds."""

    iterations: int = Field(default=0, description="Replies of the model.")
    budget: float = Field(default=0.0, description="US dollars.")
    time: float = Field(default=0.0, description="Seconds.")


class Ticked(LoggedModel):
    """A box that a person has ticked: on the dashboard with this number, for this run."""

    dashboard: int = Field(description="Number of the issue that is the dashboard.")
    run: str = Field(description="Id of the run that the box stands for.")


class Trigger(LoggedModel):
    """A wish to start work, parsed from an event and not yet allowed.

    Made in `resolver.github.events` (and by the command line), read by `resolver.github`.
    """

    key: str = Field(description="Same key, same run: what makes a redelivery a no-op.")
    kind: TriggerKind = Field(description="By which way it came.")
    repository: str = Field(description="OWNER/NAME, or the path of a local checkout.")
    number: int | None = Field(default=None, description="Issue or PR number; None when local.")
    is_pull_request: bool = Field(
        default=False, description="True when it was asked for on a pull request."
    )
    issue: int | None = Field(
        default=None,
        description="The issue it is about, where it was asked for on a pull request of ours.",
    )
    actor: Actor = Field(description="Who asked.")
    instruction: str = Field(default="", description="The words that follow the mention.")
    command: Command = Field(default=Command.FIX, description="What is asked for.")
    named: str = Field(
        default="",
        description="Name after a slash: an agent or a task skill; its arguments are the words.",
    )
    extension: Extension = Field(default=Extension(), description="What is granted along with it.")
    at: datetime = Field(description="Text written or edited after this moment is not used.")
    comment_id: int | None = Field(default=None, description="The comment to react to.")
    snapshot: Snapshot | None = Field(
        default=None, description="The words at the time; None when the forge is asked for them."
    )
    head: str = Field(
        default="", description="Newest commit of the pull request at the time, where it is known."
    )
    base: str = Field(
        default="",
        description="Branch that the pull request was to be merged into, where it is known.",
    )
    review_id: int | None = Field(
        default=None, description="The review whose words and line comments are one request."
    )
    check: str = Field(default="", description="Name of the check that failed, where one did.")
    branch: str = Field(default="", description="The branch that a failed check has looked at.")

    ticked: Ticked | None = Field(
        default=None, description="The box of the dashboard that was ticked, where one was."
    )

    @property
    def in_thread(self) -> bool:
        """Whether it is a question asked in one conversation on lines: it is answered there, and
        nowhere else."""
        return self.kind is TriggerKind.REVIEW_COMMENT and self.command is Command.QUESTION

    @property
    def subject(self) -> int | None:
        """Number of the issue that is worked on; `number` is where it was asked and is told."""
        return self.issue or self.number

    def came_after(self, other: "Trigger") -> bool:
        """Whether this was asked later than `other`. GitHub's times are whole seconds; within one
        the ids of comments say what came first."""
        return (self.at, self.comment_id or 0) > (other.at, other.comment_id or 0)
