"""Tests of a sandbox's browser and the network that it shares."""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import docker
import pytest

from resolver.events.actions import McpCall
from resolver.events.observations import McpResult
from resolver.mcp.servers import McpServers
from resolver.mcp.transports import Endpoint
from resolver.runtime.base import Machine
from resolver.runtime.runtime import Runtime
from tests.parts.engine import wait_until_removed
from tests.parts.sandboxes import DOCKER_BUSYBOX, LOCAL
from tests.runtime.outside import NAME, let_out, serving_outside

HOST_ADDRESSES = ("169.254.169.254/latest/meta-data/", "172.17.0.1:2375/", "10.0.0.1/")


def browsing(sandbox: Runtime) -> McpServers:
    endpoint = Endpoint("browser", sandbox.start_browser, lambda _: True, 60.0)
    return McpServers([endpoint], lambda text: text, lambda _: None, pytest.fail)


def ask(browser: McpServers, name: str, **arguments: Any) -> McpResult:
    call = McpCall(server="browser", name=f"browser_{name}", arguments=arguments)
    seen = browser.call(call)
    assert isinstance(seen, McpResult), seen.content
    return seen


def fetching(urls: Sequence[str]) -> str:
    """A page that fetches the addresses and says when all have ended."""
    script = "".join(
        f"fetch('{url}', {{mode: 'no-cors'}}).finally(() => n.append('ended '));" for url in urls
    )
    return f"data:text/html,<p id=n></p><script>{quote(script)}</script>"


@pytest.mark.engine
@pytest.mark.chromium
@pytest.mark.attack
def test_a_page_reaches_neither_the_host_nor_the_metadata_address(
    browser_image: str, new_machine: Callable[..., Machine]
) -> None:
    """A page fetches the host's services and a cloud's metadata: nothing is reached but what the
    settings allow."""
    with serving_outside() as outside:
        on_host = [outside.url.replace(NAME, "127.0.0.1"), "http://evil.test/"]
        refused = [f"http://{address}" for address in HOST_ADDRESSES] + on_host
        policy = let_out(outside.entry)
        machine = new_machine(
            DOCKER_BUSYBOX,
            memory="1g",
            browser_image=browser_image,
            egress=policy.allowed.entries,
        )
        with Runtime(machine, 60, policy) as sandbox, browsing(sandbox) as browser:
            assert "/landed" in ask(browser, "navigate", url=f"{outside.url}/landed").content
            ask(browser, "navigate", url=fetching(refused))
            ask(browser, "wait_for", text="ended " * (len(refused) - 1) + "ended")
            seen = ask(browser, "snapshot").content
            assert "ended" * len(refused) in seen.replace(" ", "")
            for url in ("http://169.254.169.254/latest/meta-data/", "file:///etc/passwd"):
                assert ask(browser, "navigate", url=url).error
        assert [line.split()[1] for line in outside.seen if "favicon" not in line] == ["/landed"]
    connections = {(c.host, c.allowed) for c in sandbox.take_connections()}
    # Chromium asks no proxy for link-local addresses.
    assert {(host, False) for host in ("172.17.0.1", "10.0.0.1", "evil.test")} <= connections
    # On a slow machine Chromium also asks a host of its own, which is refused like any other.
    assert [host for host, allowed in connections if allowed] == [NAME]


@pytest.mark.engine
@pytest.mark.chromium
def test_the_container_of_a_browser_ends_with_the_sandbox(
    browser_image: str, new_machine: Callable[..., Machine], engine: docker.DockerClient
) -> None:
    machine = new_machine(DOCKER_BUSYBOX, run="browsing", browser_image=browser_image)
    with Runtime(machine, 60) as sandbox:
        browser = sandbox.start_browser()
        filters = {"label": "resolver.run=browsing"}
        assert len(engine.containers.list(filters=filters)) == 2
        browser.close()
        browser.close()
    wait_until_removed(engine, "browsing")


@pytest.mark.chromium
def test_a_browser_on_the_path_of_this_machine_is_used(
    browser_path: str, monkeypatch: pytest.MonkeyPatch, new_machine: Callable[..., Machine]
) -> None:
    monkeypatch.setenv("PATH", browser_path)
    with Runtime(new_machine(LOCAL), 60) as sandbox, browsing(sandbox) as browser:
        assert "browser_click" in {tool.name for tool in browser.tools}
        page = ask(browser, "navigate", url="data:text/html,<title>It is here</title>")
        assert "It is here" in page.content


@pytest.mark.engine
def test_a_sandbox_without_an_image_for_it_has_no_browser(
    new_machine: Callable[..., Machine],
) -> None:
    with Runtime(new_machine(DOCKER_BUSYBOX), 60) as sandbox:
        assert not sandbox.has_browser
