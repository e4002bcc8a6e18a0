"""Renders the workflow that `resolver init` writes, and validates what is inserted into it."""

import json
import re
from collections.abc import Mapping
from importlib.metadata import Distribution, distribution
from types import MappingProxyType
from typing import Final

from resolver import __version__
from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.github.events.starting_events import (
    ListeningPolicy,
    starting_actions,
    starting_events_by_name,
)

FOLDER = ".github/workflows"
WORKFLOW = f"{FOLDER}/agent.yml"

REMOTE = re.compile(
    r"(?:https?://(?:[^/@]+@)?|ssh://git@|git@)([\w.-]+(?::\d+)?)[/:]([\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
"""URL of a repository on a GitHub server: the groups are the server and OWNER/NAME."""

PLACEHOLDER = f"OWNER/resolver@v{__version__}"
"""Address of an Action that is not known."""

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


def action_address(given: str | None) -> str:
    """Return the address OWNER/NAME@REF of the Action: the given one, or that of this Resolver.

    Its owner is OWNER if this Resolver comes neither from GitHub nor from a release. Raises
    UsageError if the given one is malformed.
    """
    if given is None:
        return installed_from(distribution("resolver-agent"))
    if not re.fullmatch(r"[\w.-]+/[\w./-]+@[\w./-]+", given):
        raise UsageError(
            f"{given!r} does not have the form OWNER/NAME@REF", f"give --action {PLACEHOLDER}"
        )
    return given


def installed_from(package: Distribution) -> str:
    """Return the repository and commit that pip installed a package from, or the repository and tag
    of its release.

    Only the package of a release names its repository: on a branch the account is OWNER, see
    pyproject.toml. Sources:
    https://packaging.python.org/en/latest/specifications/direct-url/
    https://packaging.python.org/en/latest/specifications/core-metadata/
    """
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    commit = origin.get("vcs_info", {}).get("commit_id")
    remote = REMOTE.fullmatch(str(origin.get("url", "")))
    if commit and remote:
        return f"{remote[2]}@{commit}"
    for entry in package.metadata.get_all("Project-URL") or ():
        label, _, url = entry.partition(", ")
        remote = REMOTE.fullmatch(url)
        if label == "Repository" and remote:
            return f"{remote[2]}@v{__version__}"
    return PLACEHOLDER
