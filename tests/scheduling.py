"""How xdist hands tests out to its workers with `--dist loadgroup`.

A group's tests, or else a module's, go to one worker together: handed out one by one, each of the
thousands of quick tests would cost a message and a look at all that were handed out before. Those
that wait on containers, servers and browsers come first, so that a run ends with tests that take
milliseconds, and no worker is left alone with a long one.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling


class Collected(Protocol):
    """A test as pytest has collected it."""

    @property
    def nodeid(self) -> str: ...


Test = TypeVar("Test", bound=Collected)


class ModuleScheduling(LoadGroupScheduling):
    """Hands out the tests of a group, or of a module, in the order in which they are collected."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False  # by number of tests: a long one would come last
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ModuleScheduling | None:
    return ModuleScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


def unit_of(nodeid: str) -> str:
    """Return the group of a test, which xdist has put behind its id, or else its module."""
    is_in_group = nodeid.rfind("@") > nodeid.rfind("]")
    return nodeid.rpartition("@")[2] if is_in_group else module_of(nodeid)


def slow_first(tests: Iterable[Test], is_slow: Callable[[Test], bool]) -> list[Test]:
    """Order tests by how many slow ones their module has, most first.

    Modules with the same number, and the tests of a module, keep their order.
    """
    tests = list(tests)
    slow = Counter(module_of(test.nodeid) for test in tests if is_slow(test))
    return sorted(tests, key=lambda test: -slow[module_of(test.nodeid)])


def module_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
