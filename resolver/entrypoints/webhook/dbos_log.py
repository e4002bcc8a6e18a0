"""Shortens what DBOS logs: while its database is gone, each of its threads logs every attempt."""

import logging
import re
from collections.abc import Callable
from time import monotonic

REPEAT_SECONDS = 60.0
"""Time in which a message that differs only in its reason is not logged again."""

_ERROR_LINE = re.compile(r"[\w.]+(?:Error|Exception|Failure)\b")


class DbosLogFilter(logging.Filter):
    """Reduces a message to one line without a traceback, and leaves out its repetitions.

    now: returns seconds from any starting point.
    """

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._now = now
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False if the record is not to be logged."""
        text = shorten(record.getMessage())
        subject = text.partition(":")[0]
        last, now = self._logged_at.get(subject), self._now()
        if last is not None and now - last < REPEAT_SECONDS:
            return False
        self._logged_at[subject] = now
        record.msg, record.args, record.exc_info, record.exc_text = text, (), None, None
        return True


def shorten(message: str) -> str:
    """Return the first line of a message; for a traceback, its error instead of it."""
    lines = message.strip().splitlines() or [""]
    first, _, _ = lines[0].partition("Traceback (most recent call last)")
    if first == lines[0]:
        return first
    errors = [line for line in lines[1:] if _ERROR_LINE.match(line)]
    return first + (errors[-1] if errors else "it failed")
