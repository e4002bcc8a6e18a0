"""Counts the work of a function instead of measuring its time, which depends on the machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def executed_lines(function: Callable[[], object]) -> int:
    """Return how many lines of Python a call of the function executes in this thread."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
