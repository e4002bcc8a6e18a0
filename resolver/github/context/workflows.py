"""Reads those properties of a repository's workflows that matter for an agent's pull requests.

The files belong to the repository and may contain anything. A file that is not a workflow is
ignored.

Whether a workflow runs the project's tests is determined from the commands of its steps, which are
parsed like those of the agent. A job whose commands don't show it, such as one that calls a
workflow of another repository, is recognized by its name.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from resolver.config.bounded_yaml import read_yaml
from resolver.security.shell.checks import is_test_command, read_checks

_NAMED = re.compile(
    r"(?:^|[^a-z])(?:unit|integration|run|py)?[-_]?tests?(?:$|[^a-z])", re.IGNORECASE
)
_RELEASES = re.compile(r"release|publish|deploy", re.IGNORECASE)
"""Names of workflows that run tests only before a release, unless they run on pull requests."""

_NO_TESTS = re.compile(
    r"docs?|lint|style|fmt|format|typ(?:es?|ing)|mypy|pyright|pre-?commit|build|package|publish|release",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(r"^(?:tox|nox)\b.*?\s(?:-e|-s|--env|--session)[ =](\S+)")
EXPRESSION = re.compile(r"\$\{\{\s*(.{0,300}?)\s*\}\}", re.DOTALL)
"""Matches an expression of a workflow; group 1 is its text."""

_OPENS = frozenset({"opened", "synchronize", "reopened"})
_MAX_VALUES = 20
"""Maximum number of values per key of a matrix that are inserted into a command."""


def starts_on_changes(on: Any) -> bool:
    """Return True if a push to a branch or a change of a pull request starts the workflow."""
    if not isinstance(on, dict):
        events = [on] if isinstance(on, str) else on if isinstance(on, list) else []
        return "push" in events or "pull_request" in events
    if "push" in on:
        given = _table(on["push"])
        if not {"tags", "tags-ignore"} & set(given) or {"branches", "branches-ignore"} & set(given):
            return True
    if "pull_request" not in on:
        return False
    types = _table(on["pull_request"]).get("types")
    named = [types] if isinstance(types, str) else types
    return not isinstance(named, list) or bool(_OPENS & {str(each) for each in named})


def runs_tests(path: str, data: Mapping[Any, Any], events: Collection[str]) -> bool:
    """Return True if a job of the workflow runs tests.

    path: path of the workflow's file. events: the events that start it.
    """
    names = f"{path.rpartition('/')[2]} {data.get('name') or ''}"
    if "pull_request" not in events and _RELEASES.search(names):
        return False
    jobs = ((str(n), job) for n, job in _table(data.get("jobs")).items() if isinstance(job, dict))
    return any(_job_tests(name, job, _table(data.get("env"))) for name, job in jobs)


def list_called_workflows(data: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the paths of the repository's own workflows that the jobs call."""
    used = (_table(job).get("uses") for job in _table(data.get("jobs")).values())
    return tuple(u.removeprefix("./") for u in used if isinstance(u, str) and u.startswith("./"))


def _job_tests(name: str, job: Mapping[Any, Any], env: Mapping[Any, Any]) -> bool:
    if _NAMED.search(name) or _NAMED.search(str(job.get("name") or "")):
        return True
    steps = job.get("steps")
    known = {**env, **_table(job.get("env"))}
    return any(
        is_test_command(check) and not _is_other_environment(check)
        for step in (steps if isinstance(steps, list) else ())
        for command in _commands(_table(step), known, job)
        for check in read_checks(command).checks
    )


def _is_other_environment(check: str) -> bool:
    """Return True if tox or nox is called only for environments that run no tests."""
    found = _ENVIRONMENT.match(check[:500])
    return found is not None and all(_NO_TESTS.search(each) for each in found[1].split(","))


def _commands(
    step: Mapping[Any, Any], env: Mapping[Any, Any], job: Mapping[Any, Any]
) -> Iterator[str]:
    """Yield the commands of a step, once for each value that the matrix may insert into them."""
    run = step.get("run")
    if not isinstance(run, str):
        return
    known = {
        f"env.{name}": str(value) for name, value in {**env, **_table(step.get("env"))}.items()
    }
    text = EXPRESSION.sub(lambda found: known.get(found[1], found[0]), run)
    matrix = read_matrix(job)
    for name in {found[1] for found in EXPRESSION.finditer(text)} & set(matrix):
        for value in matrix[name]:
            yield EXPRESSION.sub(lambda e, n=name, v=value: v if e[1] == n else "x", text)  # type: ignore[misc]
    yield EXPRESSION.sub("x", text)


def read_matrix(job: Mapping[Any, Any]) -> dict[str, list[str]]:
    """Return the values of the matrix by `matrix.NAME`."""
    found: dict[str, list[str]] = {}
    matrix = _table(_table(job.get("strategy")).get("matrix"))
    rows = matrix.get("include")
    tables = [matrix, *(row for row in (rows if isinstance(rows, list) else ()))]
    for table in tables:
        for name, value in _table(table).items():
            values = value if isinstance(value, list) else [value]
            known = found.setdefault(f"matrix.{name}", [])
            known += [str(each) for each in values if isinstance(each, str | int | float)]
    return {name: values[:_MAX_VALUES] for name, values in found.items()}


def _table(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, dict) else {}


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


def _permissions(value: Any) -> Mapping[str, str] | None:
    """Return the levels by permission. `read-all` and `write-all` apply to the name `*`."""
    if isinstance(value, str):
        return {"*": value.removesuffix("-all")}
    if isinstance(value, dict):
        return {str(name): _text(level) for name, level in value.items()}
    return None
