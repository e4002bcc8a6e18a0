"""Models of a request: who asks for what, where, and as of which moment."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from resolver.models.base import LoggedModel


class TriggerKind(StrEnum):
    """The kind of event that started the work."""

    ISSUE_COMMENT = "issue_comment"
    ISSUE_LABELED = "issue_labeled"
    REVIEW_COMMENT = "review_comment"
    REVIEW_SUBMITTED = "review_submitted"
    REVIEW_REQUESTED = "review_requested"
    ISSUE_OPENED = "issue_opened"
    ISSUE_ASSIGNED = "issue_assigned"
    DISPATCHED = "dispatched"
    CHECK_FAILED = "check_failed"
    COMMAND_LINE = "command_line"
    LOCAL = "local"


class Actor(LoggedModel):
    """The person or bot that made the request."""

    login: str = Field(description="Login of the account.")
    id: int | None = Field(
        default=None, description="GitHub's id of the account; None when it is not known."
    )
    is_bot: bool = Field(
        default=False, description="True for the account of a bot or of a GitHub App."
    )


class Command(StrEnum):
    """The command that a mention gives."""

    FIX = "fix"
    QUESTION = "question"
    REVIEW = "review"
    UPDATE = "update"
    HELP = "help"
    CONTINUE = "continue"
    MESSAGE = "message"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    DENY = "deny"
    PUBLISH = "publish"


class Snapshot(LoggedModel):
    """An issue or pull request as the requester saw it, from the event's own payload."""

    title: str = Field(description="Title of the issue or pull request.")
    body: str = Field(description="Text of the issue or pull request.")
    author: str = Field(default="", description="Login of the person who opened it.")
    labels: tuple[str, ...] | None = Field(
        default=None, description="Names of its labels; None when the event does not contain them."
    )
    milestone: str = Field(default="", description="Title of its milestone.")
    assignees: tuple[str, ...] = Field(default=(), description="Logins of its assignees.")


class Extension(LoggedModel):
    """An extension of the limits of a run, granted by a maintainer."""

    iterations: int = Field(default=0, description="Additional replies of the model.")
    budget: float = Field(default=0.0, description="Additional US dollars.")
    time: float = Field(default=0.0, description="Additional seconds.")


class Trigger(LoggedModel):
    """A request to start work, parsed from an event and not yet authorized.

    Created by `resolver.github.events` and by the command line.
    """

    key: str = Field(
        description="Identifies the request: the same key is the same run, so that a redelivery "
        "does nothing."
    )
    kind: TriggerKind = Field(description="The kind of event that made the request.")
    repository: str = Field(description="OWNER/NAME, or the path of a local checkout.")
    number: int | None = Field(
        default=None, description="Number of the issue or pull request; None for a local checkout."
    )
    is_pull_request: bool = Field(
        default=False, description="True when the request was made on a pull request."
    )
    issue: int | None = Field(
        default=None,
        description="The issue that is worked on, when the request was made on one of Resolver's "
        "pull requests.",
    )
    actor: Actor = Field(description="Who made the request.")
    instruction: str = Field(default="", description="The text that follows the mention.")
    command: Command = Field(default=Command.FIX, description="The command that the request gives.")
    named: str | None = Field(
        default=None,
        description="The name after a slash: an agent or a task skill. The instruction holds its "
        "arguments.",
    )
    extension: Extension = Field(
        default=Extension(), description="What is granted in addition to the limits."
    )
    at: datetime = Field(
        description="When the request was made. Text written or edited later is not used."
    )
    comment_id: int | None = Field(default=None, description="The comment to react to.")
    snapshot: Snapshot | None = Field(
        default=None,
        description="The issue as the requester saw it; None when it has to be read from GitHub.",
    )
    head: str = Field(
        default="", description="Newest commit of the pull request at the time, when it is known."
    )
    base: str | None = Field(
        default=None,
        description="Branch that the pull request was to be merged into, when it is known.",
    )
    review_id: int | None = Field(
        default=None,
        description="The submitted review that the request is part of; all its comments are one "
        "request.",
    )
    check: str = Field(
        default="", description="Name of the failed check, when one started the work."
    )
    branch: str = Field(default="", description="The branch that the failed check ran on.")

    @property
    def in_thread(self) -> bool:
        """True for a question asked in a review thread, which is answered only there."""
        return self.kind is TriggerKind.REVIEW_COMMENT and self.command is Command.QUESTION

    @property
    def subject(self) -> int | None:
        """Number of the issue that is worked on.

        `number` is where the request was made and is answered.
        """
        return self.issue or self.number

    def came_after(self, other: "Trigger") -> bool:
        """Return True if this request was made later than `other`.

        GitHub's times are whole seconds; within one second the ids of the comments decide.
        """
        return (self.at, self.comment_id or 0) > (other.at, other.comment_id or 0)
