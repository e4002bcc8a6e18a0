"""Fixtures that every room's tests may use (the real parts), and what holds for all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines are noisy: how long an example takes says nothing about the code.
settings.register_profile(
    "resolver", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("resolver")

PARTS = Path(__file__).parent / "parts"

pytest_plugins = [
    f"tests.parts.{path.stem}"
    for path in sorted(PARTS.glob("*.py"))
    if "@pytest.fixture" in path.read_text()
]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    """In CI a skipped test is a failed one: a part that should be there is missing."""
    outcome = yield
    report = outcome.get_result()
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
