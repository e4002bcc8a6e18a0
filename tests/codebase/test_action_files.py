"""Tests of action.yml, the workflows and the generated documentation."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from resolver.cli.agent_workflow import workflow_text
from resolver.config.settings import EVENT_SETTINGS, Settings
from resolver.config.sources import input_variables, own_variables
from scripts.attacks_docs import attacks_page
from scripts.events_docs import events_page
from scripts.generated_parts import generated_files
from scripts.reference_docs import reference_pages
from scripts.settings_docs import settings_page

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


@pytest.mark.parametrize(
    "command",
    [
        ["check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"],
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows",
         *sorted(str(p) for p in (ROOT / ".github/workflows").glob("*.yml"))],
        ["check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml"],
        ["zizmor", "--offline", "--no-progress", "."],
    ],
    ids=["action schema", "workflow schema", "dependabot schema", "workflow security"],
)  # fmt: skip
def test_the_published_checkers_report_nothing(command: list[str]) -> None:
    result = subprocess.run(
        [TOOLS / command[0], *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_actions_of_others_are_pinned_by_commit() -> None:
    folders = {".github": "*.yml", "prompts/init": "*.j2", "docs": "*.md"}
    texts = [p.read_text() for name, glob in folders.items() for p in (ROOT / name).rglob(glob)]
    used = [u for text in texts for u in re.findall(r"^[\s-]*uses: *(\S.*)$", text, re.MULTILINE)]
    foreign_actions = [
        action for action in used if not re.match(r"\./|OWNER/resolver|\{\{ action \}\}", action)
    ]
    assert len(foreign_actions) >= 10
    assert [
        action
        for action in foreign_actions
        if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", action)
    ] == []


def test_what_is_generated_is_up_to_date() -> None:
    pages = {
        "docs/reference/settings.md": settings_page(),
        "docs/reference/attacks.md": attacks_page(),
        "docs/reference/events.md": events_page(),
        **generated_files(),
        **reference_pages(),
    }
    stale = [path for path, text in pages.items() if (ROOT / path).read_text() != text]
    assert stale == [], "run `make docs`"


def workflows_with_close() -> dict[str, str]:
    """Return the workflows that have a job to close what a killed run has left."""
    own_workflows = {
        n: (ROOT / f".github/workflows/{n}.yml").read_text() for n in ("agent", "resolve")
    }
    written = {"init": workflow_text("octo/resolver@v1", "@fixer", "fix me", installs=True)}
    return own_workflows | written


def parsing_settings_of(job: Any) -> dict[str, Any]:
    """Return the settings for event parsing that the job's step passes, as variables."""
    heard = [(k, f) for k, f in Settings.model_fields.items() if k in EVENT_SETTINGS]
    names = {
        variable
        for name, field in heard
        for variable in (*input_variables(name, field), *own_variables(name, field))
    }
    [step] = [s for s in job["steps"] if {"model", "close"} & set(s.get("with", {}))]
    given = step.get("env", {}) | {f"INPUT_{n.upper()}": v for n, v in step["with"].items()}
    return {name: value for name, value in given.items() if name in names}


def test_the_close_job_parses_an_event_like_the_job_before_it() -> None:
    for name, text in workflows_with_close().items():
        jobs = yaml.safe_load(text)["jobs"]
        heard = parsing_settings_of(jobs["resolve"])
        assert parsing_settings_of(jobs["close"]) == heard, name
        assert heard or name == "agent", "it uses the defaults"
        key = [value for value in jobs["close"]["steps"][-1]["with"] if "llm" in value]
        assert not key, "it asks no model"
