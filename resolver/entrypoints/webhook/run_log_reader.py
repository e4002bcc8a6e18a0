"""Reads the log of a run for its page, and what is appended to it while somebody looks."""

from pathlib import Path

from resolver.config.templates import render
from resolver.errors import LogError
from resolver.events.log import Event, open_log_file, parse_line

MAX_LOG_BYTES = 20_000_000
"""Number of bytes of a log that its page shows. Runs are bounded, so that hardly any has more."""

REFRESH_SECONDS = 10
"""Interval in seconds at which a browser without JavaScript reloads the page of an active run."""


class RunLogReader:
    """The events of a log as far as they were read, and the number of lines that can't be parsed.
    Not thread-safe."""

    def __init__(self, log: Path) -> None:
        self.events: list[Event] = []
        self.unread = 0
        self._log, self._position, self._skipped = log, 0, 0

    @property
    def last_id(self) -> int:
        """The id of the last event; -1 if there is none."""
        return self.events[-1].id if self.events else -1

    def read(self) -> bool:
        """Read what was appended. Return True if that is anything, and False as well if the file
        can't be read now."""
        before = self._position
        try:
            with open_log_file(self._log) as file:
                size = file.seek(0, 2)
                file.seek(self._position)
                data = file.read(max(0, min(size, MAX_LOG_BYTES) - self._position))
        except (LogError, OSError):
            return False
        self._skipped = max(0, size - MAX_LOG_BYTES)
        *lines, unfinished = data.split(b"\n")  # the last line may be being written
        self._position += len(data) - len(unfinished)
        for line in lines:
            try:
                self.events.append(parse_line(line))
            except LogError:
                self.unread += 1
        return self._position > before

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
