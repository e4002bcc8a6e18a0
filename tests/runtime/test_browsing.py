"""Tests of the browser of a running sandbox, and of a sandbox without one."""

from collections.abc import Callable

import pytest

from resolver.events.actions import BrowseInteractive, BrowseURL, CmdRun
from resolver.events.observations import BrowserOutput, ErrorObservation
from resolver.runtime.base import Machine
from resolver.runtime.runtime import Runtime
from tests.runtime.outside import NAME, let_out, serving_outside

SERVE = """mkdir -p /tmp/site && cd /tmp/site && echo '<title>Inside</title>
<button onclick="this.textContent=`pressed`">Press</button>' > index.html
python3 -m http.server 8123 --bind 127.0.0.1 > /tmp/site.log 2>&1 &
until python3 -c 'import socket; socket.create_connection(("127.0.0.1", 8123))' 2>/dev/null
do sleep 0.05; done"""


@pytest.mark.chromium
@pytest.mark.parametrize(
    "kind", ["local", pytest.param("docker-chromium", marks=pytest.mark.engine)]
)
def test_a_page_that_the_agent_serves_inside_is_browsed(
    chromium_program: str, new_machine: Callable[..., Machine], kind: str
) -> None:
    with Runtime(new_machine(kind, memory="1g"), command_timeout=60) as sandbox:
        assert sandbox.browser
        sandbox.execute(CmdRun(command=SERVE))
        page = sandbox.execute(BrowseURL(url="http://127.0.0.1:8123/"))
        assert isinstance(page, BrowserOutput) and not page.error
        assert "Title: Inside" in page.content and page.url == "http://127.0.0.1:8123/"
        bid = page.content.partition("button 'Press'")[0].rpartition("[")[2].rpartition("]")[0]
        pressed = sandbox.execute(BrowseInteractive(code=f"click('{bid}')\nscreenshot()"))
        assert isinstance(pressed, BrowserOutput) and "'pressed'" in pressed.content
        assert (pressed.screenshot or "").startswith("data:image/jpeg;base64,")
        wrong = sandbox.execute(BrowseInteractive(code="press the button"))
        assert isinstance(wrong, BrowserOutput) and wrong.error
        assert "Write one call per line" in wrong.content


@pytest.mark.engine
def test_a_sandbox_without_chromium_says_what_to_do(new_machine: Callable[..., Machine]) -> None:
    with Runtime(new_machine("docker-busybox"), command_timeout=60) as sandbox:
        assert not sandbox.browser
        answer = sandbox.execute(BrowseURL(url="http://127.0.0.1:1/"))
    assert isinstance(answer, ErrorObservation) and answer.code == "browse"
    assert "There is no Chromium in this sandbox" in answer.content


def closed_in(entry: str, new_machine: Callable[..., Machine]) -> Runtime:
    """A sandbox that may reach this one place."""
    policy = let_out(entry)
    return Runtime(new_machine("local", egress=policy.allowed.entries), 60, policy)


@pytest.mark.chromium
def test_an_external_page_is_loaded_through_the_proxy_only(
    chromium_program: str, new_machine: Callable[..., Machine]
) -> None:
    with serving_outside() as outside, closed_in(outside.entry, new_machine) as sandbox:
        page = sandbox.execute(BrowseURL(url=f"{outside.url}/landed"))
        assert isinstance(page, BrowserOutput) and not page.error, page.content
        refused = sandbox.execute(BrowseURL(url="http://evil.test/"))
        assert "the host is not on the allow-list" in refused.content
        sandbox.execute(BrowseInteractive(code="noop(5000)"))
    connections = sandbox.take_connections()
    assert {(c.host, c.allowed) for c in connections} == {(NAME, True), ("evil.test", False)}
