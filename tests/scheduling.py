"""How xdist hands tests out to its workers with `--dist loadgroup`.

A group's tests, or else a module's, go to one worker together: handed out one by one, each of the
thousands of quick tests would cost a message and a look at all that were handed out before. Those
that wait on containers, servers and browsers come first, so that a run ends with tests that take
milliseconds, and no worker is left alone with a long one. The longest of all are named here.
"""

from collections import Counter
from contextlib import suppress
from importlib import import_module

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

LONGEST = (
    "test_chaos",
    "tests/runs/test_browsing.py",
    "action",  # builds an image first
    "tests/verification/suite/test_verdicts.py",
    "test_crashes",
    "mcp",
    "images",
    "isolation",
    "tests/code_index/test_index.py",
    "test_running",
)
"""Groups and modules that take tens of seconds, in the order in which they start."""


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


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Import another share of the test modules in each worker before it collects them all.

    pytest keeps a module with its assertions rewritten, which takes most of the time of collecting
    it for the first time: otherwise each worker would rewrite all of them at the same time.
    """
    config = collector.config
    if isinstance(collector, pytest.Session) and hasattr(config, "workerinput"):
        workers, own = config.workerinput["workercount"], config.workerinput["workerid"]
        modules = sorted(config.rootpath.glob("tests/*/**/test_*.py"))
        for path in modules[int(own.removeprefix("gw")) :: workers]:
            with suppress(Exception):  # collecting it reports the failure
                import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(trylast=True)  # xdist puts the groups behind the names before
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order tests by how many of real parts their group or module has, most first, after `LONGEST`.

    Those with the same number, and the tests of a module, keep their order.
    """
    if hasattr(config, "workerinput"):
        slow = Counter(unit_of(item.nodeid) for item in items if "real_part" in item.keywords)
        slow |= Counter({unit: 1_000_000 - place for place, unit in enumerate(LONGEST)})
        items.sort(key=lambda item: -slow[unit_of(item.nodeid)])


def unit_of(nodeid: str) -> str:
    """Return the group of a test, which xdist has put behind its id, or else its module."""
    is_in_group = nodeid.rfind("@") > nodeid.rfind("]")
    return nodeid.rpartition("@")[2] if is_in_group else nodeid.partition("::")[0]
