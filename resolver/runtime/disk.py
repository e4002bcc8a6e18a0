"""The limit on what a sandbox writes to disk, measured from the host while it runs.

The kernel limits a single file at once (RLIMIT_FSIZE: getrlimit(2)). The total is measured
repeatedly, so it may exceed the limit for a few seconds.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from resolver.errors import SandboxError

PAUSE: Final = 3.0
"""Shortest pause between two measurements, in seconds."""

SHARE: Final = 20
"""A pause is at least this many times as long as the measurement before it."""

logger = logging.getLogger(__name__)


class DiskWatch:
    """Ends a sandbox that has written too much. It watches from its construction until `close`.

    measure: returns the bytes that the sandbox has written.
    end: kills the sandbox.
    most: limit in bytes.
    pause: shortest pause between two measurements, in seconds.
    """

    def __init__(
        self, measure: Callable[[], int], end: Callable[[], None], most: int, pause: float = PAUSE
    ) -> None:
        self._measure = measure
        self._end = end
        self._most = most
        self._pause = pause
        self._closed = threading.Event()
        self.reason = ""
        """Why the sandbox was ended; "" if it was not."""
        self._thread = threading.Thread(target=self._watch, name="disk-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop measuring. May be called more than once."""
        self._closed.set()
        self._thread.join(timeout=1)

    def _watch(self) -> None:
        pause = self._pause
        while not self._closed.wait(pause):
            begun = time.monotonic()
            try:
                written = self._measure()
            except SandboxError as error:
                logger.warning("what the sandbox wrote can't be measured: %s", error)
                continue
            pause = max(self._pause, SHARE * (time.monotonic() - begun))
            if written > self._most:
                self.reason = (
                    f"it was stopped because it had written {written / 1e9:.1f} GB, over its limit "
                    f"of {self._most / 1e9:.1f} GB"
                )
                self._end()
                return


def bytes_below(folder: Path) -> int:
    """Return the disk space that the files below a folder use, in bytes. Links are not followed."""
    found, folders = 0, [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        found += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:  # removed in the meantime, or not readable
            continue
    return found
