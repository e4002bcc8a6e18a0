"""A real Chromium, the system's own, driven by playwright."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium_program() -> str:
    """Path of a Chromium; skipped where there is none, an error in CI."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None or not Path(path).exists():
        reason = "no Chromium on PATH: apt-get install chromium"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session")
def chromium(chromium_program: str) -> Iterator[Browser]:
    """A browser for the session, driven by playwright."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_program, args=["--no-sandbox"]
        )
        yield browser
        browser.close()
