"""A lock that goes round: whoever waits comes before whoever has just let go of it.

Both ends of the wire send under it, so that a download's frames can't keep a command's away.
"""

import threading


class FairLock:
    """Used as a context manager."""

    def __init__(self) -> None:
        self._next = threading.Lock()
        self._held = threading.Lock()

    def __enter__(self) -> None:
        # The one who waits keeps the next place; a quick returner queues behind.
        with self._next:
            self._held.acquire()

    def __exit__(self, *exc: object) -> None:
        self._held.release()
