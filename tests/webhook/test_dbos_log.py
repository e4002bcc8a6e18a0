"""What the log shows of DBOS while the database is gone."""

import logging

from resolver.entrypoints.webhook.dbos_log import REPEAT_SECONDS, DbosLogFilter, shorten

TRACEBACK = """Exception polling schedules: Traceback (most recent call last):
  File "x.py", line 1, in poll
    raise error
sqlalchemy.exc.OperationalError: (psycopg.OperationalError) connection is bad
\tIs the server running locally?
(Background on this error at: https://sqlalche.me/e/21/e3q8)
"""


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("dbos", logging.WARNING, "x.py", 1, message, arguments, None)


def test_a_message_is_one_line_without_a_traceback() -> None:
    assert shorten("Exception listing queues: gone\n\tIs the server running?") == (
        "Exception listing queues: gone"
    )
    assert shorten(TRACEBACK) == (
        "Exception polling schedules: sqlalchemy.exc.OperationalError: "
        "(psycopg.OperationalError) connection is bad"
    )
    assert shorten("") == ""


def test_repetitions_are_left_out_for_a_minute() -> None:
    times = [0.0]
    shown = DbosLogFilter(lambda: times[-1])
    first = record("Exception in %s: %s", "requests", "gone\nreally")
    first.exc_info = (ValueError, ValueError("x"), None)
    assert shown.filter(first)
    assert (first.getMessage(), first.exc_info) == ("Exception in requests: gone", None)
    assert not shown.filter(record("Exception in requests: still gone"))
    assert shown.filter(record("Exception in others: gone"))
    times.append(REPEAT_SECONDS + 1)
    assert shown.filter(record("Exception in requests: still gone"))
