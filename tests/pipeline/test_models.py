"""Runs that change their model on the way, and runs that their money ends."""

from pathlib import Path
from typing import Any

import pytest

from resolver.events.lifecycle import ModelSwitched
from tests.parts.model_endpoint import Answer, ModelEndpoint, error
from tests.parts.runs import MODEL_KEY, CommandLine, bash, finish, git, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
ISSUE = "# add() subtracts\n\n2 + 2 gives 0."


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return make_checkout(tmp_path / "calc", FILES)


def test_a_run_whose_model_goes_down_in_the_middle_goes_on_with_another(
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
    assert "From here on openai/spare is asked" in (done.output / "trace.md").read_text()


def test_a_run_stops_before_the_call_that_would_pass_its_budget(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.answer_with(lambda body: bash(f"echo {len(body['messages'])}"))
    command_line.environment |= {
        "RESOLVER_INPUT_COST_PER_TOKEN": "0.00001",
        "RESOLVER_MAX_BUDGET": "0.005",
    }
    done = command_line.resolve(checkout, issue=ISSUE)
    assert done.exit_code == 4
    assert done.outcome["cost"] <= 0.005
    assert "of the budget is left" in done.outcome["reason"]


def test_a_script_in_a_file_is_a_model(command_line: CommandLine, checkout: Path) -> None:
    script = command_line.folder / "script.yml"
    script.write_text(
        "- text: I mend it.\n"
        "  calls:\n"
        "    - execute_bash: {command: \"sed -i 's/a - b/a + b/' calc.py\"}\n"
        "- calls: [{finish: {message: Make add add, task_completed: 'true'}}]\n"
    )
    command_line.environment |= {"LLM_MODEL": f"scripted:{script}", "LLM_BASE_URL": ""}
    done = command_line.resolve(checkout, issue=ISSUE)
    assert done.exit_code == 0, done.stderr
    assert git(checkout, "show", "agent/add-subtracts:calc.py").endswith("return a + b")
    assert str(command_line.folder).encode() not in (done.output / "outcome.json").read_bytes()


def test_every_call_is_kept_in_a_folder_without_secrets(
    command_line: CommandLine, model_endpoint: ModelEndpoint, checkout: Path
) -> None:
    model_endpoint.script(bash(f"echo {MODEL_KEY}"), finish("Nothing to do"))
    folder = command_line.folder / "calls"
    command_line.environment |= {"RESOLVER_COMPLETIONS_DIR": str(folder)}
    done = command_line.resolve(checkout, issue=ISSUE)
    kept = sorted(folder.rglob("*.json"))
    assert [p.name for p in kept] == ["00001.json", "00002.json"]
    assert kept[0].parent.name == done.outcome["run"]
    assert not [p for p in kept if MODEL_KEY in p.read_text()]
