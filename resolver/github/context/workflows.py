"""Reads those properties of a repository's workflows that matter for an agent's pull requests.

The files belong to the repository and may contain anything. A file that is not a workflow is
ignored.

Whether a workflow runs the project's tests is guessed from the names of its jobs and from the words
of their commands, for a proposal that a person reads. Nothing of them is executed.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from resolver.config.bounded_yaml import read_yaml

_TEST_NAME = re.compile(
    r"(?:^|[^a-z])(?:unit|integration|run|py)?[-_]?tests?(?:$|[^a-z])", re.IGNORECASE
)
_RELEASE_NAME = re.compile(r"release|publish|deploy", re.IGNORECASE)
"""Names of workflows that run tests only before a release, unless they run on pull requests."""

_TEST_COMMAND = re.compile(
    r"""^[^#\n]*?(?<![\w.-])(?:
        pytest | unittest | jest | vitest | mocha | ctest | rspec | phpunit | bats
        | (?:tox|nox)(?!.*(?:-e|-s)[ =]?(?:docs|lint|mypy|typ)) | manage\.py[ ]test | run_?tests?
        | (?:npm|pnpm|yarn|bun)(?:[ ]run)?[ ]test | node[ ]--test | (?:go|dotnet|rake)[ ]test
        | (?:cargo|\}\})[ ](?:nex)?test | make[ ](?:test|check)
        | (?:mvnw?|gradlew?)[ ].*(?:test|check|verify|build)
    )\b""",
    re.MULTILINE | re.VERBOSE,
)
"""Matches scripts with a line that starts a test runner."""

_CHANGE_TYPES = frozenset({"opened", "synchronize", "reopened"})


def starts_on_changes(on: Any) -> bool:
    """Return True if a push to a branch or a change of a pull request starts the workflow."""
    if not isinstance(on, dict):
        events = [on] if isinstance(on, str) else on if isinstance(on, list) else []
        return "push" in events or "pull_request" in events
    if "push" in on:
        push = _table(on["push"])
        if not {"tags", "tags-ignore"} & set(push) or {"branches", "branches-ignore"} & set(push):
            return True
    if "pull_request" not in on:
        return False
    types = _table(on["pull_request"]).get("types")
    type_names = [types] if isinstance(types, str) else types
    return not isinstance(type_names, list) or bool(
        _CHANGE_TYPES & {str(type_name) for type_name in type_names}
    )


def runs_tests(path: str, data: Mapping[Any, Any], events: Collection[str]) -> bool:
    """Return True if a job of the workflow runs tests.

    path: path of the workflow's file. events: the events that start it.
    """
    names = f"{path.rpartition('/')[2]} {data.get('name') or ''}"
    if "pull_request" not in events and _RELEASE_NAME.search(names):
        return False
    jobs = (
        (str(job_name), job)
        for job_name, job in _table(data.get("jobs")).items()
        if isinstance(job, dict)
    )
    return any(_runs_tests_in_job(name, job) for name, job in jobs)


def list_called_workflows(data: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the paths of the repository's own workflows that the jobs call."""
    references = (_table(job).get("uses") for job in _table(data.get("jobs")).values())
    return tuple(
        reference.removeprefix("./")
        for reference in references
        if isinstance(reference, str) and reference.startswith("./")
    )


def _runs_tests_in_job(name: str, job: Mapping[Any, Any]) -> bool:
    if _TEST_NAME.search(name) or _TEST_NAME.search(str(job.get("name") or "")):
        return True
    steps = job.get("steps")
    scripts = [_table(step).get("run") for step in (steps if isinstance(steps, list) else ())]
    scripts += [str(_table(job.get("strategy")))]
    return any(isinstance(text, str) and _TEST_COMMAND.search(text[:20_000]) for text in scripts)


def _table(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


FOLDER = ".github/workflows"

_ACTION_REFERENCES = ("/resolver@", "/resolver/.github/workflows/resolve.yml@")
"""Parts of `uses:` values by which Resolver's Action is recognized, whoever owns its repository."""

_VARIABLE_PREFIX = "RESOLVER_"

_CHECK_EVENTS = frozenset({"pull_request", "pull_request_target", "push", "merge_group"})
"""Events with which a workflow checks a change."""


@dataclass(frozen=True)
class AgentJob:
    """A job that runs Resolver's Action.

    own_token: True if it uses an App or a token other than the job's own.
    permissions: those of the job's token, None for the repository's default.
    settings: settings by name, which it passes as inputs or variables.
    condition: its `if:`, "" for none.
    """

    name: str
    own_token: bool
    permissions: Mapping[str, str] | None
    settings: Mapping[str, str] = field(default_factory=dict)
    condition: str = ""

    def lacks(self, level: str, *names: str) -> list[str]:
        """Return those of the permissions that the job has neither at this level nor at `write`."""
        permissions = self.permissions
        if permissions is None:
            return []
        return [
            name
            for name in names
            if permissions.get(name, permissions.get("*")) not in {level, "write"}
        ]


@dataclass(frozen=True)
class WorkflowFile:
    """A workflow file.

    events: events that start it.
    name: its name on GitHub, which other workflows refer to.
    on_changes: True if it starts on a push to a branch or on a pull request.
    runs_tests: True if it runs tests itself.
    calls: paths of the repository's own workflows that it calls.
    """

    path: str
    events: frozenset[str]
    agents: tuple[AgentJob, ...] = ()
    name: str = ""
    on_changes: bool = False
    runs_tests: bool = False
    calls: tuple[str, ...] = ()

    @property
    def checks_changes(self) -> bool:
        """True if it starts on a pull request or a push, and doesn't run Resolver."""
        return bool(self.events & _CHECK_EVENTS) and not self.agents


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
    jobs = [
        (str(job_name), job_data)
        for job_name, job_data in data["jobs"].items()
        if isinstance(job_data, dict)
    ]
    agent_jobs = [_find_agent_job(name, job, data) for name, job in jobs]
    name = data.get("name")
    return WorkflowFile(
        path,
        _events(on),
        tuple(job for job in agent_jobs if job is not None),
        name if isinstance(name, str) and name.strip() else path,
        starts_on_changes(on),
        runs_tests(path, data, _events(on)),
        list_called_workflows(data),
    )


def _events(on: Any) -> frozenset[str]:
    if isinstance(on, str):
        return frozenset({on})
    if isinstance(on, list | dict):
        return frozenset(event for event in on if isinstance(event, str))
    return frozenset()


def _find_agent_job(
    name: str, job: Mapping[Any, Any], workflow: Mapping[Any, Any]
) -> AgentJob | None:
    steps = job.get("steps")
    for step in (job, *(steps if isinstance(steps, list) else ())):
        reference = step.get("uses") if isinstance(step, dict) else None
        if isinstance(reference, str) and (
            any(action in reference for action in _ACTION_REFERENCES) or reference == "./"
        ):
            inputs = {**_table(step.get("with")), **_table(step.get("secrets"))}
            return AgentJob(
                name,
                own_token=bool({"github-token", "app-id"} & {str(key) for key in inputs}),
                permissions=_permissions(job.get("permissions", workflow.get("permissions"))),
                settings=_collect_settings(_table(step.get("with")), workflow, job, step),
                condition=_text(job.get("if", "")),
            )
    return None


def _collect_settings(inputs: Mapping[Any, Any], *levels: Mapping[Any, Any]) -> Mapping[str, str]:
    """Return the settings of a step by name.

    An input takes precedence over a variable, and a variable of the step over one of its job.
    """
    settings: dict[str, str] = {}
    for level in levels:
        for key, value in _table(level.get("env")).items():
            if str(key).startswith(_VARIABLE_PREFIX):
                settings[str(key).removeprefix(_VARIABLE_PREFIX).lower()] = _text(value)
    for key, value in inputs.items():
        settings[str(key).lower().replace("-", "_")] = _text(value)
    return settings


def _text(value: Any) -> str:
    """Return a scalar as text, "" for a list or mapping, which can't be a setting."""
    if isinstance(value, list | dict):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _permissions(value: Any) -> Mapping[str, str] | None:
    """Return the levels by permission. `read-all` and `write-all` apply to the name `*`."""
    if isinstance(value, str):
        return {"*": value.removesuffix("-all")}
    if isinstance(value, dict):
        return {str(name): _text(level) for name, level in value.items()}
    return None
