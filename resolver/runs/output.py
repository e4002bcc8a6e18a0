"""The output folder of a run: its request, event log, outcome, patch, pull request text and
traces.

outcome.json is the result of a run for programs. Its field names are stable.
"""

import fcntl
import json
import os
import shutil
import stat
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from resolver.errors import UsageError
from resolver.events.lifecycle import ReplayDiverged
from resolver.events.log import Event, stored_line
from resolver.events.state import ModelMetrics, State
from resolver.github.comments.report import RunFailure
from resolver.models.base import FrozenModel
from resolver.models.pull_request import PublishedReview
from resolver.models.run import (
    CodePlace,
    Continuation,
    ExportedChange,
    FileChange,
    Outcome,
    Patch,
    Publication,
    PullRequest,
    RunState,
    Tokens,
    Trigger,
)
from resolver.models.verification import UNFINISHED, Verification, VerificationEvidence
from resolver.storage.earlier_runs import (
    BUNDLE,
    CHANGE,
    EVENTS,
    ISSUE,
    OUTCOME,
    PATCH,
    REQUEST,
    RESULT_FILES,
)
from resolver.trace import html, markdown

FORMAT = 1

_STATE_BY_FAILURE = {
    "refused": RunState.REFUSED,
    "policy": RunState.REFUSED,
    "ceiling": RunState.REFUSED,
    "limit": RunState.LIMIT,
    "stopped": RunState.STOPPED,
}


class EarlierPublication(FrozenModel):
    """The part of the work that was already public when the run continued it."""

    branch: str | None = Field(default=None, description="Branch that was pushed.")
    commit: str | None = Field(default=None, description="Commit that was published.")
    tree: str = Field(default="", description="Id of its tree; empty if nothing was published.")
    pull_request: PullRequest | None = Field(
        default=None, description="Pull request that was opened or updated."
    )


class ModelCosts(FrozenModel):
    """The calls of one model or one service, and their cost in US dollars."""

    calls: int = Field(description="Number of calls.")
    cost: float | None = Field(description="Their cost; null if the price of a reply is unknown.")
    priced: float = Field(description="Cost of the replies with a known price.")
    tokens: Tokens = Field(description="Tokens of their replies.")
    seconds: float = Field(description="Time that they took in all.")


class RecordedDifference(FrozenModel):
    """A difference between a replay and its recording."""

    recorded_id: int = Field(description="Id of the event in the recording.")
    field: str = Field(description="The field of the event that differs.")
    recorded: str = Field(description="Its value in the recording.")
    found: str = Field(description="Its value in the replay.")


class OutcomeFile(FrozenModel):
    """The content of outcome.json. Every field is always present; null or empty if the run did not
    get that far."""

    format: int = Field(default=FORMAT, description="Version of the format of this file.")
    run: str = Field(description="Id of the run.")
    state: RunState = Field(description="How the run ended.")
    reason: str = Field(description="Why it ended so, in one sentence.")
    next_step: str | None = Field(description="What to do next; null if there is nothing.")
    limit: str | None = Field(description="The setting whose limit ended the run.")
    exit_code: int = Field(description="Exit code of the command.")
    key: str = Field(description="Key of the request: the same for a redelivery of its event.")
    repository: str = Field(description="OWNER/NAME, or the path of a local checkout.")
    number: int | None = Field(description="Number of the issue or pull request that was asked on.")
    issue: int | None = Field(description="Number of the issue that the work is for.")
    model: str = Field(description="Name of the model of the agent.")
    base: str | None = Field(description="Commit that the work started from.")
    commit: str | None = Field(description="Commit that was published.")
    tree: str | None = Field(
        description="Id of the change's tree, the same in the sandbox and in the commit."
    )
    branch: str | None = Field(description="Branch that was pushed.")
    pull_request: PullRequest | None = Field(description="Pull request that was opened or updated.")
    comment_url: str | None = Field(description="Address of the final comment.")
    review: PublishedReview | None = Field(description="Review that was published.")
    repeated: bool = Field(
        description="True if an earlier attempt had already published this work."
    )
    earlier: EarlierPublication = Field(
        description="The part of the work that was already public when the run continued it."
    )
    iterations: int = Field(
        description="Number of replies of the model to the agent and to those that it delegated to."
    )
    cost: float | None = Field(
        description="Cost in US dollars; null if the price of a reply is unknown."
    )
    tokens: Tokens = Field(description="Tokens of all replies.")
    models: dict[str, ModelCosts] = Field(description="Calls and cost of each model, by its name.")
    services: dict[str, ModelCosts] = Field(
        description="Calls and cost of each service that used a model, by its name."
    )
    seconds: float = Field(description="Duration of the run in seconds.")
    task_completed: bool = Field(
        description="True if the agent called its work complete, which nothing confirms."
    )
    message: str = Field(description="The last message of the agent.")
    places: tuple[CodePlace, ...] = Field(
        description="Lines of code that the agent named in its answer."
    )
    files: tuple[FileChange, ...] = Field(description="Changed paths.")
    evidence: VerificationEvidence = Field(
        description="What the executions of the project's checks show."
    )
    divergences: tuple[RecordedDifference, ...] = Field(
        description="Differences of a replay from its recording."
    )
    traceparent: str | None = Field(
        description="Ids of the run's OpenTelemetry trace, as in the header of that name."
    )


def build_outcome_file(
    *,
    run: str,
    trigger: Trigger,
    model: str,
    exit_code: int,
    outcome: Outcome | None,
    failure: RunFailure | None,
    log_state: State | None,
    base: str | None = None,
    patch: Patch | None = None,
    publication: Publication | None = None,
    earlier: Publication | None = None,
    verification: Verification | None = None,
    traceparent: str | None = None,
) -> OutcomeFile:
    """Return the content of outcome.json. earlier: what was already public of the work that the run
    continued. log_state: state of the log, with the cost of each model and service. traceparent:
    ids of the run's trace."""
    log_state, publication = log_state or State(), publication or Publication()
    state, reason = _state_and_reason(outcome, failure, publication)
    reported = outcome or Outcome(state=state, cost=0.0)
    return OutcomeFile(
        run=run,
        state=state,
        reason=reason,
        next_step=failure.next_step if failure else reported.next_step,
        limit=reported.limit,
        exit_code=exit_code,
        key=trigger.key,
        repository=trigger.repository,
        number=trigger.number,
        issue=trigger.subject,
        model=model,
        base=base,
        commit=publication.commit,
        tree=patch.tree if patch else None,
        branch=publication.branch,
        pull_request=publication.pull_request,
        comment_url=publication.comment_url,
        review=publication.review,
        repeated=publication.repeated,
        earlier=EarlierPublication.model_validate(earlier or Publication(), from_attributes=True),
        iterations=reported.iterations,
        cost=reported.cost,
        tokens=reported.tokens,
        models=_model_costs(log_state.metrics),
        services=_model_costs(log_state.services),
        seconds=reported.seconds,
        task_completed=reported.task_completed,
        message=reported.message,
        places=tuple(reported.places),
        files=tuple(patch.files) if patch else (),
        evidence=(verification or UNFINISHED).evidence(),
        divergences=tuple(map(_difference, log_state.divergences)),
        traceparent=traceparent,
    )


def _difference(event: ReplayDiverged) -> RecordedDifference:
    return RecordedDifference.model_validate(event, from_attributes=True)


def _model_costs(metrics: Mapping[str, ModelMetrics]) -> dict[str, ModelCosts]:
    return {
        name: ModelCosts(
            calls=model.calls,
            cost=None if model.unpriced else model.priced,
            priced=model.priced,
            tokens=model.tokens,
            seconds=model.seconds,
        )
        for name, model in metrics.items()
    }


def _state_and_reason(
    outcome: Outcome | None, failure: RunFailure | None, publication: Publication
) -> tuple[RunState, str]:
    """Return state and reason. A failure takes precedence over the outcome of the agent."""
    if failure is not None:
        return _STATE_BY_FAILURE.get(failure.kind, RunState.ERROR), failure.what
    if outcome is None:
        return RunState.FINISHED, "an earlier run has already handled this request"
    reason = outcome.reason or ("" if publication.pull_request else "finished without a change")
    return outcome.state, reason or "finished"


_FILES = (EVENTS, *RESULT_FILES)


class StoredRequest(FrozenModel):
    """The request of a run, stored before it begins, so that it can be resumed even if it was
    killed before its first event."""

    run: str
    trigger: Trigger
    publish: bool = True
    issue: str | None = None
    """Path of the issue's file, for a local checkout."""
    continuation: Continuation | None = None
    source: str | None = None
    options: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings given as options on the command line, by name, without secrets.",
    )

    def settings_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stored options, replaced with those given now. None means not given."""
        return {**self.options, **{k: v for k, v in given.items() if v is not None}}


class Output:
    """Names and writes the files in the output folder of a run.

    The folder is locked until `close`, or until the process ends in any way. resume: True keeps the
    files of the run in the folder; otherwise earlier files are moved to `earlier-N/`. shared: True
    if the permissions of folders and files follow the umask, because the next steps of a job need
    to read them; otherwise only this user may open them, also in a folder that existed before.
    Raises UsageError if another process holds the lock or the folder can't be written.
    """

    def __init__(self, folder: Path, resume: bool = False, *, shared: bool = False) -> None:
        self.folder = folder
        self._folder_mode = 0o777 if shared else 0o700
        self.file_mode = 0o666 if shared else 0o600
        """Permissions of new files, before the umask."""
        try:
            folder.mkdir(mode=self._folder_mode, parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # Closed by `close`, or when this object is collected if nobody calls it.
            self._unlock = weakref.finalize(self, os.close, descriptor)
            _lock(descriptor, folder)
            if not resume:
                self.move_earlier_files()
        except OSError as error:
            raise UsageError(
                f"the output folder {folder} can't be written: {error.strerror}",
                "choose another --output",
            ) from error

    def close(self) -> None:
        """Release the folder for other processes. May be called more than once."""
        self._unlock()

    @property
    def log(self) -> Path:
        """The path of events.jsonl."""
        return self.folder / EVENTS

    @property
    def has_events(self) -> bool:
        """True if there is a log with at least one complete line."""
        try:
            with open(self.log, "rb") as file:
                return file.readline().endswith(b"\n")
        except OSError:
            return False

    @property
    def request(self) -> StoredRequest | None:
        """The stored request; None if it is missing or can't be read."""
        try:
            return StoredRequest.model_validate_json((self.folder / REQUEST).read_bytes())
        except (OSError, ValidationError):
            return None

    @property
    def outcome(self) -> dict[str, Any] | None:
        """The content of outcome.json; None while the run is not over."""
        try:
            data = json.loads((self.folder / OUTCOME).read_bytes())
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None

    @property
    def change(self) -> ExportedChange | None:
        """The change stored by `keep_change`; None if there is none or it can't be read."""
        try:
            change = ExportedChange.model_validate_json((self.folder / CHANGE).read_bytes())
        except (OSError, ValidationError):
            return None
        if change.bundle is None:
            return change
        bundle = self.folder / BUNDLE
        return change.model_copy(update={"bundle": bundle}) if bundle.is_file() else None

    @property
    def trace_html(self) -> Path:
        return self.folder / "trace.html"

    @property
    def pull_request(self) -> Path:
        return self.folder / "pull_request.md"

    @property
    def patch(self) -> Path:
        return self.folder / PATCH

    def write_request(self, request: StoredRequest) -> None:
        """Write request.json atomically."""
        self._write_text(REQUEST, request.model_dump_json(indent=2))

    def write_issue(self, text: str) -> Path:
        """Write issue.md and return its absolute path."""
        self._write_text(ISSUE, text)
        return (self.folder / ISSUE).resolve()

    def write_patch(self, diff: bytes) -> None:
        """Write patch.diff in the format of `git apply`; empty if nothing was changed."""
        self._write(self.patch.name, diff)

    def keep_change(self, change: ExportedChange) -> None:
        """Store the change as git objects, so that it can be published without the sandbox."""
        stored_bundle = self.folder / BUNDLE
        if change.bundle is not None and change.bundle != stored_bundle:
            temporary = self._new_file(BUNDLE)
            shutil.copyfile(change.bundle, temporary)
            temporary.replace(stored_bundle)
        name = Path(BUNDLE) if change.bundle else None
        self._write_text(
            CHANGE, change.model_copy(update={"bundle": name}).model_dump_json(indent=2)
        )

    def withdraw_change(self) -> None:
        """Remove the stored change, because the work continues and the change is not final."""
        for name in (CHANGE, BUNDLE):
            (self.folder / name).unlink(missing_ok=True)

    def write_pull_request(self, pull_request: PullRequest) -> None:
        """Write the text of the pull request for a person. Programs read it from outcome.json."""
        text = f"# {pull_request.title}\n\n{pull_request.body}"
        self._write(self.pull_request.name, text.encode())

    def write_review(self, text: str) -> None:
        """Write review.md: the review and its comments, for a person."""
        self._write("review.md", text.encode())

    def write_traces(self, events: Iterable[Event]) -> None:
        """Write trace.md and trace.html."""
        events = list(events)
        diff = read_diff(self.patch)
        page = html.render_html(events, diff=diff)
        self._write("trace.md", markdown.render_markdown(events, diff).encode())
        self._write(self.trace_html.name, page.encode())

    def write_outcome(self, outcome: OutcomeFile) -> None:
        """Write outcome.json, atomically and as the last file: if it exists, the run is over."""
        text = json.dumps(outcome.model_dump(mode="json"), indent=2, ensure_ascii=False)
        self._write_text(OUTCOME, text)

    def begin_with(self, events: Iterable[Event]) -> None:
        """Start the log with the events of another log."""
        self._write_text(EVENTS, "\n".join(stored_line(event) for event in events))

    def withdraw_outcome(self) -> None:
        """Remove outcome.json, because the run is resumed."""
        (self.folder / OUTCOME).unlink(missing_ok=True)

    def copy_files(self, copies: Path) -> None:
        """Copy the files of the run to another folder, for `restore_files`."""
        for name in self._existing_files():
            shutil.copy2(self.folder / name, copies / name)

    def restore_files(self, copies: Path) -> None:
        """Put the files of the run back as they were at `copy_files`."""
        for name in self._existing_files():
            (self.folder / name).unlink()
        for path in copies.iterdir():
            shutil.copy2(path, self.folder / path.name)

    def _existing_files(self) -> list[str]:
        return [name for name in _FILES if (self.folder / name).exists()]

    def move_earlier_files(self) -> None:
        """Move the files of an earlier run to `earlier-N/`."""
        earlier = self._existing_files()
        if not earlier:
            return
        number = 1
        while (self.folder / f"earlier-{number}").exists():
            number += 1
        target = self.folder / f"earlier-{number}"
        target.mkdir(mode=self._folder_mode)
        for name in earlier:
            (self.folder / name).rename(target / name)

    def _write_text(self, name: str, text: str) -> None:
        self._write(name, f"{text}\n".encode())

    def _write(self, name: str, data: bytes) -> None:
        """Write a file by renaming a complete temporary file, so that a crash leaves the old or the
        new one."""
        temporary = self._new_file(name)
        temporary.write_bytes(data)
        temporary.replace(self.folder / name)

    def _new_file(self, name: str) -> Path:
        """Return the path of a temporary file with the permissions of this folder's files."""
        temporary = self.folder / f".{name}.new"
        temporary.touch(mode=self.file_mode)
        return temporary


MAX_SHOWN_DIFF_BYTES = 200_000
"""Maximum size in bytes of the diff that a trace shows."""


def read_diff(patch: Path, limit: int = MAX_SHOWN_DIFF_BYTES) -> str:
    """Return at most `limit` bytes of a diff, as text; "" if there is no such file."""
    try:
        descriptor = os.open(patch, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return file.read(limit).decode(errors="replace") if is_file else ""


def _lock(descriptor: int, folder: Path) -> None:
    """Lock the folder, without waiting. Raise UsageError if another process holds the lock.

    The lock is bound to the open descriptor, see flock(2): the kernel releases it when the process
    ends, also by SIGKILL, so there is no stale lock file to remove.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"another process is already using {folder}",
            "wait until it has ended, or choose another --output",
        ) from None
    except OSError:
        return  # a file system without locks, such as some network mounts
