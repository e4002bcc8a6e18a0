"""Runs with a browser: Playwright's MCP server beside the sandbox, or in it in the local runtime.

Whole runs, because the browser opens what a command of the agent serves in the same network.
"""

from pathlib import Path
from typing import Any

import pytest

from resolver.events.lifecycle import Egress
from resolver.events.observations import McpResult
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout
from tests.runtime.outside import NAME, serving_outside

PAGE = """<title>Counter</title>
<form onsubmit="n.textContent = 'count ' + (Number(by.value) - 2 * by.value); return false">
<label>By <input id=by></label><button>Add</button></form>
<p id=n>count 0</p>
"""
SERVE = (
    "python3 -m http.server 8137 --bind 127.0.0.1 > /tmp/serve.log 2>&1 & "
    "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8137))' "
    "2>/dev/null; do sleep 0.05; done"
)
HOST_ADDRESSES = ("169.254.169.254/latest/meta-data/", "172.17.0.1:2375/", "10.0.0.1/")


def browse(name: str, **arguments: Any) -> Answer:
    return tool_call(f"browser__browser_{name}", arguments)


@pytest.fixture(
    params=[
        pytest.param("docker", marks=pytest.mark.engine),
        pytest.param("local", marks=pytest.mark.nightly),
    ]
)
def browsing_line(request: pytest.FixtureRequest, command_line: CommandLine) -> CommandLine:
    """A command line whose runs have a browser."""
    if request.param == "docker":
        command_line.environment |= {
            "RESOLVER_RUNTIME": "docker",
            "RESOLVER_IMAGE": request.getfixturevalue("python_image"),
            "RESOLVER_BROWSER_IMAGE": request.getfixturevalue("browser_image"),
        }
    else:
        command_line.environment["PATH"] = request.getfixturevalue("browser_path")
    return command_line


def results_of(done: Ended) -> list[McpResult]:
    return [event for event in done.events if isinstance(event, McpResult)]


@pytest.mark.chromium
def test_a_form_is_filled_and_the_page_looked_at(
    command_line: CommandLine, browser_path: str, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """The story of an agent with a browser, from a page to the trace's picture."""
    command_line.environment["PATH"] = browser_path
    command_line.environment["LLM_MODEL"] = "openai/gpt-4o"  # one that sees images
    checkout = make_checkout(tmp_path / "counter", {"index.html": PAGE})
    model_endpoint.script(
        bash(SERVE),
        browse("navigate", url="http://127.0.0.1:8137/"),
        browse("type", target="input", text="3"),
        browse("click", target="button"),
        browse("snapshot"),
        bash("sed -i 's/ - 2 . by.value//' index.html"),
        browse("navigate", url="http://127.0.0.1:8137/"),
        browse("type", target="input", text="3", submit=True),
        browse("snapshot"),
        browse("take_screenshot"),
        finish("Count up\n\nThe button subtracted."),
    )
    done = command_line.call_resolve(checkout, issue="# Add counts down\n\nThe button gives -3.")
    assert done.exit_code == 0, done.stderr
    seen = results_of(done)
    assert not any(event.error for event in seen), [event.content for event in seen]
    assert "count -3" in seen[3].content and "count 3" in seen[6].content
    assert seen[7].images[0].startswith("data:image/png;base64,")
    assert "by.value)" in git(checkout, "show", f"{done.outcome['branch']}:index.html")
    offered = [tool["function"]["name"] for tool in model_endpoint.requests[0].body["tools"]]
    assert "browser__browser_click" in offered
    assert not {name for name in offered if "unsafe" in name or "upload" in name or "drop" in name}
    assert "image_url" in str(model_endpoint.requests[-1].body["messages"])
    assert "data:image/png;base64," in (done.output / "trace.html").read_text()


@pytest.mark.chromium
@pytest.mark.attack
def test_a_page_reaches_neither_the_host_nor_the_metadata_address(
    browsing_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A page fetches the host's services and a cloud's metadata: nothing is reached."""
    targets = [f"http://{address}" for address in HOST_ADDRESSES]
    with serving_outside() as outside:
        targets += [outside.url.replace(NAME, "127.0.0.1"), outside.url]
        script = "".join(
            f"fetch('{url}', {{mode: 'no-cors'}}).finally(() => n.append('ended '));"
            for url in targets
        )
        page = f"<p id=n></p><script>{script}</script>"
        checkout = make_checkout(tmp_path / "hostile", {"index.html": page})
        model_endpoint.script(
            bash(SERVE),
            browse("navigate", url="http://127.0.0.1:8137/"),
            browse("wait_for", text="ended " * (len(targets) - 1) + "ended"),
            browse("snapshot"),
            browse("navigate", url="http://169.254.169.254/latest/meta-data/"),
            browse("navigate", url="file:///etc/passwd"),
            finish("No change", completed=False),
        )
        done = browsing_line.call_resolve(checkout, RESOLVER_EGRESS="allowed.example")
    seen = results_of(done)
    assert "ended" * len(targets) in seen[2].content.replace(" ", "")
    assert seen[3].error and seen[4].error
    assert not outside.seen
    connections = [event for event in done.events if isinstance(event, Egress)]
    assert connections and not any(event.allowed for event in connections)
    hosts = {event.host for event in connections}
    assert {"172.17.0.1", "10.0.0.1", NAME} <= hosts  # Chromium asks no proxy for link-local ones
