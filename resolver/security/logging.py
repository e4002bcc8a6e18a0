"""Removes secrets and untrusted control characters from the operator's log."""

import logging
from collections.abc import Callable

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_FORMATTER = logging.Formatter()


class RewritingFilter(logging.Filter):
    """Passes every text of a log record through `rewrite`: message, traceback, stack, extras.

    rewrite: usually `Redactor.redact_text`, optionally followed by escaping for the log's reader.

    Add the filter to handlers. A filter on a logger does not see the records of its child loggers:
    https://docs.python.org/3/library/logging.html#filter-objects
    """

    def __init__(self, rewrite: Callable[[str], str]) -> None:
        super().__init__()
        self._rewrite = rewrite

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record in place and return True."""
        record.msg = self._rewrite(_message(record))
        record.args = None
        if record.exc_info and not record.exc_text:
            record.exc_text = _FORMATTER.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._rewrite(record.exc_text)
        # A handler that formats the exception again would restore the original text.
        record.exc_info = None
        if record.stack_info:
            record.stack_info = self._rewrite(record.stack_info)
        for name, value in list(vars(record).items()):
            if name not in _STANDARD and not isinstance(value, int | float | None):
                setattr(record, name, self._rewrite(str(value)))
        return True


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # The arguments don't match the format string: the record is still worth keeping.
        return f"{record.msg} {record.args}"
