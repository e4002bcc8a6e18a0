"""What the workflows of a repository say, as far as it matters to an agent's pull requests.

The files are the repository's: anything may be in them, and what is no workflow is none.
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
"""How a step or a job names the Action, wherever its repository's owner is."""

_VARIABLE = "RESOLVER_"

_CHECKS = frozenset({"pull_request", "pull_request_target", "push", "merge_group"})
"""Events by which a workflow looks at a change."""


@dataclass(frozen=True)
class AgentJob:
    """A job that runs Resolver's Action.

    own_token: it works with an App or with a token that is not the job's own.
    permissions: of the job's token; None where the repository's default holds. given: settings by
    their names, that it gives as inputs or variables. condition: its `if:`, "" for none.
    """

    name: str
    own_token: bool
    permissions: Mapping[str, str] | None
    given: Mapping[str, str] = field(default_factory=dict)
    condition: str = ""

    def lacks(self, level: str, *names: str) -> list[str]:
        """Those of the permissions that are not given at this level, or at `write`."""
        given = self.permissions
        if given is None:
            return []
        return [n for n in names if given.get(n, given.get("*")) not in {level, "write"}]


@dataclass(frozen=True)
class WorkflowFile:
    """One file. events: that start it. name: as GitHub shows it and other workflows name it. edits:
    whether it starts when an issue is edited. on_changes: whether it starts on a push to a branch
    or on a pull request. tests: whether it runs tests itself. calls: paths of the repository's own
    workflows that it calls."""

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
        """Whether it starts on a pull request or a push, and is not the agent itself."""
        return bool(self.events & _CHECKS) and not self.agents


def read_workflow(path: str, content: bytes) -> WorkflowFile | None:
    """The workflow in a file, None when it is none."""
    try:
        data = read_yaml(content)
    except yaml.YAMLError:
        return None
    if not isinstance(data, dict) or not isinstance(data.get("jobs"), dict):
        return None
    # YAML 1.1 reads the word `on` as true.
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
    """The settings of a step by their names. An input goes before a variable, and the variable of a
    step before that of its job."""
    named: dict[str, str] = {}
    for level in levels:
        for key, value in _table(level.get("env")).items():
            if str(key).startswith(_VARIABLE):
                named[str(key).removeprefix(_VARIABLE).lower()] = _text(value)
    for key, value in inputs.items():
        named[str(key).lower().replace("-", "_")] = _text(value)
    return named


def _text(value: Any) -> str:
    """ "" for a list or a mapping, which is no setting."""
    if isinstance(value, list | dict):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


def _permissions(value: Any) -> Mapping[str, str] | None:
    """By name; of `read-all` and the like the level is that of every name."""
    if isinstance(value, str):
        return {"*": value.removesuffix("-all")}
    if isinstance(value, dict):
        return {str(name): _text(level) for name, level in value.items()}
    return None
