"""Finds the commands that set the project's environment up, in the usual places for them."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from resolver.config.bounded_yaml import read_yaml
from resolver.errors import UsageError
from resolver.runtime.environment.devcontainer import Read, read_devcontainer

SETTING = ".github/resolver.yml"
OPERATOR = "RESOLVER_SETUP"
SCRIPTS = (".agents/setup.sh", ".openhands/setup.sh")
COPILOT = tuple(f".github/workflows/copilot-setup-steps.{end}" for end in ("yml", "yaml"))
COPILOT_JOB = "copilot-setup-steps"

_EXPRESSION = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


@dataclass(frozen=True)
class SetupPlan:
    """The set-up that runs before the agent starts.

    source: the file or variable that it comes from.
    script: bash, run in the repository's root.
    left_out: parts of the source that are not executed, in words for people.
    by_operator: True if the operator of Resolver has set it, and not the repository.
    """

    source: str
    script: str
    left_out: tuple[str, ...] = ()
    by_operator: bool = False


def find_setup(read: Read, setting: str = "") -> SetupPlan | None:
    """Return the set-up from the first of these that exists, or None.

    The order is: the setting `setup`, `.agents/setup.sh`, `.openhands/setup.sh`, the run steps of
    `copilot-setup-steps.yml`, the devcontainer's create commands.
    setting: the value of the setting in force; the operator's takes precedence over the
        repository's.
    Raises UsageError for a file that can't be read.
    """
    if setting.strip():
        by_operator = _setup_of_repository(read) != setting
        return SetupPlan(OPERATOR if by_operator else SETTING, setting, by_operator=by_operator)
    for path in SCRIPTS:
        if read(path) is not None:
            # Sourced, so that the variables it exports reach the agent's shell.
            return SetupPlan(path, f". ./{path}")
    for path in COPILOT:
        data = read(path)
        if data is not None:
            return _copilot(path, data)
    devcontainer = read_devcontainer(read)
    if devcontainer is not None and devcontainer.script:
        left_out = tuple(f"`{key}` of {devcontainer.path}" for key in devcontainer.unused)
        return SetupPlan(devcontainer.path, f"set -e\n{devcontainer.script}", left_out)
    return None


def _setup_of_repository(read: Read) -> object:
    try:
        content = read_yaml(read(SETTING) or b"")
    except yaml.YAMLError:
        return None
    return content.get("setup") if isinstance(content, dict) else None


def _copilot(path: str, data: bytes) -> SetupPlan:
    """Return the `run` steps, in order. Steps that use an action need a workflow and are left out.

    Source:
    https://docs.github.com/en/copilot/how-tos/use-copilot-agents/coding-agent/customize-the-agent-environment
    """
    try:
        content = read_yaml(data)
        job = content["jobs"][COPILOT_JOB]
        steps = [step for step in job["steps"] if isinstance(step, dict)]
    except (yaml.YAMLError, TypeError, KeyError) as error:
        raise UsageError(
            f"{path}: the steps of the job {COPILOT_JOB} can't be read: {error!r:.200}",
            "correct the file on the default branch",
        ) from error
    parts: list[str] = ["set -e"]
    left_out: list[str] = []
    for step in steps:
        if isinstance(step.get("run"), str):
            parts.append(_step({**_values(job, "env"), **_values(step, "env")}, step))
        elif "uses" in step and not str(step["uses"]).startswith("actions/checkout@"):
            left_out.append(f"the step that uses {step['uses']}")
    return SetupPlan(path, "\n".join(parts), tuple(left_out))


def _step(variables: Mapping[str, str], step: Mapping[str, Any]) -> str:
    """Return one step as a subshell, followed by taking over its GITHUB_ENV and GITHUB_PATH."""
    folder = shlex.quote(str(step.get("working-directory") or "."))
    exports = "".join(
        f"export {name}={shlex.quote(value)}\n"
        for name, value in variables.items()
        if name.isidentifier()
    )
    run = _EXPRESSION.sub("", step["run"]).strip()
    return f"(\ncd {folder}\n{exports}{run}\n)\nresolver_take_env"


def _values(holder: Mapping[str, Any], key: str) -> dict[str, str]:
    found = holder.get(key)
    if not isinstance(found, dict):
        return {}
    return {str(name): _EXPRESSION.sub("", str(value)) for name, value in found.items()}
