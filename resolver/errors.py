"""All errors that a person can meet, in one hierarchy with their exit codes.

    ResolverError                 1
    +-- UsageError                2   the command line or the settings are wrong
    |   +-- FrontmatterError      2   the YAML head of a skill's or an agent's file is wrong
    +-- Refused                   5   a permission or a policy forbids it
    |   +-- NotAllowed            5   the person may not start work
    |   +-- PolicyViolation       5   the change touches something that must not be published
    |   +-- QuotaReached          5   the quota of a conversation, a user or a repository is used up
    +-- LimitReached              4   the run's iterations, budget or time are used up
    +-- WorkspaceError            1   git on the host failed
    |   +-- BranchTaken           1   the branch exists with other content
    |   +-- PushRefused           1   the server refuses the push
    +-- ForgeError                1   GitHub can't be reached, or refused a request
    +-- SandboxError              1   the sandbox could not be started or was lost
    |   +-- SandboxLost           1   the sandbox ended, and can be rebuilt from the log
    |   +-- NestedTooDeeply       1   folders are nested so deeply that their size is unknown
    |   +-- SetupFailed           1   the set-up failed on files for which it had to succeed
    |   +-- ServiceUnavailable    1   a service that a check needs could not be started
    +-- ModelError                1   the model endpoint failed
    |   +-- ModelAuthError        1   the key is missing or not accepted
    |   +-- ContextWindowExceeded 1   the messages don't fit into the context window
    |   +-- ImageRejected         1   the endpoint could not process an image
    |   +-- ReplayExhausted       1   the recording has no further reply
    +-- LeaseLost                 1   another server process may have taken over the run
    +-- LogError                  1   an event log can't be read or written
    |   +-- UnstorableEvent       1   an event can't be stored in a log
    RunStopped                    1   a person or a signal ended the run

The number is the exit code of the command line. Each error says what happened and what to do next;
`resolver.cli.main` prints both, and a comment on GitHub shows both.
"""

from typing import ClassVar, Literal

Cause = Literal[
    # Causes reported by GitHub; see resolver.models.known_failures.
    "archived", "sso", "moved", "locked", "issues_off", "pull_requests_off",
    "base_gone", "proposal", "workflow_files", "secret_scanning", "branch_protected", "large_files",
    "push_rule",
    "token", "push_permission", "permission", "not_found", "rate_limit", "forge_down",
    # Causes reported by a model's provider.
    "provider_down", "model_key", "no_credit",
    # Mistakes in the operator's configuration.
    "set_up",
]  # fmt: skip
"""The cause of an error, if it is one that a person can do something about."""

SetupFailureReason = Literal["setup_failed", "setup_timeout", "shared_files"]
"""Why the set-up did not succeed: it failed, it took too long, or it was not run, because what it
installs would reach the sandboxes of other commits."""


class ResolverError(Exception):
    """Base class of all errors.

    Attributes:
        what: What was wrong and where, in one sentence.
        next_step: What the reader can do about it, in one sentence; None for nothing.
        cause: The known cause of the error, if it has one.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, next_step: str | None = None, cause: Cause | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step
        self.cause = cause
        self.is_silent = False
        """True when no comment reports the error, because one already did today."""


class UsageError(ResolverError):
    """The command line, the environment or a settings file is wrong."""

    exit_code = 2


class FrontmatterError(UsageError):
    """The YAML head of a Markdown file (a skill or an agent) can't be read or has a wrong field.

    The message begins with the path and the line.

    Args:
        path: The file's path from the repository's root.
        line: Line in that file, counted from 1.
        what: What is wrong, without path and line.
    """

    def __init__(self, path: str, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}", "Correct the lines between the two `---`.")
        self.path = path
        self.line = line


class Refused(ResolverError):
    """The person has no permission, or a policy forbids the action."""

    exit_code = 5


class NotAllowed(Refused):
    """The requester may not start work. A setting decides whether a comment tells them so."""


class PolicyViolation(Refused):
    """The change touches something that must not be published. The patch is kept.

    `settings_decide` is True when other settings would allow the change.
    """

    def __init__(
        self, what: str, next_step: str | None = None, *, settings_decide: bool = False
    ) -> None:
        super().__init__(what, next_step)
        self.settings_decide = settings_decide


class QuotaReached(Refused):
    """A daily quota is used up, or bots kept answering each other.

    The quotas are those of a conversation, a user and a repository.
    """


class LimitReached(ResolverError):
    """A limit of the run was reached: `limit` is "iterations", "budget" or "time"."""

    exit_code = 4

    def __init__(self, limit: str, what: str, next_step: str | None = None) -> None:
        super().__init__(what, next_step)
        self.limit = limit


class WorkspaceError(ResolverError):
    """Git on the host failed."""


class BranchTaken(WorkspaceError):
    """A branch of that name exists with other content. The caller chooses another name."""


class PushRefused(WorkspaceError):
    """The server refuses a push, and would refuse it again.

    Attributes:
        why: The reason, worded as the end of a sentence; None if it is unknown.
        branch_only: True when only this branch refuses the push, so that another one may accept it.
    """

    def __init__(
        self,
        what: str,
        next_step: str | None = None,
        why: str | None = None,
        *,
        branch_only: bool = False,
    ) -> None:
        super().__init__(what, next_step)
        self.why = why
        self.branch_only = branch_only


class ForgeError(ResolverError):
    """GitHub could not be reached, or refused a request."""


class SandboxError(ResolverError):
    """The sandbox could not be started, or was lost during the run."""


class SandboxLost(SandboxError):
    """The sandbox ended by itself, was killed or hangs. A new one can be rebuilt from the log."""


class NestedTooDeeply(SandboxError):
    """The folders of a sandbox are nested so deeply that their size can't be determined."""


class SetupFailed(SandboxError):
    """The set-up failed on files for which it had to succeed.

    Args:
        paths: The changed files because of which it had to run.
        output: The end of its output.
        why: Why it failed.
    """

    def __init__(self, paths: tuple[str, ...], output: str, why: SetupFailureReason) -> None:
        super().__init__("the set-up failed with the change", "see the end of the set-up's output")
        self.paths = paths
        self.output = output
        self.why: SetupFailureReason = why


class ServiceUnavailable(SandboxError):
    """A service that a check needs could not be started alongside the sandbox."""


class ModelError(ResolverError):
    """The model endpoint failed after all retries."""


class ModelAuthError(ModelError):
    """The model endpoint did not accept the key."""


class ContextWindowExceeded(ModelError):
    """The messages don't fit into the model's context window; they have to be condensed.

    tokens: size of the request, if the endpoint named it or it was estimated before the call.
    max_tokens: size that the endpoint accepts, if it is known.
    """

    tokens: int | None = None
    max_tokens: int | None = None


class ImageRejected(ModelError):
    """The model endpoint could not process an image of the conversation."""


class ReplayExhausted(ModelError):
    """A replayed run asked for more replies than were recorded."""


class LeaseLost(ResolverError):
    """This process may not write any more, because another one may have taken over its runs.

    It is silent: nobody is notified and nothing is recorded, since the other process does that.
    """

    def __init__(self, what: str) -> None:
        super().__init__(what, "nothing: the run continues in another process")
        self.is_silent = True


class LogError(ResolverError):
    """An event log can't be read or written."""


class UnstorableEvent(LogError):
    """An event is too large, or contains something that JSON or UTF-8 can't represent."""


class StepInterrupted(BaseException):
    """What the agent was waiting for was ended. The next step finds out why: a stop, or a limit.

    It is not an Exception for the same reason as RunStopped.
    """


class RunStopped(BaseException):
    """A person or a signal ended the run.

    Like KeyboardInterrupt, it is not an Exception: it can be raised anywhere, and a library that
    converts every Exception into its own, or retries, must not take it for a failure.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, next_step: str | None = None, *, withdrawn: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step
        self.withdrawn = withdrawn
        """True if the person who asked for the run took the request back."""
