"""The main job with a browser: the model serves a page, looks at it, fixes the bug, looks again.

Whole runs, because the browser opens what a command of the agent serves in the same sandbox;
tests/agents/test_browsing.py has which models get pictures.
"""

from pathlib import Path

import pytest

from resolver.events.observations import BrowserOutput
from tests.parts.model_endpoint import ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout

PAGE = """<title>Counter</title><button onclick="n.textContent = 'count ' + (1 - 2)">Add</button>
<p id=n>count 0</p>
"""
SERVE = (
    "python3 -m http.server 8137 --bind 127.0.0.1 > /tmp/serve.log 2>&1 & "
    "until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8137))' "
    "2>/dev/null; do sleep 0.05; done"
)
LOOK = tool_call("browser", {"code": "goto('http://127.0.0.1:8137/')"})


@pytest.mark.chromium
def test_a_bug_seen_in_the_browser_is_fixed(
    chromium_program: str, command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A whole run: the story of an agent with a browser, from a page to the trace's picture."""
    checkout = make_checkout(tmp_path / "counter", {"index.html": PAGE})
    model_endpoint.script(
        bash(SERVE),
        LOOK,
        tool_call("browser", {"code": "click('1')"}),
        bash("sed -i 's/1 - 2/0 + 1/' index.html"),
        LOOK,
        tool_call("browser", {"code": "click('3')\nscreenshot()"}),
        finish("Count up\n\nThe button subtracted."),
    )
    done = command_line.resolve(checkout, issue="# Add counts down\n\nThe button gives -1.")
    assert done.exit_code == 0, done.stderr
    assert "0 + 1" in git(checkout, "show", f"{done.outcome['branch']}:index.html")
    seen = [event for event in done.events if isinstance(event, BrowserOutput)]
    assert not any(event.error for event in seen), [event.content for event in seen]
    assert "count -1" in seen[1].content and "count 1" in seen[3].content
    assert (seen[3].screenshot or "").startswith("data:image/jpeg;base64,")
    assert [tool["function"]["name"] for tool in model_endpoint.requests[0].body["tools"]].count(
        "browser"
    ) == 1
    trace = (done.output / "trace.html").read_text()
    assert "Use the browser" in trace and "data:image/jpeg;base64," in trace
    assert "profile" not in git(checkout, "ls-tree", "-r", "--name-only", done.outcome["branch"])
