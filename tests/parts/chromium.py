"""A real Chromium, the system's own, driven by playwright."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.parts.missing import skip_without

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium_program() -> str:
    """Path of a Chromium."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or skip_without("Chromium", "not on PATH")


@pytest.fixture(scope="session")
def chromium(chromium_program: str) -> Iterator[Browser]:
    """A browser for the session, driven by playwright."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_program, args=["--no-sandbox"]
        )
        yield browser
        browser.close()
