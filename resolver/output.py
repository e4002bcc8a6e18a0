"""The folder that a run leaves behind: event log, outcome, patch, pull request text and traces."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from resolver.errors import UsageError
from resolver.events.log import Event
from resolver.model import PullRequest
from resolver.trace.html import render_html
from resolver.trace.markdown import render_markdown

OUTCOME = "outcome.json"


class Output:
    """Names and writes the files below one folder.

    A folder that already holds a run keeps it: the earlier files move to `earlier-N/`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._set_earlier_aside()
        except OSError as error:
            raise UsageError(
                f"the output folder {folder} can't be written: {error.strerror}",
                "choose another --output",
            ) from error

    @property
    def log(self) -> Path:
        """events.jsonl"""
        return self.folder / "events.jsonl"

    @property
    def trace_html(self) -> Path:
        return self.folder / "trace.html"

    @property
    def pull_request(self) -> Path:
        return self.folder / "pull_request.md"

    @property
    def patch(self) -> Path:
        return self.folder / "patch.diff"

    def write_patch(self, diff: bytes) -> None:
        """patch.diff, as `git apply` takes it; empty when nothing was changed."""
        self.patch.write_bytes(diff)

    def write_pull_request(self, pull_request: PullRequest) -> None:
        """The pull request's text for a person; outcome.json has it for programs."""
        self.pull_request.write_text(f"# {pull_request.title}\n\n{pull_request.body}")

    def write_traces(self, events: Iterable[Event]) -> None:
        """trace.md and trace.html."""
        events = list(events)
        (self.folder / "trace.md").write_text(render_markdown(events))
        self.trace_html.write_text(render_html(events))

    def write_outcome(self, outcome: dict[str, Any]) -> None:
        """outcome.json, last and in one piece: where it is, the run is over."""
        temporary = self.folder / f".{OUTCOME}.new"
        temporary.write_text(json.dumps(outcome, indent=2, ensure_ascii=False) + "\n")
        temporary.replace(self.folder / OUTCOME)

    def _set_earlier_aside(self) -> None:
        names = ("events.jsonl", OUTCOME, "patch.diff", "trace.md", "trace.html", "pull_request.md")
        earlier = [self.folder / n for n in names if (self.folder / n).exists()]
        if not earlier:
            return
        number = 1
        while (self.folder / f"earlier-{number}").exists():
            number += 1
        target = self.folder / f"earlier-{number}"
        target.mkdir()
        for path in earlier:
            path.rename(target / path.name)
