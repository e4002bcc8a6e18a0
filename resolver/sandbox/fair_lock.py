"""A lock that can't be taken again by the same thread while another one waits for it.

Both ends of the wire send under it, so that the frames of a download can't starve those of a
command.
"""

import threading


class FairLock:
    """A fair mutual exclusion lock, used as a context manager."""

    def __init__(self) -> None:
        # threading.Lock makes no promise of order: a thread that releases it and asks again at once
        # usually gets it, however long another one has waited.
        self._next = threading.Lock()
        self._held = threading.Lock()

    def __enter__(self) -> None:
        # The waiting thread holds `_next`, so a thread that returns quickly queues behind it.
        with self._next:
            self._held.acquire()

    def __exit__(self, *exc: object) -> None:
        self._held.release()
