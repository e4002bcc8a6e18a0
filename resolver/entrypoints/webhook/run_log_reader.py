"""Reads the log of a run for its page, and what is appended to it while somebody looks."""

from resolver.config.templates import render
from resolver.errors import LogError
from resolver.events.log import Event, parse_line
from resolver.storage.run_store import RunStore

MAX_LOG_BYTES = 20_000_000
"""Number of bytes of a log that its page shows. Runs are bounded, so that hardly any has more."""

REFRESH_SECONDS = 10
"""Interval in seconds at which a browser without JavaScript reloads the page of an active run."""


class RunLogReader:
    """The events of a run as far as they were read, and the number of lines that can't be parsed.
    Not thread-safe."""

    def __init__(self, store: RunStore, run: str) -> None:
        self.events: list[Event] = []
        self.unread = 0
        self._store, self._run = store, run
        self._lines, self._size, self._skipped = 0, 0, 0

    @property
    def last_id(self) -> int:
        """The id of the last event; -1 if there is none."""
        return self.events[-1].id if self.events else -1

    def read(self) -> bool:
        """Read what was appended. Return True if that is anything. Raises RunStoreError."""
        before = self._lines
        for line in self._store.lines(self._run, self._lines - 1):
            self._lines += 1
            if self._size + len(line) > MAX_LOG_BYTES:
                self._skipped += len(line)
                continue
            self._size += len(line)
            try:
                self.events.append(parse_line(line))
            except LogError:
                self.unread += 1
        return self._lines > before

    def notices(self, has_ended: bool) -> list[str]:
        """Return sentences for the page about what it shows."""
        text = render(
            "trace/live.txt.j2",
            is_active=not has_ended,
            events=bool(self.events),
            seconds=REFRESH_SECONDS,
            skipped=f"{self._skipped / 1e6:,.1f} MB" if self._skipped else "",
            unread=self.unread,
        )
        return [line for line in text.splitlines() if line]
