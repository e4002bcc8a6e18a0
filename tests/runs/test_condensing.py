"""A run whose conversation is condensed, and its replay."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resolver.events.base import EventBase
from resolver.events.lifecycle import Condensation, ServiceReplied
from resolver.events.log import Event
from tests.parts.model_endpoint import Answer, ModelEndpoint, reply
from tests.parts.runs import CommandLine, Ended, bash, finish, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
LAST = 9
ENVIRONMENT = {
    "LLM_MODEL": "openai/gpt-4",  # its context window is small
    "RESOLVER_CONDENSER": "summarizing(keep_first=1,keep_last=2)",
    "RESOLVER_SERVICES": "condenser: {model: openai/notes, num_retries: 0,"
    " input_cost_per_token: 0.00001, output_cost_per_token: 0.00001}",
}


def work(body: dict[str, Any]) -> Answer:
    """The next command, by the last one whose output the model is shown; the notes of the
    condenser's model say how many steps it read."""
    if body["model"] == "notes":
        steps = re.findall(r"^step-(\d+)", body["messages"][-1]["content"], re.MULTILINE)
        return reply(f"- Read the steps {', '.join(steps)}.")
    shown = re.findall(r"step-(\d+)", json.dumps(body["messages"]))
    step = max(map(int, shown), default=0) + 1
    if step == 3:
        return bash("sed -i 's/a - b/a + b/' calc.py; cat calc.py; echo step-3; seq 1 1200")
    return finish("Make add add") if step > LAST else bash(f"echo step-{step}; seq 1 1200")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "calc", FILES)


def condensed(line: CommandLine, checkout: Path) -> Ended:
    """A run with these settings."""
    before = dict(line.environment)
    line.environment |= ENVIRONMENT
    done = line.call_resolve(checkout)
    line.environment = before
    return done


def replay(line: CommandLine, recorded: Ended, checkout: Path) -> Ended:
    """The same without a model, and without the settings of the recorded one."""
    for name in ("LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"):
        line.environment.pop(name, None)
    log = recorded.output / "events.jsonl"
    return line.call_resolve(checkout, "--model", f"replay:{log}")


def of(events: list[Event], kind: type[EventBase]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def test_a_condensed_run_replays_exactly_without_its_settings(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """A whole run and its replay, because the condensed conversation has to follow from the log
    alone."""
    model_endpoint.answer_with(work)
    recorded = condensed(command_line, checkout)
    assert recorded.exit_code == 0, recorded.stderr
    asked = len(model_endpoint.requests)
    replayed = replay(command_line, recorded, checkout)
    assert replayed.exit_code == 0, replayed.stderr
    assert replayed.outcome["divergences"] == []
    assert len(model_endpoint.requests) == asked
    services = of(recorded.events, ServiceReplied)
    assert services and {s.completion.model for s in services} == {"openai/notes"}
    assert recorded.outcome["iterations"] == LAST + 1, "the condenser's replies are no steps"
    before, now = of(recorded.events, Condensation), of(replayed.events, Condensation)
    assert len(before) >= 2
    assert all("Read the steps" in c.notes and "calc.py" in c.summary for c in before)
    assert [(c.notes, len(c.forgotten)) for c in now] == [
        (c.notes, len(c.forgotten)) for c in before
    ]
