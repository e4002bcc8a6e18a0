"""Renders the workflow that `resolver init` writes, and validates what is inserted into it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import yaml

from resolver.config.bounded_yaml import read_yaml
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.github.events.starting_events import (
    ListeningPolicy,
    starting_actions,
    starting_events_by_name,
)

FOLDER = ".github/workflows"
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


def find_check_workflows(root: Path) -> tuple[str, ...]:
    """Return the names of a checkout's workflows that start on a pull request or a push, for a
    person to choose from."""
    folder = root / FOLDER
    files = sorted(folder.glob("*.y*ml")) if folder.is_dir() else []
    return tuple(dict.fromkeys(filter(None, map(_name_if_on_changes, files))))


def _name_if_on_changes(file: Path) -> str | None:
    if file.name == Path(WORKFLOW).name or file.is_symlink() or not file.is_file():
        return None
    try:
        data = read_yaml(file.read_bytes()[:_MAX_WORKFLOW_BYTES])
    except yaml.YAMLError:
        return None
    # In YAML 1.1, the key `on` is the boolean true: https://yaml.org/type/bool.html
    on = data.get("on", data.get(True)) if isinstance(data, dict) else None
    if not isinstance(on, str | list | dict) or not {"pull_request", "push"} & set(
        [on] if isinstance(on, str) else on
    ):
        return None
    name = data.get("name")
    name = name if isinstance(name, str) and name.strip() else f"{FOLDER}/{file.name}"
    return name if _NAME.fullmatch(name) else None


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
