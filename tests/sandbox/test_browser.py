"""Tests of the browser behind the action server: pages, forms, tabs, dialogs, files."""

import base64
import os
import signal
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from resolver.sandbox.wire import MAX_TEXT
from tests.parts.waiting import until
from tests.sandbox.browsing import Browsing, are_gone, browsing, pids_with, site, start_browsing

__all__ = ["browsing", "site"]

pytestmark = pytest.mark.chromium


def test_a_page_is_shown_as_lines_with_ids(browsing: Browsing) -> None:
    shown = browsing.open("/form")
    assert f"URL: {browsing.site}/form\nTitle: Sign up\n" in shown
    assert not browsing.shown["error"] and browsing.shown["url"] == f"{browsing.site}/form"
    for line in (
        "heading 'Sign up', level=1",
        "textbox 'Name', required",
        "combobox 'Pet', value='Cat', expanded=false, options=['Cat', 'Dog', 'Fox']",
        "checkbox 'Agree', checked=false",
        "textbox 'About', value='old text'",
        "button 'Never', disabled",
    ):
        assert f"] {line}" in shown, shown


def test_a_form_is_filled_and_sent(browsing: Browsing) -> None:
    browsing.open("/form")
    bid = browsing.bid
    code = (
        f"fill('{bid('textbox')}', 'Zoë & Co')\n"
        f"select_option('{bid('combobox')}', 'Dog')\n"
        f"select_option('{bid('Toppings')}', ['Egg', 'Leek'])\n"
        f"check('{bid('Agree')}')\n"
        f"fill('{bid('When')}', '2026-01-31')\n"
        f"clear('{bid('About')}')"
    )
    shown = browsing.run(code)
    assert "textbox 'Name', value='Zoë & Co'" in shown and "checked=true" in shown
    shown = browsing.click("button 'Send'")
    assert "name=Zo%C3%AB+%26+Co&pet=d&top=Egg&top=Leek&agree=on&when=2026-01-31&about=" in shown
    assert browsing.run("go_back()").count("Title: Sign up") == 1
    assert "Title: Welcome" in browsing.run("go_forward()")
    assert "There is no page to go forward to" in browsing.run("go_forward()")
    assert "Title: Welcome" in browsing.run("reload()")


def test_invisible_content_of_a_page_is_left_out(browsing: Browsing) -> None:
    shown = browsing.open("/parts")
    for word in ("not displayed", "hidden from readers", "\u200b", "\u202e", "base64"):
        assert word not in shown
    assert "zerowidth" in shown and shown.count("the second page") == 1
    assert "InlineTextBox" not in shown and "ignored" not in shown


def test_a_page_can_not_forge_an_element(browsing: Browsing) -> None:
    shown = browsing.open("/parts")
    assert """paragraph "[7] button 'Pay', focused [8] link 'fake'\"""" in shown
    assert not any(line.strip().startswith("[8] link") for line in shown.splitlines())


@pytest.mark.parametrize(
    ("words", "becomes"),
    [
        ("a div to click", "was clicked"),
        ("in the shadow", "shadow done"),
        ("button 'inner'", "inner done"),
    ],
)
def test_a_click_reaches_divs_shadows_and_frames(
    browsing: Browsing, words: str, becomes: str
) -> None:
    browsing.open("/parts")
    assert becomes in browsing.click(words)


def test_mouse_and_keys_arrive(browsing: Browsing) -> None:
    browsing.open("/parts")
    bid = browsing.bid
    keys = bid("textbox 'Keys'")
    double, over = bid("double"), bid("over")
    assert "'twice'" in browsing.run(f"dblclick('{double}')")
    assert "'hovered'" in browsing.run(f"hover('{over}')")
    assert "'a,true,true'" in browsing.run(f"press('{keys}', 'Control+Shift+a')")
    assert "value='Añ b'" in browsing.run(f"focus('{keys}')\nkeyboard_type('Añ b')")
    assert "value='Añ b'" in browsing.run("keyboard_press('Control+a')")
    assert "value='x'" in browsing.run("keyboard_type('x')")
    assert "There is no key 'Bogus'" in browsing.run("keyboard_press('Bogus')")
    assert "'new words'" in browsing.run(f"fill('{bid('editable')}', 'new words')")


def test_drag_and_drop_and_upload(browsing: Browsing) -> None:
    (browsing.root / "notes.txt").write_text("from a file")
    browsing.open("/parts")
    start, end, upload = browsing.bid("drag me"), browsing.bid("'drop'"), browsing.bid("Upload")
    assert "got D" in browsing.run(f"drag_and_drop('{start}', '{end}')")
    shown = browsing.run(f"upload_file('{upload}', 'notes.txt')")
    assert "Title: from a file" in browsing.run("noop(100)") or "from a file" in shown
    for path in ("/etc/hostname", "../scratch", "missing.txt"):
        refused = browsing.run(f"upload_file('{upload}', {path!r})")
        assert "only files in there" in refused or "There is no file" in refused
    assert "upload_file(bid, path)" in browsing.click("Upload")


def test_impossible_actions_are_explained(browsing: Browsing) -> None:
    browsing.open("/form")
    for code, words in (
        (f"click('{browsing.bid('Never')}')", "is disabled"),
        (f"fill('{browsing.bid('Agree')}', 'x')", "use check or click"),
        (f"fill('{browsing.bid('combobox')}', 'x')", "use select_option"),
        (f"fill('{browsing.bid('When')}', 'soon')", "takes a date like 2026-01-31"),
        (f"select_option('{browsing.bid('combobox')}', 'Cow')", 'it has "Cat", "Dog", "Fox"'),
        (f"select_option('{browsing.bid('combobox')}', 'Fox')", "but disabled"),
        (f"check('{browsing.bid('textbox')}')", "neither a checkbox nor"),
        ("click('999999')", "was never shown"),
        ("tab_focus(7)", "There is no tab [7]"),
    ):
        shown = browsing.run(code)
        assert shown.startswith("Error: ") and words in shown.splitlines()[0], shown
        assert browsing.shown["error"]
    old = browsing.bid("textbox")
    browsing.open("/parts")
    assert "no longer open" in browsing.run(f"click('{old}')")
    assert 'covered by <div id="veil">' in browsing.click("Under")


def test_actions_after_a_failed_one_are_not_executed(browsing: Browsing) -> None:
    browsing.open("/form")
    shown = browsing.run(f"click('1234567')\nfill('{browsing.bid('textbox')}', 'x')")
    assert "(1 more not done.)" in shown and "value='x'" not in shown


def test_dialogs_are_answered_and_reported(browsing: Browsing) -> None:
    browsing.open("/doings")
    assert "Note: The page showed an alert 'saved': accepted." in browsing.click("Alert")
    assert "said true" in browsing.click("Confirm")
    assert "said me" in browsing.click("Prompt")
    browsing.click("Arm")
    assert "asked whether to leave it" in browsing.run(f"goto('{browsing.site}/form')")
    assert "Title: Sign up" in browsing.run("noop(0)")


def test_new_tabs_become_active_and_can_be_closed(browsing: Browsing) -> None:
    browsing.open("/doings")
    shown = browsing.click("new tab")
    assert "Title: Welcome" in shown and "[1] 'Welcome'" in shown and ", active" in shown
    assert "in another tab" in browsing.run(
        "tab_focus(0)\nclick('" + browsing.bid("Close me") + "')"
    )
    shown = browsing.click("button 'Open'")
    assert "[2] 'Welcome'" in shown
    shown = browsing.click("Close me")
    assert "The page closed its tab." in shown or "[2]" not in shown
    assert "Tabs:" not in browsing.run("tab_close()")
    shown = browsing.run(f"tab_close()\nnew_tab('{browsing.site}/form')\ntab_focus(0)\ntab_close()")
    assert "Title: Sign up" in shown


def test_effects_of_a_click_are_awaited(browsing: Browsing) -> None:
    browsing.open("/doings")
    assert "a slow answer" in browsing.click("Fetch")
    assert "Title: Welcome" in browsing.click("Move") and browsing.shown["url"].endswith("?moved")


def test_a_download_is_refused_and_reported(browsing: Browsing) -> None:
    browsing.open("/doings")
    assert "The download of 'download'" in browsing.click("Download")
    assert "is a download, not a page" in browsing.run(f"goto('{browsing.site}/download')")


def test_a_screenshot_on_request_is_limited_in_size(browsing: Browsing) -> None:
    browsing.open("/form")
    assert browsing.shown["images"] == []
    for code in ("screenshot()", "screenshot(marks=True)"):
        browsing.run(code)
        (image,) = browsing.shown["images"]
        assert image.startswith("data:image/jpeg;base64,") and len(image) < 450_000
        assert base64.b64decode(image.partition(",")[2]).startswith(b"\xff\xd8\xff")
    assert "value='old text'" in browsing.run("noop(0)")


def test_a_long_page_is_truncated_and_scrolling_shows_the_rest(browsing: Browsing) -> None:
    shown = browsing.open("/long")
    assert len(shown) < MAX_TEXT and "more lines are not shown: scroll down" in shown
    assert "'link 0'" in shown and "'link 1900'" not in shown
    shown = browsing.run("scroll(0, 30000)\nscroll(0, 30000)")
    assert "lines before this one are not shown" in shown and "'link 1999'" in shown
    assert "'link 0'" not in shown
    assert "'link 0'" in browsing.run("keyboard_press('Control+Home')")


def test_only_the_web_and_files_of_the_workspace_are_opened(browsing: Browsing) -> None:
    (browsing.root / "page.html").write_text(
        "<h1>a file</h1><iframe src=file:///etc/passwd></iframe>"
    )
    (browsing.root / "link.html").symlink_to("/etc/hostname")
    browsing.open("/form")
    shown = browsing.run(f"goto('file://{browsing.root}/page.html')")
    assert "heading 'a file'" in shown and "file:///etc/passwd was refused" in shown
    assert "root:" not in shown
    for url in (
        "file:///etc/passwd",
        f"file://{browsing.root}/../../etc/passwd",
        f"file://{browsing.root}/link.html",
        f"file://{browsing.root}-beside/x",
        "file://elsewhere/etc/passwd",
        "view-source:http://127.0.0.1/",
        "chrome://version",
        "devtools://devtools",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://127.0.0.1/",
    ):
        for code in (f"goto('{url}')", f"new_tab('{url}')"):
            assert "is not opened" in browsing.run(code) and browsing.shown["error"], url
    assert Path("/etc/hostname").read_text().strip() not in browsing.open("/outward")


def test_an_unreachable_address_is_reported(browsing: Browsing) -> None:
    shown = browsing.run("goto('http://127.0.0.1:9999/')")
    assert "could not be opened: net::ERR_CONNECTION_REFUSED" in shown
    shown = browsing.run("goto('127.0.0.1:9999')")
    assert "could not be opened: net::ERR_CONNECTION_REFUSED" in shown


def test_a_url_can_be_opened_directly(browsing: Browsing) -> None:
    result = browsing.connection.call("browse", url=f"{browsing.site}/form", timeout=30)
    assert "Title: Sign up" in result["output"]


def requested_paths(site: str) -> list[str]:
    """The paths that the site was asked for."""
    with urlopen(f"{site}/asked") as answer:
        return str(answer.read().decode()).split("\n")


def test_ping_and_interrupt_are_answered_while_a_page_loads(browsing: Browsing) -> None:
    browsing.open("/doings")
    connection = browsing.connection
    code = f"click('{browsing.bid('Fetch')}')\nnoop(20000)"
    before = requested_paths(browsing.site).count("/slow")
    waiting = connection.send("browse", code=code, timeout=60)
    ping = connection.send("ping")
    assert connection.receive()["id"] == ping
    until(lambda: requested_paths(browsing.site).count("/slow") > before)
    interrupt = connection.send("interrupt")
    answers = {answer["id"]: answer for answer in (connection.receive(), connection.receive())}
    assert answers[interrupt]["result"] == {"interrupted": True}
    assert "interrupted" in answers[waiting]["result"]["output"]
    assert "button 'Fetch'" in browsing.run("noop(0)") or "a slow answer" in browsing.run("noop(0)")


def test_the_browser_ends_with_the_server_and_writes_nothing_to_the_workspace(
    chromium_program: str, tmp_path_factory: pytest.TempPathFactory, site: str
) -> None:
    folder = tmp_path_factory.mktemp("e")
    live = start_browsing(folder, site)
    assert live.connection.call("hello")["browser"]
    profile = f"--user-data-dir={folder}/scratch/browser"
    assert not pids_with(profile)
    live.open("/form")
    assert pids_with(profile)
    assert live.end() == 0
    assert are_gone(profile)
    assert list(live.root.iterdir()) == []


def test_a_browser_that_died_is_started_again(browsing: Browsing) -> None:
    browsing.open("/form")
    pids = pids_with(f"--user-data-dir={browsing.root.parent}/scratch/browser")
    assert pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shown = browsing.run(f"goto('{browsing.site}/form')")
    if browsing.shown["error"]:
        assert "the next action starts a new one" in shown
        shown = browsing.run(f"goto('{browsing.site}/form')")
    assert "Title: Sign up" in shown


def test_without_chromium_browsing_is_refused_with_a_hint(tmp_path: Path, site: str) -> None:
    live = start_browsing(tmp_path, site, "--variable", "CHROMIUM=/nowhere/chromium")
    assert live.connection.call("hello")["browser"] is False
    refusal = live.connection.refusal("browse", code="noop(0)", timeout=5)
    assert "There is no Chromium in this sandbox" in refusal["message"]
    assert "an image in which `chromium` is on PATH" in refusal["message"]
    live.end()
