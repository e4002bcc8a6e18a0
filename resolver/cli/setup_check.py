"""Tries the setup of a checkout once, in a sandbox like that of a run."""

import time
from dataclasses import dataclass
from pathlib import Path

from resolver.config.settings import Settings
from resolver.config.temporary_directory import temporary_directory
from resolver.events.observations import CmdOutput
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream, utc_now
from resolver.git.workspace import Workspace
from resolver.runs.common import run_id
from resolver.runs.wiring.sandbox import RunHost, open_environment, open_runtime, runtime_kind
from resolver.runtime.environment.environment import MAX_TAIL_CHARACTERS, set_up


@dataclass(frozen=True)
class SetupTrial:
    """The result of trying a setup.

    `source` says what was run, "" if there is no setup. `kind` is the kind of the sandbox, `commit`
    the abbreviated id of the commit that was checked out, `output` the end of the setup's output,
    and `warnings` are for a person.
    """

    ok: bool
    source: str
    image: str
    kind: str
    commit: str
    seconds: float
    output: str
    warnings: tuple[str, ...]


def try_setup(settings: Settings, host: RunHost, root: Path) -> SetupTrial:
    """Run the setup at the commit that is checked out in `root`, and keep nothing of it.

    Raises SandboxError if no sandbox of the image can be started, and WorkspaceError if there is no
    commit.
    """
    fresh_settings = settings.without_kept_environment()
    state, stream = State(), EventStream(MemoryStore())
    stream.subscribe("state", state.apply, essential=True)
    kind = runtime_kind(fresh_settings, host)
    run = run_id(f"init:{root}", utc_now())
    started = time.monotonic()
    with temporary_directory() as folder:
        workspace = Workspace.clone(str(root), folder / "clone.git")
        environment = open_environment(fresh_settings, kind, workspace, host)
        with open_runtime(fresh_settings, kind, run, host, environment.image) as runtime:
            runtime.checkout(workspace.git_dir_tar, workspace.base, workspace.branch)
            limit = fresh_settings.timeout_seconds.setup
            result = set_up(environment, runtime, stream, state, workspace.base, limit)
    outputs = [event.content for event in state.events if isinstance(event, CmdOutput)]
    return SetupTrial(
        ok=result.ok,
        source=environment.plan.source if environment.plan else "",
        image="" if kind == "local" else fresh_settings.image,
        kind=kind,
        commit=workspace.base[:12],
        seconds=time.monotonic() - started,
        output=outputs[0][-MAX_TAIL_CHARACTERS:].strip() if outputs else "",
        warnings=result.warnings,
    )
