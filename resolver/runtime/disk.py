"""The bound on what a sandbox writes: looked at from the host while it runs.

A single file is bounded at once, by the kernel (RLIMIT_FSIZE). Many files are measured again and
again, so for a few seconds there may be more than the bound.
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
"""Least seconds between two looks."""

SHARE: Final = 20
"""A pause is so many times as long as the look before it took."""

logger = logging.getLogger(__name__)


class DiskWatch:
    """Ends a sandbox that has written too much. Used from its start to its end.

    measure: bytes that the sandbox has written. end: kills it. most: bytes.
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
        """Why the sandbox was ended; "" while it was not."""
        self._thread = threading.Thread(target=self._watch, name="disk-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop looking. May be called again."""
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
    """What the files below a folder take on the disk. Links are themselves."""
    found, folders = 0, [str(folder)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        found += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:  # gone meanwhile, or closed to us
            continue
    return found
