"""What prepares the project's environment: the first of the places where repositories say it."""

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
    """What is run before the agent starts.

    source: the file or the variable that it comes from. script: bash, run in the repository's root.
    left_out: what the source asks for and is not done, in words for a person.
    by_operator: whoever runs Resolver has set it, and not the repository.
    """

    source: str
    script: str
    left_out: tuple[str, ...] = ()
    by_operator: bool = False


def find_setup(read: Read, setting: str = "") -> SetupPlan | None:
    """The first that exists of: the setting `setup`, `.agents/setup.sh`, `.openhands/setup.sh`,
    the run steps of `copilot-setup-steps.yml`, the devcontainer's create commands.

    setting: the setting in force, which whoever runs Resolver sets before the repository does.
    Raises UsageError for a file that can't be read.
    """
    if setting.strip():
        by_operator = _setup_of_repository(read) != setting
        return SetupPlan(OPERATOR if by_operator else SETTING, setting, by_operator=by_operator)
    for path in SCRIPTS:
        if read(path) is not None:
            # Sourced, so that what it exports reaches the agent's shell.
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
    """The `run` steps, in order; a step that uses an action can't be done outside of a workflow.

    Source: https://docs.github.com/en/copilot/how-tos/use-copilot-agents/coding-agent/customize-the-agent-environment
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
    """One step as a shell of its own, with what earlier steps have put into GITHUB_ENV and
    GITHUB_PATH."""
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
