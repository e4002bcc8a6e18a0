"""Reports the end of a running action's output in notifications (wire.OUTPUT_METHOD)."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .wire import OUTPUT_INTERVAL_SECONDS, output_frame

WaitForEnd = Callable[[threading.Event, float], bool]
"""Waits until the event is set, at most for a number of seconds; returns True if it is set."""


@contextmanager
def report_output(
    request: int,
    read_lines: Callable[[], str],
    write_now: Callable[[bytes], bool],
    wait_for_end: WaitForEnd = threading.Event.wait,
) -> Iterator[None]:
    """Send notifications for the request with this id while the context is open, none afterwards.

    read_lines: returns the last lines of the output so far. Called in a thread of its own.
    write_now: writes a frame, or returns False if it would have to wait.
    """
    ended = threading.Event()

    def send() -> None:
        last_frame = b""
        while not wait_for_end(ended, OUTPUT_INTERVAL_SECONDS):
            frame = output_frame(request, read_lines())
            if frame and frame != last_frame and write_now(frame):
                last_frame = frame

    thread = threading.Thread(target=send, name="output-reports", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # it never waits for anything but the event and short locks
