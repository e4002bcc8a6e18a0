"""The lines of a server's log: plain, or JSON with the id of the run that wrote them."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["text", "json"]

PLAIN_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"

_run: ContextVar[str] = ContextVar("run", default="")


@contextmanager
def logging_run(run: str) -> Iterator[None]:
    """Add the id of a run to the lines that this thread logs in the block, and to those of threads
    that are started with a copy of its context."""
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: time, level, logger, message, and if there are any, run
    and exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if run := _run.get():
            line["run"] = run
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, ensure_ascii=False)


def formatter_of(log_format: LogFormat) -> logging.Formatter:
    """Return the formatter of a format."""
    return JsonFormatter() if log_format == "json" else logging.Formatter(PLAIN_FORMAT)
