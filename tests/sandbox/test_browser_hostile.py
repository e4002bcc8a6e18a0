"""Tests of hostile pages: every request ends in bounded time, and the next one works."""

import time
from collections.abc import Iterator

import pytest

from resolver.sandbox.browser import Browser
from resolver.sandbox.browser_page import PageTimeouts
from resolver.sandbox.processes import Family
from resolver.sandbox.wire import MAX_TEXT, BrowseResult
from tests.sandbox.browsing import BASH, site

__all__ = ["site"]

pytestmark = pytest.mark.chromium

TIMEOUTS = PageTimeouts(answer=4, load=4, network=1)


@pytest.fixture(scope="module")
def browser(chromium_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that waits less long than the server's."""
    folder = tmp_path_factory.mktemp("h")
    (folder / "root").mkdir()
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "CHROMIUM": chromium_program}
    live = Browser(
        Family(), BASH, environment, str(folder / "root"), str(folder / "scratch"), TIMEOUTS
    )
    yield live
    live.close()


def go(browser: Browser, code: str, most: float = 20) -> BrowseResult:
    """Run it and check what holds for every answer."""
    result = browser.run(code, 15)
    assert len(result["output"]) <= MAX_TEXT
    return result


def works(browser: Browser, site: str) -> None:
    result = go(browser, f"goto('{site}/form')")
    assert "Title: Sign up" in result["output"] and not result["error"], result["output"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/loop", "its running script was ended"),
        ("/alerts", "kept opening dialogs; its tab was closed"),
        ("/silent", "did not answer in time"),
        ("/huge", "too many for a tree"),
        ("/shadows", "generic 'xxxxxxxxxx'"),
        ("/deep", "'bottom'"),
        ("/abyss", "its tab was closed"),
        ("/name", "Title: TTT"),
        ("/endless", "endless"),
    ],
)
def test_a_bad_page_ends_in_bounded_time_and_the_next_works(
    browser: Browser, site: str, path: str, words: str
) -> None:
    assert words in go(browser, f"goto('{site}{path}')", 40)["output"]
    works(browser, site)


def _bid(result: BrowseResult, words: str) -> str:
    line = next(line for line in result["output"].splitlines() if words in line)
    return line.partition("[")[2].partition("]")[0]


def test_a_click_that_never_ends_is_ended(browser: Browser, site: str) -> None:
    page = go(browser, f"goto('{site}/doings')")
    result = go(browser, f"click('{_bid(page, 'Hang')}')")
    assert result["error"] and "its running script was ended" in result["output"]
    assert "Title: Doings" in result["output"]


def test_a_request_that_never_ends_delays_one_action_only(browser: Browser, site: str) -> None:
    page = go(browser, f"goto('{site}/waiting')")
    # More steps than the time for one request of a page has room for.
    result = go(browser, f"hover('{_bid(page, 'Over')}')\n" * 30)
    assert not result["error"], result["output"]


def test_a_flood_of_tabs_is_limited(browser: Browser, site: str) -> None:
    page = go(browser, f"goto('{site}/popups')")
    output = go(browser, f"click('{_bid(page, 'All')}')")["output"]
    assert output.count("/welcome") <= 10
    for _ in range(9):
        go(browser, "tab_close()")
    works(browser, site)


def test_a_renderer_that_is_killed_is_replaced(browser: Browser, site: str) -> None:
    works(browser, site)
    result = go(browser, f"goto('{site}/crash')\ngoto('chrome://crash')")
    assert result["error"]
    works(browser, site)


@pytest.mark.deep
def test_the_timeout_of_a_request_is_respected(browser: Browser) -> None:
    begun = time.monotonic()
    result = browser.run("noop(30000)\nnoop(30000)", 1)
    assert time.monotonic() - begun < 5
    assert result["error"] or "noop" not in result["output"]
