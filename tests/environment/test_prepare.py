"""Tests of running the setup in real sandboxes."""

from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from resolver.config.image_reference import PREPARED_PREFIX
from resolver.events import actions as a
from resolver.events import lifecycle as life
from resolver.events import observations as o
from resolver.events.base import Source
from resolver.events.state import State
from resolver.events.stores import MemoryStore
from resolver.events.stream import EventStream
from resolver.runtime.base import Machine
from resolver.runtime.environment.environment import (
    Environment,
    SetupResult,
    set_up,
)
from resolver.runtime.environment.images import REPOSITORY_LABEL, find_prepared_image
from resolver.runtime.environment.plan import SetupPlan
from resolver.runtime.runtime import Runtime
from tests.parts.sandboxes import DOCKER_BUSYBOX, DOCKER_PYTHON, LOCAL, git_dir_tar, kinds

pytestmark = pytest.mark.xdist_group("images")

FILES = {"README": b"one\n", ".gitignore": b"cache/\n", "lock": b"1\n"}
MKDIR = "python3 -c 'import os, sys; [os.mkdir(d) for d in sys.argv[1:]]'"
here = pytest.mark.parametrize("sandbox_kind", kinds(LOCAL))


class Scenario:
    """A sandbox with a repository in it, and the log of its setup."""

    def __init__(self, sandbox: Runtime, folder: Path) -> None:
        self.sandbox = sandbox
        tar, self.base = git_dir_tar(folder, FILES)
        sandbox.checkout(tar, self.base, "main")
        self.state = State()
        self.stream = EventStream(MemoryStore())
        self.stream.subscribe("state", self.state.apply, essential=True)

    def set_up(self, script: str, key: str | None = None, seconds: float = 30) -> SetupResult:
        plan = SetupPlan(".agents/setup.sh", script)
        environment = Environment("", plan, key, "owner")
        return set_up(environment, self.sandbox, self.stream, self.state, self.base, seconds)

    def run(self, command: str) -> str:
        found = self.sandbox.execute(a.CmdRun(command=command))
        return found.content.strip()


@pytest.fixture
def scenario(sandbox: Runtime, tmp_path: Path) -> Scenario:
    return Scenario(sandbox, tmp_path / "repository")


@pytest.mark.parametrize("sandbox_kind", kinds(LOCAL, DOCKER_BUSYBOX))
def test_what_the_setup_exports_reaches_the_agents_shell_and_its_output_the_log(
    scenario: Scenario,
) -> None:
    script = (
        "echo preparing; export MODE='a  b'\nPATH=/own/bin:$PATH\n"
        'echo "A=1=2" >>"$GITHUB_ENV"; echo "B=x y" >>"$GITHUB_ENV"\n'
        'echo /tool/bin >>"$GITHUB_PATH"; resolver_take_env; [ "$A" = "1=2" ]'
    )
    made = scenario.set_up(script)
    assert (made.ok, made.output, made.warnings) == (True, "preparing\n", ())
    action = next(e for e in scenario.state.events if isinstance(e, a.CmdRun))
    result = next(e for e in scenario.state.events if isinstance(e, o.CmdOutput))
    assert action.source is Source.ENVIRONMENT and "echo preparing" in action.thought
    assert (result.content, result.cause) == ("preparing\n", action.id)
    assert scenario.state.commands == []
    shown = scenario.run('echo "$MODE|$A|$B|${GITHUB_ENV-none}"; echo "$PATH"; pwd').splitlines()
    assert shown[0] == "a  b|1=2|x y|none" and shown[2] == scenario.sandbox.root
    assert shown[1].startswith("/tool/bin:/own/bin:")


@here
def test_a_failed_setup_is_reported_with_the_end_of_its_output(scenario: Scenario) -> None:
    made = scenario.set_up("export KEPT=1; echo many words; echo no network >&2; exit 7")
    assert not made.ok
    assert "exit code 7" in made.warnings[0]
    assert "no network" in made.warnings[0]
    result = next(e for e in scenario.state.events if isinstance(e, life.Warned))
    assert result.to_agent
    assert "no network" in result.message
    assert scenario.run("echo $KEPT") == "1"


@here
def test_a_setup_that_does_not_end_is_ended(scenario: Scenario) -> None:
    made = scenario.set_up("echo before; sleep 60", seconds=0.5)
    assert not made.ok
    assert "did not finish within" in made.warnings[0]
    assert scenario.run("echo alive").endswith("alive")


@here
def test_files_of_the_setup_are_not_part_of_the_change(scenario: Scenario) -> None:
    made = scenario.set_up(f"{MKDIR} build cache; echo x >build/out; echo y >cache/z; echo 2 >lock")
    assert "lock" in made.warnings[0]
    assert scenario.run("cat lock build/out cache/z; git status --short") == "1\nx\ny"
    scenario.run("echo two >README; echo new >build/mine")
    change = scenario.sandbox.export_change(scenario.base)
    assert change["bundle"] is not None
    # README and build/mine, which the agent wrote; not build/out.
    listed = scenario.run(
        f"git --git-dir {scenario.sandbox.scratch}/repository.git"
        f" ls-tree -r --name-only {change['tree']}"
    )
    assert listed.split() == [".gitignore", "README", "build/mine", "lock"]


@here
def test_an_interrupted_setup_is_run_again(scenario: Scenario) -> None:
    cut_off = scenario.stream.add(a.CmdRun(command="bash setup.sh", source=Source.ENVIRONMENT))
    assert scenario.set_up("true").ok
    assert scenario.state.pending == {}
    answers = [e for e in scenario.state.events if e.cause == cut_off.id]
    assert [type(e) for e in answers] == [o.ErrorObservation]


@pytest.mark.engine
def test_a_prepared_environment_is_used_again_at_another_commit(
    engine: docker.DockerClient, new_machine: Callable[..., Machine], tmp_path: Path
) -> None:
    key = f"test-{tmp_path.name}"
    script = f"export TOOL=ready; {MKDIR} cache deps; echo once >cache/mark; echo lib >deps/a"
    try:
        with Runtime(new_machine(DOCKER_PYTHON), command_timeout=30) as first:
            scenario = Scenario(first, tmp_path / "one")
            assert scenario.set_up(script, key).ok
            assert scenario.run("cat README") == "one"
        image = find_prepared_image(engine, key)
        assert image is not None
        assert engine.images.get(image).labels[REPOSITORY_LABEL] == "owner"
        with Runtime(new_machine(DOCKER_PYTHON, image=image), command_timeout=30) as second:
            FILES_LATER = {"README": b"two\n", ".gitignore": b"cache/\n", "deps/b": b"own\n"}
            tar, base = git_dir_tar(tmp_path / "two", FILES_LATER)
            second.checkout(tar, base, "main")
            state, stream = State(), EventStream(MemoryStore())
            stream.subscribe("state", state.apply, essential=True)
            environment = Environment(image, SetupPlan("s", script), key, is_prepared=True)
            assert set_up(environment, second, stream, state, base, 30).ok
            commands = [e.command for e in state.events if isinstance(e, a.CmdRun)]
            assert not any("setup.sh" in command for command in commands), "it was set up again"
            details = [e.detail for e in state.events if isinstance(e, life.StageCompleted)]
            assert details == ["s: kept from an earlier run"]
            shown = second.execute(
                a.CmdRun(command="echo $TOOL; cat README cache/mark deps/a; ls; git status --short")
            )
            assert shown.content.split() == [
                "ready",
                "two",
                "once",
                "lib",
                "README",
                "cache",
                "deps",
            ]
            assert second.export_change(base)["bundle"] is None
    finally:
        engine.images.remove(f"{PREPARED_PREFIX}:{key}", force=True)
