"""The files that a maintainer copies or reads are those that are tested."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from resolver.config.declaration import setting_arguments
from resolver.config.settings import Settings
from resolver.config.sources import input_variables
from tests.action.image import ROOT

DOCS = (ROOT / "docs/how-to/action.md").read_text()
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
CHECKOUT = "actions/checkout@"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The workflow of the docs, where a maintainer puts it."""
    text, _ = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    file = tmp_path / ".github" / "workflows" / "agent.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def steps_without_checkout(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The job's steps; our own is named alike in both."""
    steps = [s for s in job["steps"] if not s.get("uses", "").startswith(CHECKOUT)]
    return [{**s, "uses": "us"} if s.get("id") == "resolver" else s for s in steps]


def test_the_workflow_to_copy_is_our_own(copied: Path) -> None:
    own_workflow = yaml.safe_load((ROOT / ".github/workflows/agent.yml").read_text())
    copied_workflow = yaml.safe_load(copied.read_text())
    for name in ("resolve", "close"):
        our_job, their_job = own_workflow["jobs"].pop(name), copied_workflow["jobs"].pop(name)
        assert steps_without_checkout(our_job) == steps_without_checkout(their_job)
        assert {**our_job, "steps": 0} == {**their_job, "steps": 0}
        [uses] = [s["uses"] for s in their_job["steps"] if s.get("id") == "resolver"]
        assert re.fullmatch(r"OWNER/resolver@v\d+\.\d+\.\d+", uses)
    assert own_workflow == copied_workflow


def test_the_ten_lines_call_the_reusable_workflow() -> None:
    _, text = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    assert len(text.splitlines()) == 10
    caller = yaml.safe_load(text)["jobs"]["agent"]
    called = yaml.safe_load((ROOT / ".github/workflows/resolve.yml").read_text())
    takes = called[True]["workflow_call"]  # YAML's `on`
    assert set(caller["with"]) <= set(takes["inputs"])
    assert set(caller["secrets"]) <= set(takes["secrets"])
    assert {n for n, s in takes["secrets"].items() if s.get("required")} <= set(caller["secrets"])
    for job in called["jobs"].values():
        assert job["permissions"].items() <= caller["permissions"].items()


def test_the_reusable_workflow_passes_its_inputs_to_the_action() -> None:
    called = yaml.safe_load((ROOT / ".github/workflows/resolve.yml").read_text())
    takes = called[True]["workflow_call"]
    [step] = [s for s in called["jobs"]["resolve"]["steps"] if s.get("id") == "resolver"]
    assert set(step["with"]) <= set(ACTION["inputs"])
    passed = set(takes["inputs"]) - {"timeout-minutes"} | set(takes["secrets"])
    assert set(step["with"]) == passed
    assert set(takes["outputs"]) <= set(ACTION["outputs"])
    own = yaml.safe_load((ROOT / ".github/workflows/agent.yml").read_text())["jobs"]["resolve"]
    assert called["jobs"]["resolve"]["permissions"] == own["permissions"]


def test_what_a_repository_may_set_has_no_default_in_the_action() -> None:
    """The runner sends each default as if the workflow had set it, and that is stronger."""
    for setting, field in Settings.model_fields.items():
        sent = {n.removeprefix("INPUT_").lower() for n in input_variables(setting, field)}
        for name in sent & set(ACTION["inputs"]) if setting_arguments(field)["repository"] else ():
            assert "default" not in ACTION["inputs"][name], name
