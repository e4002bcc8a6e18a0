"""Renders the workflow that `resolver init` writes, and validates what is inserted into it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.github.context.workflows import FOLDER, WorkflowFile, read_workflow
from resolver.github.events.starting_events import (
    ListeningPolicy,
    starting_actions,
    starting_events_by_name,
)

WORKFLOW = f"{FOLDER}/agent.yml"

EVERY_NIGHT = "17 3 * * *"
"""Default schedule of a sweep, in UTC."""

DEFAULT_TEST_WORKFLOW = "CI"
"""Name for the workflow that runs tests if none is found."""

_MAX_WORKFLOW_BYTES = 200_000
"""Maximum size in bytes of a workflow that is read."""

_CRON = re.compile(
    r"[\d*][\d*/,-]*(?: [\d*][\d*/,-]*){2} [\dA-Z*][\dA-Z*/,-]* [\dA-Z*][\dA-Z*/,-]*"
)
_NAME = re.compile(r"[^\x00-\x1f\x7f\"\\${}]{1,200}")


@dataclass(frozen=True)
class Features:
    """Optional features of the workflow.

    `schedule` is the cron expression of a sweep, "" for none. `fix_checks` is the value of the
    setting `fix_failing_checks`, "" for none. `checked` are the names of the workflows whose
    failures start work.
    """

    schedule: str = ""
    fix_checks: str = ""
    checked: tuple[str, ...] = ()


CALLED_CONDITION_VALUES: Final = MappingProxyType(
    {name: f"inputs.{name.replace('_', '-')}" for name in ListeningPolicy.model_fields}
)
"""What the condition of the reusable workflow compares an event with: its caller's inputs."""


def job_condition(values: Mapping[str, str], *, fix_checks: str) -> str:
    """Return the lines of the `if:` of a job that handles events, indented, without the last
    line end.

    `values` are parts of an expression, by the field of `ListeningPolicy` whose value they are.
    `fix_checks` is that of `Features`.
    """
    rows = [
        (name, event.action, event.condition.format_map(values))
        for name, event in starting_events_by_name()
    ]
    return render(
        "init/condition.yml.j2",
        conversation=[row for row in rows if not row[0].startswith("pull_request")],
        pull_request=[row for row in rows if row[0].startswith("pull_request")],
        fix_checks=fix_checks,
    ).rstrip()


def workflow_text(
    action: str, mention: str, label: str, *, installs: bool, features: Features | None = None
) -> str:
    """Return the text of the workflow file. Raises UsageError for a value that it cannot contain.

    `installs` says if the setup downloads packages.
    """
    chosen = features or Features()
    values = {
        "bot_login": "vars.AGENT_LOGIN",
        "mention": f"'{plain_yaml('mention', mention)}'",
        "label": f"'{plain_yaml('label', label)}'",
    }
    return render(
        "init/workflow.yml.j2",
        action=action,
        mention=mention,
        label=label,
        events=starting_actions(),
        condition=job_condition(values, fix_checks=chosen.fix_checks),
        installs=installs,
        schedule=_cron(chosen.schedule) if chosen.schedule else "",
        fix_checks=chosen.fix_checks,
        checked=[_name(name) for name in chosen.checked or (DEFAULT_TEST_WORKFLOW,)],
    )


def find_test_workflows(root: Path) -> tuple[str, ...]:
    """Return the names of a checkout's workflows that run tests on a push or a pull request.

    Workflows that run the agent are left out.
    """
    workflows = {workflow.path: workflow for workflow in _workflows(root)}
    return tuple(
        dict.fromkeys(
            workflow.name
            for workflow in workflows.values()
            if workflow.on_changes
            and not workflow.agents
            and _NAME.fullmatch(workflow.name)
            and any(
                workflows[path].runs_tests
                for path in (workflow.path, *workflow.calls)
                if path in workflows
            )
        )
    )


def _workflows(root: Path) -> Iterator[WorkflowFile]:
    folder = root / FOLDER
    for file in sorted(folder.glob("*.y*ml")) if folder.is_dir() else ():
        if (
            file == root / WORKFLOW
            or file.is_symlink()
            or not file.is_file()
            or file.stat().st_size > _MAX_WORKFLOW_BYTES
        ):
            continue
        workflow = read_workflow(f"{FOLDER}/{file.name}", file.read_bytes())
        if workflow is not None:
            yield workflow


def plain_yaml(description: str, value: str) -> str:
    """Return `value` if it is safe in an expression and in YAML. Raises UsageError if it is not."""
    if not re.fullmatch(r"[@/\w][\w.:/ -]*", value) or value != value.strip():
        raise UsageError(
            f"the {description} {value!r} can't be used in a workflow", "choose a simpler one"
        )
    return value


def _cron(value: str) -> str:
    text = " ".join(value.split())
    if not _CRON.fullmatch(text):
        raise UsageError(
            f"{value!r} is not a schedule", 'use cron syntax, for example --schedule "0 6 * * 1"'
        )
    return text


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise UsageError(f"{value!r} can't be used as a workflow name here", "give its file to it")
    return value
