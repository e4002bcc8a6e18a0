"""The option --without-programs of pytest: a test that starts a program or opens a socket is
skipped in the moment it tries.

The interpreter's audit events (https://docs.python.org/3/library/audit_events.html) tell which
tests need more than the interpreter, so that nobody has to mark them and none is forgotten.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

ATTEMPTS = {
    "subprocess.Popen": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.system": "starts a program",
    "os.fork": "forks",
    "os.forkpty": "forks",
    "socket.bind": "opens a socket",
    "socket.connect": "opens a connection",
}
"""What a test does, by the name of its audit event."""

LEFT_OPEN = (
    "ResourceWarning",
    "pytest.PytestUnraisableExceptionWarning",
    "pytest.PytestUnhandledThreadExceptionWarning",
)
"""Warnings about what a test leaves behind that is cut short."""

_attempted: list[str] = []
"""What the running test has attempted. A list, because any thread of it may attempt something."""

_running: list[pytest.Item] = []
"""The running test. Between tests nothing is refused: plugins may start what they need."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-programs",
        action="store_true",
        help="skip a test as soon as it starts a program or opens a socket",
    )


def pytest_configure(config: pytest.Config) -> None:
    def skip(event: str, _: tuple[Any, ...]) -> None:
        if event in ATTEMPTS and _running:
            _attempted.append(ATTEMPTS[event])
            pytest.skip(ATTEMPTS[event])

    if config.getoption("--without-programs"):
        sys.addaudithook(skip)  # for good: hooks can't be removed
        for warning in LEFT_OPEN:
            config.addinivalue_line("filterwarnings", f"ignore::{warning}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _attempted.clear()
    _running.append(item)
    try:
        return (yield)
    finally:
        _running.clear()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Iterator[None]:
    """Report the attempt, however the test ended: it may have been made in another thread."""
    report = yield
    if _attempted:
        reported = call.when == "teardown"
        report.outcome = "passed" if reported else "skipped"
        report.longrepr = None if reported else (__file__, 0, f"{_attempted[0]}: see `make test`")
    return report
