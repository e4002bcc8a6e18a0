"""Tests that the operator's log contains no secret in any part of a record."""

import io
import logging

import pytest

from resolver.runs.common import RewritingFormatter
from resolver.security.redaction import MARK, Redactor

TOKEN = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bD1fG3hJ5"


class Log:
    def __init__(self) -> None:
        self.stream = io.StringIO()
        handler = logging.StreamHandler(self.stream)
        formatter = logging.Formatter("%(levelname)s %(message)s %(where)s", defaults={"where": ""})
        handler.setFormatter(RewritingFormatter(formatter, Redactor([TOKEN]).redact_text))
        self.logger = logging.Logger("resolver.tests")
        self.logger.addHandler(handler)

    @property
    def text(self) -> str:
        return self.stream.getvalue()


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_message_and_its_arguments_are_redacted(log: Log) -> None:
    log.logger.info("pushing to %s", f"https://x-access-token:{TOKEN}@github.com/o/r")
    assert log.text == f"INFO pushing to https://x-access-token:{MARK}@github.com/o/r \n"


def test_a_traceback_is_redacted(log: Log) -> None:
    try:
        raise ValueError(f"the server said {TOKEN}")
    except ValueError:
        log.logger.exception("failed")
    assert "Traceback" in log.text
    assert f"ValueError: the server said {MARK}" in log.text
    assert TOKEN not in log.text


def test_extras_and_the_stack_are_redacted(log: Log) -> None:
    log.logger.warning("x", extra={"where": {"url": TOKEN}}, stack_info=True)
    assert TOKEN not in log.text
    assert MARK in log.text


def test_mismatched_log_arguments_lose_neither_record_nor_redaction(log: Log) -> None:
    log.logger.warning("%d things", TOKEN)
    assert "things" in log.text
    assert TOKEN not in log.text
