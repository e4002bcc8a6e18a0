"""A run with a browser, Playwright's MCP server in a container beside the sandbox.

A whole run, because the browser opens what a command of the agent serves in the same network.
"""

from pathlib import Path
from typing import Any

import pytest

from resolver.events.observations import McpResult
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout

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


def browse(name: str, **arguments: Any) -> Answer:
    return tool_call(f"browser__browser_{name}", arguments)


def results_of(done: Ended) -> list[McpResult]:
    return [event for event in done.events if isinstance(event, McpResult)]


@pytest.mark.engine
@pytest.mark.chromium
def test_a_form_is_filled_and_the_page_looked_at(
    command_line: CommandLine,
    python_image: str,
    browser_image: str,
    model_endpoint: ModelEndpoint,
    tmp_path: Path,
) -> None:
    """The story of an agent with a browser, from a page to the trace's picture."""
    command_line.environment |= {
        "RESOLVER_RUNTIME": "docker",
        "RESOLVER_IMAGE": python_image,
        "RESOLVER_BROWSER_IMAGE": browser_image,
        "LLM_MODEL": "openai/gpt-4o",  # one that sees images
    }
    checkout = make_checkout(tmp_path / "counter", {"index.html": PAGE})
    model_endpoint.script(
        bash(f"sed -i 's/ - 2 . by.value//' index.html; {SERVE}"),
        browse("navigate", url="http://127.0.0.1:8137/"),
        browse("type", target="input", text="3"),
        browse("click", target="button"),
        browse("snapshot"),
        browse("take_screenshot"),
        finish("Count up\n\nThe button subtracted."),
    )
    done = command_line.call_resolve(checkout, issue="# Add counts down\n\nThe button gives -3.")
    assert done.exit_code == 0, done.stderr
    seen = results_of(done)
    assert not any(event.error for event in seen), [event.content for event in seen]
    assert "count 3" in seen[3].content
    assert seen[4].images[0].startswith("data:image/png;base64,")
    assert "by.value)" in git(checkout, "show", f"{done.outcome['branch']}:index.html")
    offered = [tool["function"]["name"] for tool in model_endpoint.requests[0].body["tools"]]
    assert "browser__browser_click" in offered
    assert not {name for name in offered if "unsafe" in name or "upload" in name or "drop" in name}
    assert "image_url" in str(model_endpoint.requests[-1].body["messages"])
    assert "data:image/png;base64," in (done.output / "trace.html").read_text()
