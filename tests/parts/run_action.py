"""Runs a container action the way the Actions runner does: same mounts, variables and files.

The action reaches servers on this machine as `host.docker.internal` when they listen on
0.0.0.0, and whatever sandbox it starts through the engine's
socket, which the runner mounts too.
"""

import json
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import yaml

from tests.parts.github_server.bare import BareRepository

HOST = "host.docker.internal"
"""The name by which the container reaches this machine."""

BUILD_ATTEMPTS = 4
REMOVED_MEANWHILE = "failed to get digest"
"""The classic builder looks through all images for its cache, and stumbles over one that
another test removes at that moment."""

LABEL = "resolver-test.workspace"
"""Label of the containers, with the workspace's path as its value."""

BUILD_LABEL = "resolver-test.action"
"""Label of the images that are built here, with their tag as its value."""

FILE_COMMANDS = {
    "GITHUB_OUTPUT": "set_output",
    "GITHUB_ENV": "set_env",
    "GITHUB_STATE": "save_state",
    "GITHUB_PATH": "add_path",
    "GITHUB_STEP_SUMMARY": "step_summary",
}


@dataclass(frozen=True)
class ActionRun:
    """The result of an action. `logs` is stdout and stderr as the job's log shows them."""

    exit_code: int
    outputs: Mapping[str, str]
    environment: Mapping[str, str]
    summary: str
    logs: str


@dataclass(frozen=True)
class Job:
    """The job that the step belongs to: what the `github` context and the variables say.

    server_url: as seen from the container, without a slash at its end.
    token: what `${{ github.token }}` is; it reaches the action through its inputs only.
    """

    repository: str
    event_name: str
    event: Mapping[str, Any]
    server_url: str = "https://github.com"
    token: str = ""
    run_id: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def api_url(self) -> str:
        return f"{self.server_url}/api/v3"

    @property
    def graphql_url(self) -> str:
        return f"{self.server_url}/api/graphql"


def run_action(
    engine: docker.DockerClient,
    action: Path,
    workspace: Path,
    job: Job,
    inputs: Mapping[str, str],
    image: str,
) -> ActionRun:
    """One step `uses: <action>`, from its action.yml, in this image.

    action: the folder with action.yml. workspace: what is checked out, mounted writable.
    inputs: `with:`; the defaults of action.yml are applied. Raises ValueError for an input
        that the action does not have.
    """
    definition = yaml.safe_load((action / "action.yml").read_text())
    runs = definition["runs"]
    assert runs["using"] == "docker"
    given = _inputs(definition, inputs, job)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        mounts = _mounts(folder, workspace, job)
        container = engine.containers.create(
            image,
            working_dir="/github/workspace",
            environment={
                **runs["env"],
                **_variables(job),
                **{f"INPUT_{name.replace(' ', '_').upper()}": given[name] for name in given},
            },
            volumes=mounts,
            extra_hosts={HOST: "host-gateway"},
            labels={LABEL: str(workspace)},
        )
        stack.callback(container.remove, force=True, v=True)
        container.start()
        exit_code = container.wait(timeout=300)["StatusCode"]
        logs = container.logs().decode("utf-8", "replace")
        return _result(folder / "file_commands", exit_code, logs)


def build_image(
    engine: docker.DockerClient,
    action: Path,
    arguments: Mapping[str, str],
) -> str:
    """The image of the action's Dockerfile, with these values of its ARGs.

    What an earlier build of the same folder left without a name is removed.
    """
    tag = f"resolver-test/action:{uuid.uuid5(uuid.NAMESPACE_URL, str(action.resolve())).hex[:12]}"
    for attempt in range(BUILD_ATTEMPTS):
        try:
            engine.images.build(
                path=str(action),
                tag=tag,
                rm=True,
                buildargs=dict(arguments),
                labels={BUILD_LABEL: tag},
            )
            break
        except docker.errors.BuildError as error:
            if REMOVED_MEANWHILE not in str(error) or attempt == BUILD_ATTEMPTS - 1:
                raise
    with suppress(docker.errors.APIError):  # somebody else is at it
        engine.images.prune(filters={"dangling": True, "label": f"{BUILD_LABEL}={tag}"})
    return tag


def checked_out(repository: BareRepository, folder: Path, ref: str = "main") -> Path:
    """Return what actions/checkout leaves: a clone of the test GitHub's repository in `folder`."""
    repository.git("clone", "--quiet", "--branch", ref, str(repository.path), str(folder))
    return folder


def _inputs(definition: Mapping[str, Any], sent: Mapping[str, str], job: Job) -> dict[str, str]:
    declared = definition["inputs"]
    unknown = sorted(set(sent) - set(declared))
    if unknown:
        raise ValueError(f"Unexpected input(s) {unknown}, valid inputs are {sorted(declared)}")
    defaults = {name: (facts or {}).get("default", "") for name, facts in declared.items()}
    # YAML's true is "true" for the runner, and this expression the only one.
    texts = {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in defaults.items()}
    return {n: v.replace("${{ github.token }}", job.token) for n, v in texts.items()} | dict(sent)


def _variables(job: Job) -> dict[str, str]:
    """The runner's variables that Resolver reads."""
    return {
        "HOME": "/github/home",
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": job.api_url,
        "GITHUB_EVENT_NAME": job.event_name,
        "GITHUB_EVENT_PATH": "/github/workflow/event.json",
        "GITHUB_GRAPHQL_URL": job.graphql_url,
        "GITHUB_JOB": "resolve",
        "GITHUB_REPOSITORY": job.repository,
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": str(job.run_id),
        "GITHUB_SERVER_URL": job.server_url,
        "GITHUB_WORKSPACE": "/github/workspace",
        "RUNNER_NAME": "GitHub Actions 1",
        **{name: f"/github/file_commands/{file}" for name, file in FILE_COMMANDS.items()},
        **job.environment,
    }


def _mounts(folder: Path, workspace: Path, job: Job) -> dict[str, dict[str, str]]:
    for name in ("home", "workflow", "file_commands", "runner_temp"):
        (folder / name).mkdir()
    (folder / "workflow" / "event.json").write_text(json.dumps(job.event))
    for file in FILE_COMMANDS.values():
        (folder / "file_commands" / file).touch()
    where = {
        "/var/run/docker.sock": "/var/run/docker.sock",
        str(workspace): "/github/workspace",
        **{str(entry): f"/github/{entry.name}" for entry in sorted(folder.iterdir())},
    }
    return {host: {"bind": inside, "mode": "rw"} for host, inside in where.items()}


def _result(folder: Path, exit_code: int, logs: str) -> ActionRun:
    texts = {name: (folder / file).read_text() for name, file in FILE_COMMANDS.items()}
    return ActionRun(
        exit_code=exit_code,
        outputs=file_command_values(texts["GITHUB_OUTPUT"]),
        environment=file_command_values(texts["GITHUB_ENV"]),
        summary=texts["GITHUB_STEP_SUMMARY"],
        logs=logs,
    )


def file_command_values(text: str) -> dict[str, str]:
    """`NAME=VALUE` lines and `NAME<<END` blocks, read as the runner reads them.

    Raises ValueError for what makes the runner fail the step.
    """
    values: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        equals, block = line.find("="), line.find("<<")
        if block >= 0 and (equals < 0 or block < equals):
            name, _, end = line.partition("<<")
            values[name] = "\n".join(_until(lines, end))
        elif equals >= 0:
            name, _, value = line.partition("=")
            values[name] = value
        else:
            raise ValueError(f"Invalid format '{line}'")
        if not name:
            raise ValueError(f"Invalid format '{line}'. Name must not be empty")
    return values


def _until(lines: Iterator[str], end: str) -> Iterator[str]:
    for line in lines:
        if line == end:
            return
        yield line
    raise ValueError(f"Invalid value. Matching delimiter not found '{end}'")
