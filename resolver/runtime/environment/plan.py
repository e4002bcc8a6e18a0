"""Finds what a repository says about its environment: `devcontainer.json` and set-up commands.

The commands are looked for in the usual places for them. Of `devcontainer.json` only the parts that
matter for a sandbox are read: the image and the commands. Source:
https://containers.dev/implementors/json_reference/
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import json5
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resolver.config.bounded_yaml import read_yaml
from resolver.errors import UsageError
from resolver.models.base import describe_first_error

FILES = (".devcontainer/devcontainer.json", ".devcontainer.json")

Read = Callable[[str], bytes | None]
"""Return a file's bytes by its path at the commit the work starts from, or None if there is none.
"""

Lifecycle = str | list[str] | dict[str, str | list[str]]

_VARIABLE = re.compile(r"\$\{(\w+)(?::[^:}]*(?::([^}]*))?)?\}")
_UNUSED_KEYS = ("features", "dockerComposeFile", "initializeCommand", "mounts", "runArgs")
MAX_CONTAINER_BYTES = 64 * 1024
"""Maximum size of a devcontainer.json. Its parser takes seconds for this much."""


class _DevContainerFile(BaseModel):
    model_config = ConfigDict(extra="allow")

    image: str | None = None
    on_create: Lifecycle | None = Field(default=None, alias="onCreateCommand")
    update_content: Lifecycle | None = Field(default=None, alias="updateContentCommand")
    post_create: Lifecycle | None = Field(default=None, alias="postCreateCommand")


@dataclass(frozen=True)
class DevContainer:
    """The relevant parts of a repository's devcontainer.

    path: the file it was read from.
    image: name of the image, if it names one.
    script: bash that prepares the container; None if there is none.
    unused: keys in the file that have no effect here.
    """

    path: str
    image: str | None = None
    script: str | None = None
    unused: tuple[str, ...] = ()


def read_devcontainer(read: Read) -> DevContainer | None:
    """Return the repository's devcontainer, or None if it has none.

    Variables of the user's machine (`${localEnv:...}`) are replaced by their default or by nothing,
    so no value of this host is used. Raises UsageError that names the file and the key.
    """
    for path in FILES:
        data = read(path)
        if data is not None:
            return _parse(path, data)
    return None


def _parse(path: str, data: bytes) -> DevContainer:
    content = _object(path, data)
    try:
        file = _DevContainerFile.model_validate(content)
    except ValidationError as error:
        raise _invalid_file(path, describe_first_error(error)) from error
    commands = (file.on_create, file.update_content, file.post_create)
    return DevContainer(
        path=path,
        image=_expand_variables(file.image) if file.image else None,
        script="\n".join(line for command in commands for line in _lines(command)) or None,
        unused=tuple(key for key in _UNUSED_KEYS if content.get(key)),
    )


def _object(path: str, data: bytes) -> dict[str, Any]:
    """Parse JSON with comments and trailing commas, which editors accept in this file.

    Raises UsageError if it is no JSON object, or too large.
    """
    if len(data) > MAX_CONTAINER_BYTES:
        raise _invalid_file(path, f"it has more than {MAX_CONTAINER_BYTES} bytes")
    try:
        content = json5.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _invalid_file(path, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise _invalid_file(path, "not a JSON object")
    return content


def _lines(command: Lifecycle | None) -> list[str]:
    """Return a command as lines of bash.

    Text is a line for the shell, a list is a program with arguments, and an object holds several
    commands, which run one after the other here.
    """
    match command:
        case None | "":
            return []
        case str():
            return [_expand_variables(command)]
        case list():
            return [shlex.join(_expand_variables(part) for part in command)] if command else []
        case dict():
            return [line for part in command.values() for line in _lines(part)]


def _expand_variables(text: str) -> str:
    """Return `text` with its variables replaced: the workspace's folder by ".", and all others by
    their default or by nothing."""
    return _VARIABLE.sub(
        lambda match: "." if match[1].endswith("WorkspaceFolder") else match[2] or "", text
    )


def _invalid_file(path: str, problem: str) -> UsageError:
    return UsageError(f"{path}: {problem}", "correct the file on the default branch")


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
    is_standard: True if nobody has set it, so that it is what projects of this kind usually need.
    """

    source: str
    script: str
    left_out: tuple[str, ...] = ()
    by_operator: bool = False
    is_standard: bool = False


def find_setup(read: Read, setting: str | None = None) -> SetupPlan | None:
    """Return the set-up from the first of these that exists, or None.

    The order is: the setting `setup`, `.agents/setup.sh`, `.openhands/setup.sh`, the run steps of
    `copilot-setup-steps.yml`, the devcontainer's create commands.
    setting: the value of the setting in force; the operator's takes precedence over the
        repository's.
    Raises UsageError for a file that can't be read.
    """
    if setting and setting.strip():
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


def find_changed_setup(read: Read, chosen: SetupPlan | None) -> SetupPlan | None:
    """Return the set-up that the files of another tree describe.

    read: returns a file of that tree.
    chosen: the set-up of the run. It stays the same if the operator has set it.
    Raises UsageError for a file that can't be read.
    """
    if chosen is not None and chosen.by_operator:
        return chosen
    setting = _setup_of_repository(read)
    return find_setup(read, setting if isinstance(setting, str) else None)


def _setup_of_repository(read: Read) -> object:
    try:
        content = read_yaml(read(SETTING) or b"")
    except yaml.YAMLError:
        return None
    return content.get("setup") if isinstance(content, dict) else None


def _copilot(path: str, data: bytes) -> SetupPlan:
    """Return the `run` steps, in order. Variables, and steps that use an action, are left out.

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
    commands: list[str] = ["set -e"]
    left_out: list[str] = []
    for step in steps:
        if isinstance(step.get("run"), str):
            folder = shlex.quote(str(step.get("working-directory") or "."))
            run = _EXPRESSION.sub("", step["run"]).strip()
            # A subshell, followed by taking over its GITHUB_ENV and GITHUB_PATH.
            commands.append(f"(\ncd {folder}\n{run}\n)\nresolver_take_env")
        elif "uses" in step and not str(step["uses"]).startswith("actions/checkout@"):
            left_out.append(f"the step that uses {step['uses']}")
    if "env" in job or any("env" in step for step in steps):
        left_out.append("the variables in `env`")
    return SetupPlan(path, "\n".join(commands), tuple(left_out))
