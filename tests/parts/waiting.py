"""Waits for a condition that something else brings about.

This is the only module of the tests that sleeps: a fixed pause assumes that something has happened
by its end, and fails on a slow machine.
"""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE_SECONDS = 120.0
"""How long a condition may take. Generous: it is only waited out where a test fails."""


def until(
    condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS, pause: float = 0.05
) -> Any:
    """The first true value of `condition`. Fails when there is none in time.

    pause: seconds between two looks.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(pause)
    raise AssertionError(f"not in {seconds} seconds: {condition}")


def becomes_true(condition: Callable[[], object], seconds: float, pause: float = 0.05) -> bool:
    """Return True if the condition becomes true in time."""
    try:
        until(condition, seconds, pause)
    except AssertionError:
        return False
    return True


def is_inside(thread: threading.Thread, function: str) -> bool:
    """Return True if a thread is in a call of a function of this name, such as `wait`."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == function:
            return True
        frame = frame.f_back
    return False


class Steps(threading.Event):
    """Takes a step before each poll, and is set with the last one, after which none follows."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        super().__init__()
        self._steps = list(steps)

    def wait(self, timeout: float | None = None) -> bool:
        self._steps.pop(0)()
        return not self._steps
