"""The event log of one run, opened: file, stream, and the state folded from it."""

from pathlib import Path
from types import TracebackType

from resolver.events.lifecycle import StageCompleted
from resolver.events.state import State
from resolver.events.store import JsonlStore
from resolver.events.stream import Clock, EventStream, Redactor


class RunLog:
    """`state` is the first subscriber of `stream`, so all others see it up to date."""

    def __init__(self, path: Path, redact: Redactor, now: Clock) -> None:
        self._store = JsonlStore(path)
        self._now = now
        self.state = State.fold(self._store)
        self.stream = EventStream(self._store, redact, now)
        self.stream.subscribe("state", self.state.apply, essential=True)

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def stage(self, stage: str, detail: str, seconds: float) -> None:
        """Record that a step of the pipeline is done."""
        self.stream.add(StageCompleted(stage=stage, detail=detail, seconds=round(seconds, 3)))

    def close(self) -> None:
        """Close the file. The state stays readable."""
        self._store.close()
