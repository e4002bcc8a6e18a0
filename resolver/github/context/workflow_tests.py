"""Determines if a workflow runs a project's tests on pushes or pull requests.

The commands of its steps are parsed like those of the agent. A job whose commands don't show it,
such as one that calls a workflow of another repository, is recognized by its name.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from resolver.security.shell.checks import read_checks
from resolver.security.shell.testers import is_test_command

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
