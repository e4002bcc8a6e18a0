"""Finds the checks that a project's GitHub workflows run on a push or a pull request.

Steps that only call an action can't be executed here. Of a script, the lines that check something
are taken one by one, since the others install what the sandbox's image has already.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from posixpath import basename, normpath
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from resolver.config.allowed_hosts import AllowList
from resolver.config.bounded_yaml import read_yaml
from resolver.github.context.workflows import EXPRESSION, FOLDER, read_matrix, read_workflow
from resolver.models.verification import CheckService, ProjectCheck
from resolver.security.shell.checks import is_test_command, read_checks
from resolver.verification.check_candidates import (
    CheckCandidate,
    Omission,
    OmissionCause,
    command_keys,
    enter_folder,
    in_folder,
)
from resolver.verification.javascript_checks import missing_scripts
from resolver.verification.project_tree import ProjectTree, table
from resolver.verification.runner_commands import last_runner, simple_commands
from resolver.verification.services import (
    NO_SERVICES,
    ServicePolicy,
    available_of,
    read_job_services,
    unavailable_of,
)

MAX_WORKFLOWS = 50
MAX_JOBS = 50
MAX_STEPS = 100
MAX_LINES = 200
"""Maximum number of lines of a script that are read."""

MAX_COMMAND = 2_000
"""Maximum number of characters of a command that becomes a check."""

_SHELLS = ("bash", "sh")
_SECRET = re.compile(r"\bsecrets\.([A-Za-z_]\w{0,100})")
_OWN_TOKEN = "GITHUB_TOKEN"  # noqa: S105 - the name of the job's own token
_OTHER_SYSTEMS = re.compile(r"windows|macos|osx", re.IGNORECASE)
_COMPOUND = re.compile(
    r"^\s*(?:if|for|while|until|case|function|select)\b|<<|\\$|[({]\s*$", re.MULTILINE
)
_TEST_NAME = re.compile(
    r"(?<![a-z])(?:e2e|end-to-end|integration|acceptance|functional|smoke|spec|cypress|playwright)"
    r"(?![a-z])"
)
"""Matches names of scripts and targets that test, though they have no name of a known check."""

_CONTAINERS = frozenset({"docker", "docker-compose", "podman", "kubectl", "act"})
_URL = re.compile(r"https?://[\w.-]{1,253}(?::\d{1,5})?")
_VARIABLE = re.compile(r"[A-Za-z_]\w{0,100}")
_MAX_VARIABLES = 50
_SERVICE_PORT = re.compile(r"""job\.services\.[\w-]+\.ports\[["']?(\d{1,5})["']?\]""")


@dataclass(frozen=True)
class _Limits:
    """The files that a check runs in, and the hosts and services that it may use."""

    tree: ProjectTree
    allowed: AllowList
    services: ServicePolicy


@dataclass(frozen=True)
class _Place:
    """A step of a workflow. matrix: one value of each key; env: literal variables; services: those
    that run alongside the sandbox."""

    path: str
    job: str
    needs: Mapping[OmissionCause, tuple[str, ...]]
    matrix: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    services: tuple[CheckService, ...] = ()

    @property
    def description(self) -> str:
        """The place, for a person."""
        return f"The job `{self.job}` of {self.path}"


class _Command(NamedTuple):
    """A command of a script, as it is executed in the place's folder.

    keys: as in CheckCandidate. is_check: False if only its name says that it tests something.
    """

    text: str
    keys: frozenset[str]
    is_check: bool = True


def find_workflow_checks(
    tree: ProjectTree, allowed: AllowList, services: ServicePolicy = NO_SERVICES
) -> Iterator[CheckCandidate | Omission]:
    """Yield the checks of the jobs that test on a push or a pull request.

    allowed: the hosts that the sandbox may reach. services: those that may run next to it.
    """
    paths = [
        path
        for path in tree.paths
        if path.startswith(f"{FOLDER}/") and path.endswith((".yml", ".yaml"))
    ]
    for path, content in tree.read_many(paths[:MAX_WORKFLOWS]).items():
        workflow = read_workflow(path, content)
        if workflow is None or workflow.agents or not workflow.on_changes:
            continue
        try:
            data = read_yaml(content)
        except yaml.YAMLError:
            continue
        for name, job in list(table(data, "jobs").items())[:MAX_JOBS]:
            if isinstance(job, dict):
                yield from _job(path, str(name)[:100], job, data, _Limits(tree, allowed, services))


def _job(
    path: str, name: str, job: Mapping[Any, Any], data: Mapping[Any, Any], limits: _Limits
) -> Iterator[CheckCandidate | Omission]:
    matrix = {key: values[0] for key, values in read_matrix(job).items() if values}
    steps = job.get("steps")
    found: list[CheckCandidate | Omission] = []
    tests = False
    for step in (steps if isinstance(steps, list) else [])[:MAX_STEPS]:
        text = step.get("run") if isinstance(step, dict) else None
        if not isinstance(text, str) or not _runs_in_shell(step, job, data):
            continue
        place = _place(path, name, matrix, (data, job, step), limits.services)
        for command in _commands(text, place):
            tests = tests or any(map(is_test_command, read_checks(command.text).checks))
            found.append(_check(command, place, limits))
    yield from (check for check in found if tests or isinstance(check, Omission))


def _runs_in_shell(step: Mapping[Any, Any], *around: Mapping[Any, Any]) -> bool:
    shells = [
        step.get("shell"),
        *(table(level, "defaults", "run").get("shell") for level in around),
    ]
    shell = next((shell_name for shell_name in shells if shell_name is not None), "bash")
    return str(shell).split(" ")[0] in _SHELLS and not _OTHER_SYSTEMS.search(
        str(step.get("if") or "")[:500]
    )


def _place(
    path: str,
    name: str,
    matrix: Mapping[str, str],
    levels: tuple[Mapping[Any, Any], ...],
    policy: ServicePolicy,
) -> _Place:
    """Return the place of a step. levels: the workflow, the job and the step."""
    data, job, step = levels
    env = {
        str(key): value
        for level in levels
        for key, value in list(table(level, "env").items())[:_MAX_VARIABLES]
        if isinstance(value, str | int | float) and _VARIABLE.fullmatch(str(key))
    }
    plain = {key: _insert(_as_text(value), matrix, {}) for key, value in env.items()}
    secrets = {name for value in plain.values() for name in _SECRET.findall(value)}
    secrets |= set(_SECRET.findall(str(step["run"])[:100_000]))
    services = read_job_services(job, lambda text: _insert(text, matrix, {}), policy)
    needs: dict[OmissionCause, tuple[str, ...]] = {
        "system": _other_systems(job),
        "services": tuple(service.describe() for service in unavailable_of(services)),
        "secrets": tuple(sorted(secrets - {_OWN_TOKEN})[:10]),
    }
    folders = [step.get("working-directory")]
    folders += [table(level, "defaults", "run").get("working-directory") for level in (job, data)]
    folder = next((str(candidate) for candidate in folders if candidate), "")
    known = {key: value for key, value in plain.items() if not EXPRESSION.search(value)}
    inside = normpath(_insert(folder, matrix, known)) if folder else ""
    folder = "" if inside == "." else inside
    return _Place(path, name, needs, matrix, known, folder, available_of(services))


def _other_systems(job: Mapping[Any, Any]) -> tuple[str, ...]:
    """Return the systems of a job that runs on none like the sandbox's; empty for other jobs."""
    runs_on = job.get("runs-on")
    named = [str(label) for label in (runs_on if isinstance(runs_on, list) else [runs_on])][:20]
    values = read_matrix(job)
    systems: list[str] = []
    for system in named:
        expression = EXPRESSION.fullmatch(system.strip())
        systems += values.get(expression[1], [system]) if expression else [system]
    others = [system for system in systems if _OTHER_SYSTEMS.search(system)]
    return tuple(others) if others and len(others) == len(systems) else ()


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _insert(text: str, matrix: Mapping[str, str], env: Mapping[str, str]) -> str:
    """Replace the expressions whose values are known; the others stay."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        if port := _SERVICE_PORT.fullmatch(name):
            return port[1]  # a service has the port of the sandbox that it listens on
        if name.startswith("env."):
            return env.get(name.removeprefix("env."), found[0])
        return matrix.get(name, found[0])

    return EXPRESSION.sub(value, text[:100_000])


def _commands(text: str, place: _Place) -> Iterator[_Command]:
    """Yield the commands of a script that check something.

    A script with compound commands is taken whole. The variables that earlier lines export and the
    folder that they enter belong to a command.
    """
    script = _insert(text, place.matrix, place.env).replace("\\\n", " ")
    lines = [script] if _COMPOUND.search(script) else script.splitlines()[:MAX_LINES]
    prefix: list[str] = []
    folder = place.folder
    for line in (text_line.strip() for text_line in lines):
        if not line or line.startswith("#") or len(line) > MAX_COMMAND:
            continue
        commands = simple_commands(line)
        is_check = read_checks(line).is_conclusive or _tests_in_container(line)
        if is_check or any(
            _TEST_NAME.search(command.script or command.target) for command in commands
        ):
            yield _Command(" && ".join([*prefix, line]), command_keys(line, folder), is_check)
        elif commands and all(command.only_prepares for command in commands):
            prefix.append(line)
            for command in commands:
                if command.changes_folder:
                    folder = enter_folder(folder, command.words[1])


def _tests_in_container(line: str) -> bool:
    return any(
        basename(simple.words[0]) in _CONTAINERS and is_test_command(" ".join(simple.words[2:]))
        for simple in simple_commands(line)
        if len(simple.words) > 2
    )


def _check(command: _Command, place: _Place, limits: _Limits) -> CheckCandidate | Omission:
    name = f"{place.job}: {command.text.splitlines()[0][:80]}"
    full = in_folder(command.text, place.folder)
    for cause, names in _lacking(command, place, limits):
        # Other routes to the same tests don't give them a service or a secret.
        replaceable = cause in {"system", "expression", "unknown"}
        keys = command.keys if replaceable else frozenset[str]()
        return Omission(name, full, cause, place.description, names, keys)
    used = {key: value for key, value in place.env.items() if key != _OWN_TOKEN}
    check = ProjectCheck(
        name=name,
        command=full,
        runner=last_runner(command.text),
        environment=used,
        services=place.services,
        origin=f"job `{place.job}` in {place.path}",
    )
    return CheckCandidate(check, command.keys)


def _lacking(
    command: _Command, place: _Place, limits: _Limits
) -> Iterator[tuple[OmissionCause, tuple[str, ...]]]:
    """Yield what a command needs and the sandbox lacks, the most decisive first."""
    if scripts := missing_scripts(limits.tree, command.text, place.folder):
        yield "scripts", scripts[:5]
    for cause, names in place.needs.items():
        if names:
            yield cause, names
    if _tests_in_container(command.text):
        yield "docker", ()
    urls = dict.fromkeys(_URL.findall(command.text))
    hosts = [url for url in urls if not _reaches(limits.allowed, url)]
    if hosts:
        yield "network", tuple(str(urlsplit(url).hostname) for url in hosts[:5])
    unknown = tuple(match[0] for match in EXPRESSION.finditer(f"{place.folder} {command.text}"))
    if unknown:
        yield "expression", unknown[:3]
    if not command.is_check:
        yield "unknown", ()


def _reaches(allowed: AllowList, url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        if host in {"localhost", "127.0.0.1"}:
            return True
        allowed.find(host, port)
    except ValueError:
        return False
    return True
