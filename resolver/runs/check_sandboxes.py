"""Opens the sandboxes in which checks are executed, one for each tree.

They have the image, the set-up and the limits of the agent's sandbox, and a run id of their own: a
sandbox removes what an earlier attempt with its id has left, and the agent's still runs. A tree
that alters dependencies or the set-up is not executed in what the set-up made of the base commit;
the set-up runs on its own files, and must succeed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from resolver.config.settings import Settings
from resolver.controller.control import Control
from resolver.errors import SandboxError, ServiceUnavailable, SetupFailed, SetupFailureReason
from resolver.events.lifecycle import Egress
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.git.bundle import git_dir_tar
from resolver.git.tree import decode_path, read_changes
from resolver.git.workspace import Workspace
from resolver.models.verification import (
    CheckExecution,
    ProjectCheck,
    TreeName,
    UnpreparedEnvironment,
)
from resolver.runs.wiring.sandbox import (
    RunHost,
    engine_environment,
    open_environment,
    open_runtime,
    runtime_kind,
)
from resolver.runtime.base import can_change_host_files
from resolver.runtime.engine import connect_engine
from resolver.runtime.environment.changed_environment import (
    TreeEnvironment,
    environment_of_change,
)
from resolver.runtime.environment.environment import Environment, set_up
from resolver.runtime.environment.images import image_id
from resolver.runtime.runtime import Runtime
from resolver.verification.runner import BaseResults, CheckExecutor, digest_of
from resolver.verification.sandbox_checks import execute_check

BASE_RESULTS = "base-checks"
"""Folder of the results at base commits, in the host's cache folder."""


SERVICE_FAILED = 125
"""Exit code of a check whose services could not be started, as of a container that could not be."""


@dataclass
class SandboxExecutor:
    """Executes checks in one sandbox, and before them the set-up, which does nothing a second time.

    Each execution has services of its own, as a job of a workflow has.

    The set-up may take as long as a check, so that it can be interrupted in the same way.
    """

    runtime: Runtime
    set_up: Callable[[], object]
    _is_interrupted: bool = False

    def execute(self, check: ProjectCheck, seconds: float) -> CheckExecution:
        """Return the result. Raises SandboxError if the sandbox is lost."""
        self.set_up()
        if self._is_interrupted:
            raise SandboxError("the check was interrupted", "start the run again")
        try:
            with self.runtime.run_services(check.services, seconds, lambda: self._is_interrupted):
                return execute_check(self.runtime, check, seconds)
        except ServiceUnavailable as error:
            return CheckExecution(
                exit_code=SERVICE_FAILED, seconds=0.0, output=error.what, report_complete=False
            )

    def interrupt(self) -> None:
        """End the set-up or the check that is running, and execute no other."""
        self._is_interrupted = True
        self.runtime.interrupt()


class CheckSandboxes:
    """The sandboxes of one verification.

    run: id from which those of the sandboxes are made.
    workspace: the clone. Its base is what the environment is chosen for.
    commits: the commits to check out, by the name of their tree.
    control: its stop ends the sandboxes.
    service_names: names of the services that checks need. They resolve to the loopback address.
    """

    def __init__(
        self,
        settings: Settings,
        host: RunHost,
        run: str,
        workspace: Workspace,
        commits: Mapping[TreeName, str],
        control: Control,
        service_names: tuple[str, ...] = (),
    ) -> None:
        self._settings = settings
        self._host = host
        self._run = run
        self._workspace = workspace
        self._service_names = service_names
        self._commits = commits
        self._control = control
        self.connections: list[Egress] = []
        """Those of the sandboxes that were closed."""
        self._kind = runtime_kind(settings, host)
        environment = open_environment(settings, self._kind, workspace, host)
        self.suggested_setup = environment.suggested
        """The usual set-up of the project, if it is not executed."""
        self._environments = {
            tree: self._environment_of(environment, commit) for tree, commit in commits.items()
        }
        self.digest = digest_of(
            {
                "repository": workspace.identity,
                "kind": self._kind,
                "memory": settings.memory,
                "egress": settings.egress,
                "environment": self._identity(environment),
            }
        )
        """Identifies everything besides tree and command that decides how a check ends."""
        # Programs of this machine may change between two runs; those of an image don't.
        self.base_results = (
            BaseResults(host.cache / BASE_RESULTS) if self._kind == "docker" else None
        )

    @property
    def unprepared(self) -> UnpreparedEnvironment | None:
        """Why one of the trees can't have an environment that fits it; None if all can."""
        found = (e for e in self._environments.values() if isinstance(e, UnpreparedEnvironment))
        return next(found, None)

    @contextmanager
    def open(self, tree: TreeName) -> Iterator[CheckExecutor]:
        """Start a sandbox with the tree and the set-up. Called from several threads."""
        settings, workspace, commit = self._settings, self._workspace, self._commits[tree]
        run, host = f"{self._run}-{tree}", self._host
        git_dir = partial(git_dir_tar, workspace.git, workspace.folder, commit, workspace.branch)
        # The set-up's events are not the run's: a resumed run would execute them again.
        state, stream = State(), EventStream(MemoryStore())
        stream.subscribe("state", state.apply, essential=True)
        chosen = self._environments[tree]
        assert isinstance(chosen, TreeEnvironment), "without one, no check is executed"
        runtime = open_runtime(
            settings, self._kind, run, host, chosen.environment.image, self._service_names
        )
        try:
            with runtime:
                runtime.checkout(git_dir, commit, workspace.branch)
                seconds = settings.setup_seconds

                def prepare() -> None:
                    altered = chosen.altered_by if chosen.environment.plan else ()
                    if altered and can_change_host_files(runtime.isolation):
                        raise SetupFailed(altered, "", "shared_files")
                    made = set_up(chosen.environment, runtime, stream, state, commit, seconds)
                    if altered and not made.ok:
                        why: SetupFailureReason = (
                            "setup_timeout" if made.timed_out else "setup_failed"
                        )
                        raise SetupFailed(altered, made.output, why)

                executor = SandboxExecutor(runtime, cache(prepare))
                with self._control.interruptible(executor.interrupt, runtime.close):
                    yield executor
        finally:
            self.connections += runtime.take_connections()

    def _environment_of(
        self, environment: Environment, commit: str
    ) -> TreeEnvironment | UnpreparedEnvironment:
        """Return the environment of a tree, in which nothing is kept for later runs."""
        workspace = self._workspace
        changes = read_changes(workspace.git, workspace.base, commit)
        found = environment_of_change(
            environment,
            self._settings.image,
            [decode_path(change.path) for change in changes],
            workspace.read,
            lambda path: workspace.read(path, commit),
        )
        if isinstance(found, UnpreparedEnvironment):
            return found
        # Without a key, no sandbox of a change is saved as the environment of later runs.
        return replace(found, environment=replace(found.environment, key=None))

    def _identity(self, environment: Environment) -> tuple[str, ...]:
        """Return what identifies the image and the set-up that is executed in it."""
        plan = environment.plan
        set_up_by = (plan.source, plan.script) if plan else ()
        if self._kind != "docker":
            return (environment.image, *set_up_by)
        if environment.key:
            return (environment.key,)
        client = connect_engine(engine_environment(self._settings, self._host.environment))
        try:
            return (image_id(client, environment.image), *set_up_by)
        finally:
            client.close()
