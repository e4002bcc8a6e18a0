"""Reads those properties of a repository's workflows that matter for an agent's pull requests.

The files belong to the repository and may contain anything. A file that is not a workflow is
ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from resolver.config.bounded_yaml import read_yaml
from resolver.github.context.workflow_tests import (
    list_called_workflows,
    runs_tests,
    starts_on_changes,
)

FOLDER = ".github/workflows"

_OURS = ("/resolver@", "/resolver/.github/workflows/resolve.yml@")
"""Parts of `uses:` values by which Resolver's Action is recognized, whoever owns its repository."""

_VARIABLE = "RESOLVER_"

_CHECKS = frozenset({"pull_request", "pull_request_target", "push", "merge_group"})
"""Events with which a workflow checks a change."""


@dataclass(frozen=True)
class AgentJob:
    """A job that runs Resolver's Action.

    own_token: True if it uses an App or a token other than the job's own.
    permissions: those of the job's token, None for the repository's default.
    given: settings by name, which it passes as inputs or variables.
    condition: its `if:`, "" for none.
    """

    name: str
    own_token: bool
    permissions: Mapping[str, str] | None
    given: Mapping[str, str] = field(default_factory=dict)
    condition: str = ""

    def lacks(self, level: str, *names: str) -> list[str]:
        """Return those of the permissions that the job has neither at this level nor at `write`."""
        given = self.permissions
        if given is None:
            return []
        return [n for n in names if given.get(n, given.get("*")) not in {level, "write"}]


@dataclass(frozen=True)
class WorkflowFile:
    """A workflow file.

    events: events that start it.
    name: its name on GitHub, which other workflows refer to.
    edits: True if it starts when an issue is edited.
    on_changes: True if it starts on a push to a branch or on a pull request.
    tests: True if it runs tests itself.
    calls: paths of the repository's own workflows that it calls.
    """

    path: str
    events: frozenset[str]
    agents: tuple[AgentJob, ...] = ()
    name: str = ""
    edits: bool = False
    on_changes: bool = False
    tests: bool = False
    calls: tuple[str, ...] = ()

    @property
    def checks_changes(self) -> bool:
        """True if it starts on a pull request or a push, and doesn't run Resolver."""
        return bool(self.events & _CHECKS) and not self.agents


def read_workflow(path: str, content: bytes) -> WorkflowFile | None:
    """Return the workflow in a file, None if the file is not a workflow."""
    try:
        data = read_yaml(content)
    except yaml.YAMLError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("jobs"), dict):
        return None
    # In YAML 1.1, the key `on` is the boolean true: https://yaml.org/type/bool.html
    on = data.get("on", data.get(True))
    jobs = [(str(n), j) for n, j in data["jobs"].items() if isinstance(j, dict)]
    found = [_agent_job(name, job, data) for name, job in jobs]
    name = data.get("name")
    return WorkflowFile(
        path,
        _events(on),
        tuple(job for job in found if job is not None),
        name if isinstance(name, str) and name.strip() else path,
        _listens_to_edits(on),
        starts_on_changes(on),
        runs_tests(path, data, _events(on)),
        list_called_workflows(data),
    )


def _listens_to_edits(on: Any) -> bool:
    if "issues" not in _events(on):
        return False
    types = _table(_table(on).get("issues")).get("types")
    return types in (None, "edited") or (isinstance(types, list) and "edited" in types)


def _events(on: Any) -> frozenset[str]:
    if isinstance(on, str):
        return frozenset({on})
    if isinstance(on, list | dict):
        return frozenset(each for each in on if isinstance(each, str))
    return frozenset()


def _agent_job(name: str, job: Mapping[Any, Any], around: Mapping[Any, Any]) -> AgentJob | None:
    steps = job.get("steps")
    for step in (job, *(steps if isinstance(steps, list) else ())):
        used = step.get("uses") if isinstance(step, dict) else None
        if isinstance(used, str) and (any(o in used for o in _OURS) or used == "./"):
            given = {**_table(step.get("with")), **_table(step.get("secrets"))}
            return AgentJob(
                name,
                own_token=bool({"github-token", "app-id"} & {str(key) for key in given}),
                permissions=_permissions(job.get("permissions", around.get("permissions"))),
                given=_given(_table(step.get("with")), around, job, step),
                condition=_text(job.get("if", "")),
            )
    return None


def _given(inputs: Mapping[Any, Any], *levels: Mapping[Any, Any]) -> Mapping[str, str]:
    """Return the settings of a step by name.

    An input takes precedence over a variable, and a variable of the step over one of its job.
    """
    named: dict[str, str] = {}
    for level in levels:
        for key, value in _table(level.get("env")).items():
            if str(key).startswith(_VARIABLE):
                named[str(key).removeprefix(_VARIABLE).lower()] = _text(value)
    for key, value in inputs.items():
        named[str(key).lower().replace("-", "_")] = _text(value)
    return named


def _text(value: Any) -> str:
    """Return a scalar as text, "" for a list or mapping, which can't be a setting."""
    if isinstance(value, list | dict):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _permissions(value: Any) -> Mapping[str, str] | None:
    """Return the levels by permission. `read-all` and `write-all` apply to the name `*`."""
    if isinstance(value, str):
        return {"*": value.removesuffix("-all")}
    if isinstance(value, dict):
        return {str(name): _text(level) for name, level in value.items()}
    return None
