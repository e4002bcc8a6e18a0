"""Shortens the start of a process: modules that are imported when they are first used, and a pause
of the garbage collector while others are imported.

Most of the time from the start of a run to its first model request is spent on imports. Modules
that only later stages need, or only runs on GitHub, are therefore declared like this:

    if TYPE_CHECKING:
        from resolver.github import github_forge
    else:
        github_forge = lazy_module("resolver.github.github_forge")

Type checkers and the import rules see an ordinary import. This stands in for `lazy import`, which
Python has from version 3.15 on: https://peps.python.org/pep-0810/
"""

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_declared: dict[str, None] = {}


class LazyModule:
    """Stands for a module, and imports it when one of its attributes is first read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def lazy_module(name: str) -> LazyModule:
    """Return the module of that name, which is imported on first use."""
    _declared[name] = None
    return LazyModule(name)


def import_lazy_modules() -> None:
    """Import all modules that were declared, for a server that is to have loaded everything when
    its first run starts."""
    imported: set[str] = set()
    while missing := [name for name in _declared if name not in imported]:
        for name in missing:  # which may declare more
            importlib.import_module(name)
            imported.add(name)


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
