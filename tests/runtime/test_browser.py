"""Tests of a sandbox's browser and the network that it shares."""

from collections.abc import Callable

import docker
import pytest

from resolver.events.actions import McpCall
from resolver.events.observations import McpResult
from resolver.mcp.servers import McpServers
from resolver.mcp.transports import Endpoint
from resolver.runtime.base import Machine
from resolver.runtime.runtime import Runtime
from tests.parts.engine import wait_until_removed
from tests.parts.sandboxes import DOCKER_BUSYBOX
from tests.runtime.outside import NAME, let_out, serving_outside


def browsing(sandbox: Runtime) -> McpServers:
    endpoint = Endpoint("browser", sandbox.start_browser, lambda _: True, 60.0)
    return McpServers([endpoint], lambda text: text, lambda _: None, pytest.fail)


def navigate(browser: McpServers, url: str) -> str:
    seen = browser.call(McpCall(server="browser", name="browser_navigate", arguments={"url": url}))
    assert isinstance(seen, McpResult)
    return seen.content


@pytest.mark.engine
@pytest.mark.chromium
def test_a_page_is_loaded_through_the_proxy_only(
    browser_image: str, new_machine: Callable[..., Machine]
) -> None:
    with serving_outside() as outside:
        policy = let_out(outside.entry)
        machine = new_machine(
            DOCKER_BUSYBOX,
            memory="1g",
            browser_image=browser_image,
            egress=policy.allowed.entries,
        )
        with Runtime(machine, 60, policy) as sandbox, browsing(sandbox) as browser:
            assert sandbox.has_browser
            assert "/landed" in navigate(browser, f"{outside.url}/landed")
            navigate(browser, "http://evil.test/")
        assert [line.split()[1] for line in outside.seen if "favicon" not in line] == ["/landed"]
    connections = {(c.host, c.allowed) for c in sandbox.take_connections()}
    assert ("evil.test", False) in connections
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


@pytest.mark.engine
def test_a_sandbox_without_an_image_for_it_has_no_browser(
    new_machine: Callable[..., Machine],
) -> None:
    with Runtime(new_machine(DOCKER_BUSYBOX), 60) as sandbox:
        assert not sandbox.has_browser
