"""The output folder of a run: its request, event log, outcome, patch, pull request text and
traces."""

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
from resolver.events.log import Event, stored_line
from resolver.models.base import FrozenModel
from resolver.models.run import Continuation, ExportedChange, PullRequest, Trigger
from resolver.runs.outcome_file import OutcomeFile
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

    def _existing_files(self) -> list[str]:
        return [name for name in (EVENTS, *RESULT_FILES) if (self.folder / name).exists()]

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


def read_diff(patch: Path) -> str:
    """Return the part of a diff that a trace shows, as text; "" if there is no such file."""
    try:
        descriptor = os.open(patch, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return file.read(MAX_SHOWN_DIFF_BYTES).decode(errors="replace") if is_file else ""


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
