"""A thread that looks for something while a block runs, and is told when that is over."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LAST_LOOK_SECONDS = 5.0
"""How long the end of the block waits for a look that is under way."""


@contextmanager
def background_poll(look: Callable[[threading.Event], None], name: str) -> Iterator[None]:
    """Run `look` in a thread while the block runs; the event that it is given is set at the end."""
    ended = threading.Event()
    thread = threading.Thread(target=look, args=(ended,), name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(LAST_LOOK_SECONDS)
