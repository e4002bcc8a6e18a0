"""The folder that a run leaves behind: what was asked, event log, outcome, patch, pull request
text and traces."""

import fcntl
import json
import os
import shutil
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from resolver.errors import UsageError
from resolver.events.log import Event, stored_line
from resolver.models.run import Continuation, ExportedChange, FrozenModel, PullRequest, Trigger
from resolver.runs.outcome_json import OutcomeFile
from resolver.trace.html import render_html
from resolver.trace.markdown import render_markdown

OUTCOME = "outcome.json"
EVENTS = "events.jsonl"
REQUEST = "request.json"
CHANGE = "change.json"
BUNDLE = "change.bundle"
MOST_CHANGE = 16_000_000
"""Bytes of a change that a comment can still have published."""

_FILES = (
    EVENTS, REQUEST, OUTCOME, CHANGE, BUNDLE,
    "patch.diff", "trace.md", "trace.html", "pull_request.md", "review.md",
)  # fmt: skip


class StoredRequest(FrozenModel):
    """What a run was asked to do, kept before it begins, so that it can go on even when it was
    killed before its first event."""

    run: str
    trigger: Trigger
    publish: bool = True
    issue: str = ""
    """Path of the issue's file, for a local checkout."""
    continuation: Continuation | None = None
    source: str = ""


class Output:
    """Names and writes the files below one folder. It is this run's until `close`: another
    process that wants it is refused, also when this one was killed without a word.

    resume: a run that the folder holds goes on. Without it the earlier files move to
    `earlier-N/`. Raises UsageError.
    """

    def __init__(self, folder: Path, resume: bool = False) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # Closed by `close`, and where nobody calls that, with the object.
            self._unlock = weakref.finalize(self, os.close, descriptor)
            _lock(descriptor, folder)
            if not resume:
                self.set_earlier_aside()
        except OSError as error:
            raise UsageError(
                f"the output folder {folder} can't be written: {error.strerror}",
                "choose another --output",
            ) from error

    def close(self) -> None:
        """Let others have the folder. May be called again."""
        self._unlock()

    @property
    def log(self) -> Path:
        """events.jsonl"""
        return self.folder / EVENTS

    @property
    def has_events(self) -> bool:
        """Whether there is a log with something in it."""
        try:
            with open(self.log, "rb") as file:
                return file.readline().endswith(b"\n")
        except OSError:
            return False

    @property
    def request(self) -> StoredRequest | None:
        """What the run was asked to do; None when the folder does not say, or can't be read."""
        try:
            return StoredRequest.model_validate_json((self.folder / REQUEST).read_bytes())
        except (OSError, ValidationError):
            return None

    @property
    def outcome(self) -> dict[str, Any] | None:
        """outcome.json; None while the run is not over."""
        try:
            data = json.loads((self.folder / OUTCOME).read_bytes())
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None

    @property
    def change(self) -> ExportedChange | None:
        """The change that `keep_change` kept; None when there is none, or it can't be read."""
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
        return self.folder / "patch.diff"

    def write_request(self, request: StoredRequest) -> None:
        """request.json, in one piece."""
        self._write(REQUEST, request.model_dump_json(indent=2))

    def write_patch(self, diff: bytes) -> None:
        """patch.diff, as `git apply` takes it; empty when nothing was changed."""
        self.patch.write_bytes(diff)

    def keep_change(self, change: ExportedChange) -> None:
        """The change as git objects, so that it can be published without the sandbox."""
        kept = self.folder / BUNDLE
        if change.bundle is not None and change.bundle != kept:
            temporary = self.folder / f".{BUNDLE}.new"
            shutil.copyfile(change.bundle, temporary)
            temporary.replace(kept)
        name = Path(BUNDLE) if change.bundle else None
        self._write(CHANGE, change.model_copy(update={"bundle": name}).model_dump_json(indent=2))

    def withdraw_change(self) -> None:
        """The work goes on: what it has changed so far is not the change."""
        for name in (CHANGE, BUNDLE):
            (self.folder / name).unlink(missing_ok=True)

    def write_pull_request(self, pull_request: PullRequest) -> None:
        """The pull request's text for a person; outcome.json has it for programs."""
        self.pull_request.write_text(f"# {pull_request.title}\n\n{pull_request.body}")

    def write_review(self, text: str) -> None:
        """review.md: the review for a person, with its comments."""
        (self.folder / "review.md").write_text(text)

    def write_traces(self, events: Iterable[Event]) -> None:
        """trace.md and trace.html."""
        events = list(events)
        (self.folder / "trace.md").write_text(render_markdown(events))
        self.trace_html.write_text(render_html(events))

    def write_outcome(self, outcome: OutcomeFile) -> None:
        """outcome.json, last and in one piece: where it is, the run is over."""
        text = json.dumps(outcome.model_dump(mode="json"), indent=2, ensure_ascii=False)
        self._write(OUTCOME, text)

    def begin_with(self, events: Iterable[Event]) -> None:
        """Let the log begin with the events of another one."""
        self._write(EVENTS, "\n".join(stored_line(event) for event in events))

    def withdraw_outcome(self) -> None:
        """The run is not over after all."""
        (self.folder / OUTCOME).unlink(missing_ok=True)

    def set_earlier_aside(self) -> None:
        """Move what an earlier run has left to `earlier-N/`."""
        earlier = [self.folder / n for n in _FILES if (self.folder / n).exists()]
        if not earlier:
            return
        number = 1
        while (self.folder / f"earlier-{number}").exists():
            number += 1
        target = self.folder / f"earlier-{number}"
        target.mkdir()
        for path in earlier:
            path.rename(target / path.name)

    def _write(self, name: str, text: str) -> None:
        temporary = self.folder / f".{name}.new"
        temporary.write_text(text + "\n")
        temporary.replace(self.folder / name)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(
            f"another process is at work in {folder}",
            "wait until it has ended, or choose another --output",
        ) from None
    except OSError:
        return  # a file system without locks
