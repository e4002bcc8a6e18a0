"""Every error a person can meet, in one tree.

    ResolverError                 1
    +-- UsageError                2   the command line or the settings are wrong
    |   +-- FrontmatterError      2   the head of a skill's or an agent's file is wrong
    +-- Refused                   5   permission or policy says no
    |   +-- NotAllowed            5   the person may not start work
    |   +-- PolicyViolation       5   the change touches what it may not touch
    |   +-- OverBudget            5   the money of the month or the day is used up
    |   +-- CeilingReached        5   the runs or the money of a thread, a user or a day are used up
    +-- LimitReached              4   iterations, money or time are used up
    +-- WorkspaceError            1   git on the host failed
    |   +-- BranchTaken           1   the branch exists with something else on it
    |   +-- PushRefused           1   the server does not take what is pushed
    +-- ForgeError                1   GitHub (or another forge) failed or said no
    +-- SandboxError              1   the sandbox could not be started or was lost
    +-- ModelError                1   the model endpoint failed
    |   +-- ModelAuthError        1   the key is missing or not accepted
    |   +-- ContextWindowExceeded 1   the conversation is too long: condense it
    |   +-- ReplayExhausted       1   the recording has no further reply
    +-- LogError                  1   an event log can't be read or written
    |   +-- LogTooNew             1   a newer Resolver wrote it in a way this one can't understand
    |   +-- Unstorable            1   an event that no log can hold as it is
    Stopped                       1   a person or a signal ended the run

The number is the exit code of the command line. Each error says what happened
and what to do next; `resolver.cli.main` prints both, the forge comment shows both.
"""

from typing import ClassVar, Literal

Cause = Literal[
    "",
    # of a forge, see resolver.models.known_failures
    "archived", "disabled", "sso", "moved", "locked", "issues_off", "pull_requests_off",
    "workflow_files", "secret_scanning", "branch_protected", "large_files", "push_rule",
    "token", "push_permission", "permission", "not_found", "rate_limit", "forge_down",
    # of a model's provider
    "provider_down", "model_key", "no_credit",
    # of what the operator has set
    "set_up",
]  # fmt: skip
"""What a person can do something about, where an error has one such cause."""


class ResolverError(Exception):
    """Root of the tree.

    what: one sentence that says what was wrong and where.
    next_step: one sentence that says what the reader can do about it.
    cause: the one of those that people know, where it is one.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, next_step: str = "", cause: Cause = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step
        self.cause = cause
        self.is_silent = False
        """True when the conversation is not told of it: it was today already, or the operator wants
        it so."""


class UsageError(ResolverError):
    """The command line, the environment or a settings file is wrong."""

    exit_code = 2


class FrontmatterError(UsageError):
    """The YAML head of a Markdown file (a skill, an agent) can't be read or has a wrong field.

    path: the file, from the repository's root. line: from 1, in that file. what: without the two;
    the message begins with them.
    """

    def __init__(self, path: str, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}", "Correct the lines between the two `---`.")
        self.path = path
        self.line = line


class Refused(ResolverError):
    """Somebody without the right asked, or a policy forbids the action."""

    exit_code = 5


class NotAllowed(Refused):
    """The person who asked may not start work; whether they are told is a setting."""


class PolicyViolation(Refused):
    """The change touches something that must not be published; the patch is kept.

    settings_decide: whether other settings would let it through.
    """

    def __init__(self, what: str, next_step: str = "", *, settings_decide: bool = False) -> None:
        super().__init__(what, next_step)
        self.settings_decide = settings_decide


class OverBudget(Refused):
    """What the runs of a month or a day may cost together is used up before this one began."""


class QuotaReached(Refused):
    """A thread, a person or a repository has had what it may have in a day, or bots go round."""


class LimitReached(ResolverError):
    """A limit of the run was reached.

    limit: "iterations", "budget" or "time".
    """

    exit_code = 4

    def __init__(self, limit: str, what: str, next_step: str = "") -> None:
        super().__init__(what, next_step)
        self.limit = limit


class WorkspaceError(ResolverError):
    """Git on the host failed."""


class BranchTaken(WorkspaceError):
    """A branch of that name exists and holds something else; the caller picks another name."""


class PushRefused(WorkspaceError):
    """The server does not take a push, and would not take it again.

    why: the reason, as the end of a sentence. of_branch: another branch there may be let have it.
    """

    def __init__(
        self, what: str, next_step: str = "", why: str = "", *, of_branch: bool = False
    ) -> None:
        super().__init__(what, next_step)
        self.why = why
        self.of_branch = of_branch


class ForgeError(ResolverError):
    """The forge could not be reached, or refused a request."""


class SandboxError(ResolverError):
    """The sandbox could not be started, or was lost during the run."""


class ModelError(ResolverError):
    """The model endpoint failed after all retries."""


class ModelAuthError(ModelError):
    """The model endpoint did not accept the key."""


class ContextWindowExceeded(ModelError):
    """The conversation does not fit into the model's context window."""


class ReplayExhausted(ModelError):
    """A replayed run asked for more replies than were recorded."""


class LogError(ResolverError):
    """An event log can't be read or written."""


class LogTooNew(LogError):
    """The log has a version that this Resolver does not know."""


class UnstorableEvent(LogError):
    """An event is too large, or holds what JSON or UTF-8 can't carry."""


class RunStopped(BaseException):
    """A person or a signal ended the run.

    Like KeyboardInterrupt no Exception: it comes in the middle of anything, and a library that
    turns every Exception into one of its own, or tries again, must not take it for a failure.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step
