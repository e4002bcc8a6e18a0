"""Renders the workflow that `resolver init` writes, and validates what is inserted into it."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.github.events.starting_events import (
    ListeningPolicy,
    starting_actions,
    starting_events_by_name,
)

FOLDER = ".github/workflows"
WORKFLOW = f"{FOLDER}/agent.yml"

CALLED_CONDITION_VALUES: Final = MappingProxyType(
    {name: f"inputs.{name.replace('_', '-')}" for name in ListeningPolicy.model_fields}
)
"""What the condition of the reusable workflow compares an event with: its caller's inputs."""


def job_condition(values: Mapping[str, str]) -> str:
    """Return the lines of the `if:` of a job that handles events, indented, without the last
    line end.

    `values` are parts of an expression, by the field of `ListeningPolicy` whose value they are.
    """
    rows = [
        (name, event.action, event.condition.format_map(values))
        for name, event in starting_events_by_name()
    ]
    return render(
        "init/condition.yml.j2",
        conversation=[row for row in rows if not row[0].startswith("pull_request")],
        pull_request=[row for row in rows if row[0].startswith("pull_request")],
    ).rstrip()


def workflow_text(action: str, mention: str, label: str, *, installs: bool) -> str:
    """Return the text of the workflow file. Raises UsageError for a value that it cannot contain.

    `installs` says if the setup downloads packages.
    """
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
        condition=job_condition(values),
        installs=installs,
    )


def plain_yaml(description: str, value: str) -> str:
    """Return `value` if it is safe in an expression and in YAML. Raises UsageError if it is not."""
    if not re.fullmatch(r"[@/\w][\w.:/ -]*", value) or value != value.strip():
        raise UsageError(
            f"the {description} {value!r} can't be used in a workflow", "choose a simpler one"
        )
    return value
