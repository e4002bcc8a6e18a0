"""Fixtures that the tests of every package may use, and hooks that apply to all tests."""

import asyncio
import gc
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import URL

from resolver.storage.database import parse_database_url
from tests.parts.missing import summarize_missing

# Machines are noisy: how long an example takes says nothing about the code.
_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, max_examples=15
)
# The same examples each time: what decides about a change must not depend on luck.
settings.register_profile("resolver", _COMMON, derandomize=True)
# `make check` tries the first few.
settings.register_profile("quick", _COMMON, derandomize=True, max_examples=5)
# `make test-deep` looks for new ones.
settings.register_profile("deep", _COMMON, max_examples=1_000, derandomize=False)
settings.load_profile("resolver")


def _is_valid_syntax(term: str, value: str) -> bool:
    """Import the real `rfc3987_syntax`, and call its function of this name."""
    del sys.modules["rfc3987_syntax"]
    from rfc3987_syntax import is_valid_syntax

    return bool(is_valid_syntax(term, value))


# jsonschema imports it to check IRIs, which compiles 39 grammars: 2 s of processor time in each
# worker, for what only the validation of a bill of materials calls.
sys.modules["rfc3987_syntax"] = ModuleType("rfc3987_syntax")
sys.modules["rfc3987_syntax"].is_valid_syntax = _is_valid_syntax  # type: ignore[attr-defined]

PARTS = Path(__file__).parent / "parts"

pytest_plugins = ["tests.without_programs", "tests.scheduling"] + [
    f"tests.parts.{path.stem}"
    for path in sorted(PARTS.glob("*.py"))
    if "@pytest.fixture" in path.read_text()
]


PART_FIXTURES = {
    name
    for path in PARTS.glob("*.py")
    for name in re.findall(r"@pytest\.fixture[^\n]*\n(?:@[^\n]*\n)*def (\w+)", path.read_text())
}


# Collecting only adds objects: a look through all of them in between finds no garbage.
gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a fixture of a real part, so that `make check` can leave them out."""
    for item in items:
        if not PART_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("real_part")
    # What has been imported and collected stays to the end.
    gc.freeze()
    gc.enable()


def pytest_make_parametrize_id(val: object) -> str | None:
    """The beginning of a long text is enough to name a test: its name goes to every worker and
    into reports. None leaves the name to pytest, which also tells equal ones apart."""
    if isinstance(val, bytes):
        val = val.decode("latin-1")
    if isinstance(val, str) and len(val) > 100:
        return val[:80].encode("unicode_escape").decode() + "..."
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test is a failed one: a part that should be there is missing."""
    report = yield
    wanted = hasattr(report, "wasxfail") or item.config.getoption("--without-programs")
    if os.environ.get("CI") and report.skipped and not wanted:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    if report.when == "call" and report.failed:
        report.sections.extend(_traces_of_parts(getattr(item, "funcargs", {})))
    return report


def _traces_of_parts(fixtures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what the simulated GitHub was asked, and what the server logged."""
    github, server = fixtures.get("github"), fixtures.get("server")
    if github is not None:
        requests = [
            f"{request.number} {request.method} {request.path}: "
            f"{request.answer.status if request.answer else 'unanswered'}"
            for request in github.requests[-60:]
        ]
        yield "last requests to GitHub", "\n".join(requests)
    if isinstance(getattr(server, "log", None), str):
        yield "end of the server's log", server.log[-8_000:]


@pytest.hookimpl(wrapper=True, tryfirst=True)  # around pytest's own, whose end is the last line
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Say which parts are missing after everything else."""
    yield
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    for line in summarize_missing(reasons):
        terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session", autouse=True)
def main_loop() -> Iterator[None]:
    """The main thread's event loop, closed at the end.

    litellm makes one where there is none and never closes it; whatever test then happened to run
    when it was collected failed for it.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        yield parse_database_url(f"sqlite:///{tmp_path}/resolver.db")
        return
    with request.getfixturevalue("postgres").new_database() as url:
        yield url
