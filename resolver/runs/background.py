"""Runs a polling function in a background thread while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LAST_LOOK_SECONDS = 5.0
"""Seconds that the end of the block waits for a poll that is under way."""


@contextmanager
def background_poll(look: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `look` in a daemon thread while the block runs. Its argument is an event that is set at
    the end of the block."""
    ended = threading.Event()
    thread = threading.Thread(target=look, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LAST_LOOK_SECONDS)
