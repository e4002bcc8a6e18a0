"""Tries the setup and the checks of a checkout once, in a sandbox like that of a run."""

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
from resolver.models.verification import CheckExecution, MissingEnvironment
from resolver.runs.common import run_id
from resolver.runs.wiring.sandbox import RunHost, open_environment, open_runtime, runtime_kind
from resolver.runtime.environment.environment import MAX_TAIL_CHARACTERS, set_up
from resolver.verification.missing_environment import find_missing_environment
from resolver.verification.project_tree import ProjectTree
from resolver.verification.sandbox_checks import execute_check
from resolver.verification.selection import find_checks


@dataclass(frozen=True)
class CheckTrial:
    """The result of trying a check. missing: why no test ran; None if tests ran, or if the reason
    is unknown."""

    command: str
    execution: CheckExecution
    missing: MissingEnvironment | None


@dataclass(frozen=True)
class SetupTrial:
    """The result of trying a setup.

    source: what was run; None if there is no setup. image: None for a sandbox without a container.
    commit: the abbreviated id of the commit that was checked out. output: the end of the setup's
    output. warnings: for a person.
    """

    ok: bool
    source: str | None
    image: str | None
    commit: str
    seconds: float
    output: str
    warnings: tuple[str, ...]
    checks: tuple[CheckTrial, ...]

    @property
    def is_usable(self) -> bool:
        """True if the setup works, and the environment lacks nothing that a check needs."""
        return self.ok and not any(check.missing for check in self.checks)


def try_setup(settings: Settings, host: RunHost, root: Path) -> SetupTrial:
    """Run the setup, and then the checks, at the commit that is checked out in `root`.

    Nothing of it is kept. Checks with services are left out.

    Raises SandboxError if no sandbox of the image can be started, and WorkspaceError if there is no
    commit.
    """
    state, stream = State(), EventStream(MemoryStore())
    stream.subscribe("state", state.apply, essential=True)
    kind = runtime_kind(settings, host)
    run = run_id(f"init:{root}", utc_now())
    started = time.monotonic()
    with temporary_directory() as folder:
        workspace = Workspace.clone(str(root), folder / "clone.git")
        environment = open_environment(settings, kind, workspace, host, keep=False)
        with open_runtime(settings, kind, run, host, environment.image) as runtime:
            runtime.checkout(workspace.git_dir_tar, workspace.base, workspace.branch)
            limit = settings.setup_seconds
            result = set_up(environment, runtime, stream, state, workspace.base, limit)
            tree = ProjectTree.from_commit(workspace.git, workspace.base)
            found, _ = find_checks(settings.project_checks, tree)
            executed = [
                (check, execute_check(runtime, check, settings.verification_seconds))
                for check in (found if result.ok else ())
            ]
    outputs = [event.content for event in state.events if isinstance(event, CmdOutput)]
    suggested = environment.suggested
    return SetupTrial(
        ok=result.ok,
        source=environment.plan.source if environment.plan else None,
        image=None if kind == "local" else settings.image,
        commit=workspace.base[:12],
        seconds=time.monotonic() - started,
        output=outputs[0][-MAX_TAIL_CHARACTERS:].strip() if outputs else "",
        warnings=result.warnings,
        checks=tuple(
            CheckTrial(check.command, execution, find_missing_environment(execution, suggested))
            for check, execution in executed
        ),
    )
