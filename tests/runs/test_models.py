"""Runs that change their model on the way, and runs that their money ends.

Whole runs, because calls, money, log and outcome have to agree, or nothing may be set up before the
model is checked.
"""

from pathlib import Path
from typing import Any

import pytest

from resolver.events.actions import CondensationRequest
from resolver.events.lifecycle import Condensation, ModelRetried, ModelSwitched, StageCompleted
from tests.parts.model_endpoint import Answer, ModelEndpoint, empty, error, reply, tool_call
from tests.parts.runs import MODEL_KEY, CommandLine, bash, finish, git, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
ISSUE = "# add() subtracts\n\n2 + 2 gives 0."


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "calc", FILES)


@pytest.mark.nightly
def test_a_run_whose_model_fails_in_the_middle_continues_with_another(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    work = iter([bash("cat calc.py"), bash("sed -i 's/a - b/a + b/' calc.py"), finish("Make add")])
    calls = 0

    def answer(body: dict[str, Any]) -> Answer:
        nonlocal calls
        calls += 1
        if body["model"] == "scripted" and calls > 1:
            return error(503, "out of order")
        return next(work)

    model_endpoint.answer_with(answer)
    command_line.environment |= {
        "RESOLVER_FALLBACK_MODELS": "openai/spare",
        "RESOLVER_MODEL_RETRIES": "0",
    }
    done = command_line.resolve(checkout, issue=ISSUE)
    assert done.exit_code == 0, done.stderr
    assert git(checkout, "show", "agent/add-subtracts:calc.py").endswith("return a + b")
    (switch,) = [event for event in done.events if isinstance(event, ModelSwitched)]
    assert (switch.from_model, switch.to_model) == ("openai/scripted", "openai/spare")
    assert "out of order" in switch.reason
    assert [r.body["model"] for r in model_endpoint.requests] == [
        "scripted", "scripted", "spare", "spare",
    ]  # fmt: skip
    assert "From here on, openai/spare is used" in (done.output / "trace.md").read_text()


@pytest.mark.nightly
def test_a_run_stops_before_the_call_that_would_pass_its_budget(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.answer_with(lambda body: bash(f"echo {len(body['messages'])}"))
    command_line.environment |= {
        "RESOLVER_MODEL_OPTIONS": (
            "{input_cost_per_token: 0.00001, output_cost_per_token: 0.000001}"
        ),
        "RESOLVER_MAX_BUDGET": "0.005",
    }
    done = command_line.call_resolve(checkout, issue=ISSUE)
    assert done.exit_code == 4
    assert done.outcome["cost"] <= 0.005
    assert "of the budget is left" in done.outcome["reason"]


@pytest.mark.nightly
def test_a_script_in_a_file_is_a_model(command_line: CommandLine, checkout: Path) -> None:
    script = command_line.folder / "script.yml"
    script.write_text(
        "- text: I mend it.\n"
        "  calls:\n"
        "    - execute_bash: {command: \"sed -i 's/a - b/a + b/' calc.py\"}\n"
        "- calls: [{finish: {message: Make add add, task_completed: 'true'}}]\n"
    )
    command_line.environment |= {"LLM_MODEL": f"scripted:{script}", "LLM_BASE_URL": ""}
    done = command_line.call_resolve(checkout, issue=ISSUE)
    assert done.exit_code == 0, done.stderr
    assert git(checkout, "show", "agent/add-subtracts:calc.py").endswith("return a + b")
    assert str(command_line.folder).encode() not in (done.output / "outcome.json").read_bytes()


@pytest.mark.nightly
def test_a_busy_endpoint_is_waited_for_and_the_log_says_so(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    busy = error(429, "too many", retry_after=0.01)
    model_endpoint.script(busy, bash("true"), busy, empty(), finish("Nothing to do"))
    done = command_line.call_resolve(checkout, issue=ISSUE)
    assert done.exit_code == 3, done.stderr
    retries = [event for event in done.events if isinstance(event, ModelRetried)]
    assert [(r.attempt, r.wait, r.service) for r in retries] == [
        (1, 0.01, "agent"), (1, 0.01, "agent"), (1, 0.0, "agent"),
    ]  # fmt: skip
    assert "too many" in retries[0].reason
    assert retries[2].reason == "the reply was empty"
    assert "The model call was retried" in (done.output / "trace.md").read_text()


@pytest.mark.nightly
def test_a_conversation_that_is_too_long_is_condensed_and_the_run_continues(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    too_long = error(400, "too long", code="context_length_exceeded")
    steps = [bash(f"echo {number}") for number in range(6)]
    repair = bash("sed -i 's/a - b/a + b/' calc.py")
    model_endpoint.script(*steps, too_long, repair, finish("Make add"))
    done = command_line.call_resolve(checkout, issue=ISSUE)
    assert done.exit_code == 0, done.stderr
    assert any(isinstance(event, CondensationRequest) for event in done.events)
    [condensation] = [event for event in done.events if isinstance(event, Condensation)]
    assert condensation.forgotten
    before, after = (len(r.body["messages"]) for r in model_endpoint.requests[6:8])
    assert after < before


@pytest.mark.nightly
def test_a_key_that_is_not_accepted_ends_the_run_at_once_with_its_variable(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.script(error(401, f"bad key {MODEL_KEY}"))
    done = command_line.call_resolve(checkout, issue=ISSUE)
    assert done.exit_code == 1
    assert len(model_endpoint.requests) == 1
    assert "LLM_API_KEY" in done.stdout + done.stderr
    assert MODEL_KEY.encode() not in done.everything


def test_a_key_that_is_not_accepted_ends_the_run_before_sandbox_and_setup(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path, tmp_path: Path
) -> None:
    """A run that ends early: the order of its stages keeps a wrong key from a set-up."""
    model_endpoint.listing = error(401, f"bad key {MODEL_KEY}")
    model_endpoint.script(error(401, f"bad key {MODEL_KEY}"))
    was_set_up = tmp_path / "was-set-up"
    done = command_line.call_resolve(checkout, issue=ISSUE, RESOLVER_SETUP=f"touch {was_set_up}")
    assert done.exit_code == 1
    assert [event.kind for event in done.events] == ["run_started"]
    assert not was_set_up.exists()
    assert "did not accept the key" in done.stderr
    assert "LLM_API_KEY" in done.stderr
    assert MODEL_KEY.encode() not in done.everything


@pytest.mark.nightly
def test_the_model_is_checked_before_the_sandbox_and_what_that_costs_is_counted(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.models = ["another"]
    model_endpoint.script(reply("ready"), finish("Nothing to do"))
    done = command_line.call_resolve(checkout, issue=ISSUE)
    steps = [
        event.stage if isinstance(event, StageCompleted) else event.kind for event in done.events
    ]
    assert steps[:4] == ["run_started", "service_replied", "model", "sandbox"]
    assert done.outcome["iterations"] == 1
    assert done.outcome["services"]["check"]["cost"] == pytest.approx(0.00011)
    assert done.outcome["cost"] == pytest.approx(0.00022)


@pytest.mark.nightly
def test_a_model_that_is_listed_is_confirmed_without_a_call(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.models = ["scripted"]
    model_endpoint.script(finish("Nothing to do"))
    done = command_line.call_resolve(checkout, issue=ISSUE)
    stages = [event.stage for event in done.events if isinstance(event, StageCompleted)]
    assert stages[:2] == ["model", "sandbox"]
    assert (len(model_endpoint.listings), len(model_endpoint.requests)) == (1, 1)


@pytest.mark.nightly
def test_a_fallback_stands_in_for_a_model_that_is_not_known_but_not_for_a_wrong_key(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        return error(404, "no such model") if body["model"] == "scripted" else finish("Nothing")

    model_endpoint.models = ["spare"]
    model_endpoint.answer_with(answer)
    more = {"RESOLVER_FALLBACK_MODELS": "openai/spare", "RESOLVER_MODEL_RETRIES": "0"}
    assert command_line.call_resolve(checkout, issue=ISSUE, **more).exit_code == 3
    model_endpoint.listing = error(401, "bad key")
    model_endpoint.answer_with(lambda _: error(401, "bad key"))
    refused = command_line.call_resolve(checkout, issue=ISSUE, **more)
    assert [event.kind for event in refused.events] == ["run_started"]


@pytest.mark.nightly
def test_a_delegate_asks_its_own_model_and_the_costs_are_distinguished(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """A whole run, because only in one does an agent hand a task to another."""
    hand_on = tool_call("delegate", {"agent": "ReadOnlyAgent", "task": "What does add() do?"})
    work = {
        "scripted": iter([hand_on, finish("Nothing to do")]),
        "small": iter([finish("It subtracts.")]),
    }
    model_endpoint.answer_with(lambda body: next(work[body["model"]]))
    command_line.environment |= {
        "RESOLVER_SERVICES": "{ReadOnlyAgent: {model: openai/small, temperature: 0}}",
        "RESOLVER_MODEL_OPTIONS": "{input_cost_per_token: 0.000001, output_cost_per_token: 0}",
    }
    done = command_line.call_resolve(checkout, issue=ISSUE)
    assert done.exit_code == 3, done.stderr
    models = done.outcome["models"]
    assert models["openai/scripted"]["calls"] == 2
    assert models["openai/scripted"]["cost"] == pytest.approx(0.0002)
    assert models["openai/small"]["calls"] == 1
    assert models["openai/small"]["cost"] is None, "prices are of one model"
    assert done.outcome["services"]["agent"]["calls"] == 3
    assert "openai/small: unknown for 1 reply" in (done.output / "trace.md").read_text()


def test_the_key_of_a_service_is_in_no_sandbox_and_in_nothing_that_is_written(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    """A whole run, because the keys must be in none of the files, with those of every call."""
    key = "sk-service-canary-51d0c2"
    model_endpoint.script(
        bash("env; cat /proc/*/environ | tr '\\0' '\\n'"),
        bash(f"echo {key} {MODEL_KEY}"),
        finish("Nothing"),
    )
    folder = command_line.folder / "calls"
    command_line.environment |= {
        "RESOLVER_SERVICES": f"{{condenser: {{api_key: {key}}}, agent: {{api_key: {key}}}}}",
        "RESOLVER_COMPLETIONS_DIR": str(folder),
    }
    done = command_line.resolve(checkout, issue=ISSUE)
    assert {r.headers["authorization"] for r in model_endpoint.requests} == {f"Bearer {key}"}
    files = sorted(folder.rglob("*.json"))
    assert [path.name for path in files] == ["00001.json", "00002.json", "00003.json"]
    assert files[0].parent.name == done.outcome["run"]
    for secret in (key, MODEL_KEY):
        assert secret.encode() not in done.everything
        assert not [p for p in command_line.folder.rglob("*.json") if secret in p.read_text()]
    request = model_endpoint.requests[1].body["messages"][-1]["content"]
    assert "PATH=" in request
    assert key not in request
