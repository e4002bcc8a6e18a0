"""The option --without-programs of pytest: a test that starts a program or opens a socket is
skipped in the moment it tries.

The interpreter's audit events (https://docs.python.org/3/library/audit_events.html) tell which
tests need more than the interpreter, so that nobody has to mark them and none is forgotten.
"""

import signal
import sys
import threading
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
        if _running and event in ATTEMPTS:
            _attempted.append(ATTEMPTS[event])
            if threading.current_thread() is not threading.main_thread():
                # The test may wait for what this thread was about to start.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            pytest.skip(ATTEMPTS[event])

    def skip_waiting(*_: object) -> None:
        if _running and _attempted:
            pytest.skip(_attempted[0])

    if config.getoption("--without-programs"):
        signal.signal(signal.SIGUSR1, skip_waiting)
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
