"""Chooses the environment of a run from the settings and the repository, and sets it up.

The set-up runs in the sandbox before the agent starts, with its output in the event log. A sandbox
that was set up can be saved as an image for later runs.
"""

import time
from dataclasses import dataclass, replace
from typing import Final

from docker import DockerClient

from resolver.config.image_reference import PREPARED_PREFIX
from resolver.config.templates import render
from resolver.events import actions as a
from resolver.events import observations as o
from resolver.events.base import ObservationBase, Source
from resolver.events.lifecycle import StageCompleted, Warned
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.runtime.engine import image_settings
from resolver.runtime.environment.images import (
    PREPARED_LABEL,
    REPOSITORY_LABEL,
    derive_key,
    find_prepared_image,
    image_id,
    remove_older_environments,
)
from resolver.runtime.environment.plan import SetupPlan
from resolver.runtime.runtime import Runtime

SCRIPT: Final = "setup.sh"
EXPORTS: Final = "setup.env"
MAX_TAIL_CHARACTERS: Final = 3_000
"""Number of characters of a failed set-up's output that the agent and people are shown."""

# `export -p` prints the variables in a form that bash can read again. GITHUB_ENV and GITHUB_PATH
# work as in a workflow, but for values of several lines:
# https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
_WRAPPER: Final = r"""
S=${BASH_SOURCE[0]%/*}
export GITHUB_ENV=$S/setup.github_env GITHUB_PATH=$S/setup.github_path
: >"$GITHUB_ENV"; : >"$GITHUB_PATH"
resolver_take_env() {
  local line
  while IFS= read -r line; do
    [[ $line =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] && export "$line"
  done <"$GITHUB_ENV"
  while IFS= read -r line; do [[ -n $line ]] && export PATH=$line:$PATH; done <"$GITHUB_PATH"
  : >"$GITHUB_ENV"; : >"$GITHUB_PATH"
}
resolver_keep_exports() {
  resolver_take_env
  unset GITHUB_ENV GITHUB_PATH PWD OLDPWD SHLVL _
  export -p >"$S/setup.env"
}
trap 'resolver_status=$?; resolver_keep_exports; exit $resolver_status' EXIT
"""


@dataclass(frozen=True)
class SetupResult:
    """Result of the set-up.

    exit_code: None if it did not end or could not be executed. timed_out: True if it did not end in
    time. output: the end of its output. warnings: texts for people.
    """

    exit_code: int | None = 0
    timed_out: bool = False
    output: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if it ended with exit code 0, or if there was nothing to do."""
        return self.exit_code == 0


def setup_script(plan: SetupPlan) -> str:
    """Return the script of the set-up, which writes what it exports to EXPORTS in its folder."""
    return f"{_WRAPPER}\n{plan.script}\n"


def prepare(
    plan: SetupPlan,
    sandbox: Runtime,
    stream: EventStream,
    state: State,
    base: str,
    seconds: float,
) -> SetupResult:
    """Run the set-up. The variables that it exports are set in the agent's shell afterwards.

    Its changes of tracked files are undone, and its untracked files stay out of the change: the
    set-up makes the environment, not the fix. If it fails, the agent and people are informed, with
    the end of its output, and the run continues.
    base: the commit that is checked out.
    seconds: time limit of the set-up.
    """
    _conclude_cut_off(stream, state)
    sandbox.put_file(SCRIPT, setup_script(plan).encode())
    command = f"bash {sandbox.scratch}/{SCRIPT}"
    thought = render("run/setup.md.j2", plan=plan).strip()
    observation = _run(a.CmdRun(command=command, timeout=seconds, thought=thought), sandbox, stream)
    output = observation.content[-MAX_TAIL_CHARACTERS:]
    result = SetupResult(exit_code=None, output=output)
    if isinstance(observation, o.CmdOutput):
        result = SetupResult(observation.exit_code, observation.timed_out, output)
        if observation.exit_code is None:  # it still runs: the next command ends it and says so
            _run(a.CmdRun(command=":"), sandbox, stream)
    warnings = [render("run/setup_left_out.md.j2", plan=plan).strip()] if plan.left_out else []
    if not result.ok:
        message = render("agent/setup_failed.md.j2", result, plan=plan, seconds=seconds).strip()
        stream.add(Warned(about="setup", message=message, to_agent=True))
        warning = render("run/setup_failed.md.j2", result, plan=plan, seconds=seconds).strip()
        warnings.append(warning)
    take_exports(sandbox, stream)
    restored = sandbox.set_baseline(base)["restored"]
    if restored:
        warnings.append(render("run/setup_undone.md.j2", plan=plan, paths=restored).strip())
    return replace(result, warnings=tuple(warnings))


def take_exports(sandbox: Runtime, stream: EventStream) -> None:
    """Set the variables exported by the set-up in the agent's shell.

    The set-up ran in this run, or in an earlier one whose environment is used again.
    """
    file = f"{sandbox.scratch}/{EXPORTS}"
    _run(a.CmdRun(command=f"if [ -f {file} ]; then . {file}; fi"), sandbox, stream)


def _run(action: a.CmdRun, sandbox: Runtime, stream: EventStream) -> ObservationBase:
    added = stream.add(action.model_copy(update={"source": Source.ENVIRONMENT}))
    observation = sandbox.execute(added)
    return stream.add(observation.model_copy(update={"cause": added.id}))


def _conclude_cut_off(stream: EventStream, state: State) -> None:
    """Add an error for a set-up that was cut off when its process ended. It will be run again."""
    for action in list(state.pending.values()):
        if action.source is Source.ENVIRONMENT:
            message = render("run/setup_cut_off.md.j2").strip()
            stream.add(o.ErrorObservation(content=message, code="cut_off", cause=action.id))


@dataclass(frozen=True)
class Environment:
    """The environment of a run.

    image: the image of the sandbox.
    plan: the set-up to run; None if there is none.
    key: key under which the prepared environment is kept; None if it isn't kept.
    repository: digest of the repository that it belongs to.
    is_prepared: True if `image` is a kept environment, so that the set-up need not run.
    source_image: the image that a kept environment was made from; None if it is `image`.
    suggested: bash of the usual set-up of such a project, which is not executed; None for none.
    """

    image: str
    plan: SetupPlan | None = None
    key: str | None = None
    repository: str | None = None
    is_prepared: bool = False
    source_image: str | None = None
    suggested: str | None = None


def find_environment(
    client: DockerClient, image: str, plan: SetupPlan, repository: str, tree: str
) -> Environment:
    """Return the environment that the plan makes of an image: a kept one if there is one.

    repository: distinguishes it from all other repositories that use the engine.
    tree: object id of the tree that is checked out while the set-up runs.
    Raises SandboxError if the image can't be pulled.
    """
    repository_key = derive_key("repository", repository)
    image_settings(client, image)  # pull it, so that it has an id
    source_image = image_id(client, image)
    key = derive_environment_key(plan, source_image, repository_key, tree)
    prepared_image = find_prepared_image(client, key)
    if prepared_image is None:
        remove_older_environments(client, repository_key)
    return Environment(
        prepared_image or source_image,
        plan,
        key,
        repository_key,
        is_prepared=prepared_image is not None,
        source_image=source_image,
    )


def derive_environment_key(plan: SetupPlan, image: str, repository: str, tree: str) -> str:
    """Return the key of the environment that the plan makes of an image.

    A set-up may read any file and call any script of the repository, so the key depends on the
    whole tree. It depends on the repository too, because two repositories never share an
    environment.
    image: the engine's id of the image, since a name may refer to another image later.
    tree: object id of the tree that is checked out while the set-up runs.
    """
    return derive_key("prepared", repository, tree, image, plan.source, plan.script)


def set_up(
    environment: Environment,
    runtime: Runtime,
    stream: EventStream,
    state: State,
    base: str,
    seconds: float,
) -> SetupResult:
    """Set the sandbox up for the agent; `base` is checked out in it.

    seconds: time limit of the set-up.
    """
    plan = environment.plan
    if plan is None:
        if environment.suggested:
            detail = f"not executed: {environment.suggested}"
            stream.add(StageCompleted(stage="setup", detail=detail, seconds=0.0))
        return SetupResult()
    started = time.monotonic()
    if environment.is_prepared:
        take_exports(runtime, stream)
        result, detail = SetupResult(), f"{plan.source}: kept from an earlier run"
    else:
        result = prepare(plan, runtime, stream, state, base, seconds)
        detail = f"{plan.source}: {'done' if result.ok else 'failed'}"
        if result.ok and environment.key and environment.repository:
            name = f"{PREPARED_PREFIX}:{environment.key}"
            labels = {PREPARED_LABEL: environment.key, REPOSITORY_LABEL: environment.repository}
            is_saved = runtime.save(name, labels)
            detail += ", kept for the next run" if is_saved else ""
    duration = round(time.monotonic() - started, 3)
    stream.add(StageCompleted(stage="setup", detail=detail, seconds=duration))
    return result
