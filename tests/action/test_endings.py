"""The Action's container where nothing is asked for, and where the job is cancelled.

The other endings of the Action are in tests/runs/test_endings.py, without the container."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.action.scenario import Scenario
from tests.parts.run_action import LABEL
from tests.parts.runs import bash
from tests.parts.waiting import until

pytestmark = [
    pytest.mark.engine,
    pytest.mark.xdist_group("action"),
    pytest.mark.timeout(900),  # the first test builds the image
]


def test_an_event_that_asks_for_nothing_ends_at_once(scenario: Scenario) -> None:
    comment = scenario.mention(text="see `@agent` in the README")
    event = {**scenario.event(comment), "padding": "x" * 20_000_000}
    run = scenario.run(event, PYTHONPROFILEIMPORTTIME="1")
    assert run.exit_code == 0, run.logs
    assert run.outputs == {"state": "ignored"}
    assert run.summary == ""
    assert "Nothing to do: the text doesn't ask @agent for anything." in run.logs
    imported = {line.rpartition("|")[2].strip() for line in run.logs.splitlines()}
    assert "resolver.entrypoints.action" in imported
    assert not imported & {"litellm", "dbos", "fastapi"}
    assert not scenario.github.requests
    assert not scenario.output.exists()


def test_a_cancelled_job_ends_in_time_and_says_so(scenario: Scenario, busybox_image: str) -> None:
    scenario.sandbox = busybox_image
    scenario.endpoint.script(bash("echo begun; sleep 300", timeout=400))
    event = scenario.event()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(scenario.run, event)
        until(lambda: scenario.endpoint.requests or waiting.done())
        assert not waiting.done(), waiting.result().logs
        log = scenario.output / "events.jsonl"
        until(lambda: "sleep 300" in log.read_text())
        label = f"{LABEL}={scenario.workspace}"
        [container] = scenario.engine.containers.list(ignore_removed=True, filters={"label": label})
        container.kill("SIGINT")
        run = waiting.result(60)
    assert run.exit_code == 1, run.logs
    assert run.outputs["state"] == "stopped"
    [comment] = scenario.bot_comments()
    assert "SIGINT" in comment
    scenario.wait_until_sandboxes_removed()
    assert json.loads((scenario.output / "outcome.json").read_text())["state"] == "stopped"
    assert (scenario.output / "events.jsonl").stat().st_size > 0
