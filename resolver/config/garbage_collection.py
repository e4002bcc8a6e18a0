"""Pauses the garbage collector while modules are imported."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause the garbage collector while the block imports modules.

    Imported modules are never freed, but each collection scans what was imported since the last
    one: a tenth of the processor time that a run needs to start. When the block ends, everything
    that exists is exempt from later collections (`gc.freeze`), so that the next one does not make
    up for those that were left out.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()
