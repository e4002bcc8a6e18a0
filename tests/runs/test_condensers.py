"""A whole run with each condenser: the work is done, and the requests stay within bounds."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resolver.events.lifecycle import Condensation, ServiceReplied
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish, git, make_checkout

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "index.html": "<title>Many</title>" + "".join(f"<p>row {n} of the page" for n in range(400)),
}
LAST = 12
BOUND = 4_000
SERVICES = "condenser: {model: openai/notes, retries: 0}"
ASKING = {"summarizing", "structured", "attention"}


def answer_of(body: dict[str, Any]) -> Answer:
    """The next of LAST noisy commands, the edit among them; notes for the condenser's model."""
    if body["model"] == "notes":
        return reply("- `calc.py` was changed.")
    result = json.dumps(body["messages"])
    step = max(map(int, re.findall(r"step-(\d+)", result)), default=0) + 1
    if step > LAST:
        return finish("Make add add")
    edit = "sed -i 's/a - b/a + b/' calc.py; " if step == 2 else ""
    return bash(f"{edit}echo step-{step}; seq 1 900")


def run(command_line: CommandLine, checkout: Path, condenser: str) -> Ended:
    return command_line.call(
        "resolve",
        checkout,
        "--issue",
        _issue(checkout.parent),
        RESOLVER_CONDENSER=condenser,
        RESOLVER_CONDENSER_MAX_TOKENS=str(BOUND),
        RESOLVER_SERVICES=SERVICES,
    )


def _issue(folder: Path) -> Path:
    file = folder / "issue.md"
    file.write_text("# Fix add()\n\nIt subtracts.")
    return file


@pytest.mark.nightly
@pytest.mark.parametrize(
    "condenser",
    [
        "importance(keep_last=2)",
        "structured(keep_last=2)",
        "attention(keep_last=2)",
        "masking(keep_last=6,at_once=3),window(keep_last=2)",
    ],
)
def test_the_work_is_done_with_each_condenser(
    condenser: str, command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """Whole runs, because the agent has to go on with what each leaves it; test_properties.py has
    all condensers, and test_condensing.py a run with the summarizing one."""
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.answer_with(answer_of)
    done = run(command_line, checkout, condenser)
    assert done.exit_code == 0, done.stderr
    assert "a + b" in git(checkout, "show", f"{done.outcome['branch']}:calc.py")
    assert any(isinstance(event, Condensation) for event in done.events)
    asked = any(isinstance(event, ServiceReplied) for event in done.events)
    name = condenser.partition("(")[0]
    if name != "importance":  # which asks only for what it forgets, and lets outputs go first
        assert asked is (name in ASKING)
    agent = [r.body for r in model_endpoint.requests if r.body["model"] != "notes"]
    whole = LAST * 900 * 4
    assert len(json.dumps(agent[-1]["messages"])) < whole
    assert "It subtracts." in str(agent[-1]["messages"])


@pytest.mark.nightly
def test_without_a_condenser_everything_is_sent(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.answer_with(answer_of)
    done = run(command_line, checkout, "none")
    assert done.exit_code == 0, done.stderr
    assert not any(isinstance(event, Condensation) for event in done.events)
    assert str(model_endpoint.requests[-1].body["messages"]).count("step-") >= LAST


@pytest.mark.nightly
@pytest.mark.chromium
def test_older_pages_go_first(
    chromium_program: str, command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    checkout = make_checkout(tmp_path / "calc", FILES)

    def look(body: dict[str, Any]) -> Answer:
        result = json.dumps(body["messages"])
        root = re.search(r"repository at (/\S+?)\.? ", result)
        seen = sum(message["role"] == "assistant" for message in body["messages"])
        if seen == 5 or root is None:
            return finish("Make add add")
        return tool_call("browser", {"code": f"goto('file://{root[1]}/index.html')"})

    model_endpoint.answer_with(look)
    done = run(command_line, checkout, "browser(keep_last=1,at_once=2)")
    assert done.exit_code == 3, done.stderr
    masked = [event.masked for event in done.events if isinstance(event, Condensation)]
    assert masked and all(masked)
    pages = [str(r.body["messages"]).count("row 40 of the page") for r in model_endpoint.requests]
    assert pages[:3] == [0, 1, 2] and max(pages) < 5
