"""Tests of `resolver eval`: tasks of a history, and Harbor, with the examples of the docs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from resolver.cli.main import run
from tests.evaluation.task_schema import check_task, execute_script, reward_of
from tests.parts.runs import git, make_checkout

SETTINGS = """\
image: {image}
setup: echo "export SUM=plus" >> setup.log; export SUM=plus
checks:
  - name: tests
    command: |
      test "$SUM" = plus
      for test in tests/*.sh; do sh "$test"; done
"""
MUL, ADD = "test 6 = 6\n", 'test "$(sh add.sh 2 3)" = 5\n'
DOCS = (Path(__file__).parents[2] / "docs/how-to/evaluation.md").read_text()
HISTORY, RUN = [
    line.split()[1:] for line in DOCS.splitlines() if line.startswith("    resolver eval")
][:2]
"""The first example of the documentation."""


def make_history(folder: Path, image: str, fixes: int = 1) -> Path:
    """Return a repository with fixes that have tests, and a tag on the last."""
    files = {
        ".github/resolver.yml": SETTINGS.format(image=image),
        ".gitignore": "*.log\n",
        "add.sh": "echo $(($1 - $2))\n",
        "tests/mul.sh": MUL,
    }
    repository = make_checkout(folder, files)
    for number in range(1, fixes + 1):
        (repository / "add.sh").write_text(f"echo $(($1 + $2)) # {number}\n")
        (repository / f"tests/add{number}.sh").write_text(ADD)
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "-m", f"add.sh subtracts\n\n2 3 is -1.\n\nFixes #{number}")
    git(repository, "tag", "v1")
    return repository


def environment_in(folder: Path) -> dict[str, str]:
    given = {name: os.environ[name] for name in ("PATH", "DOCKER_HOST") if name in os.environ}
    return {"HOME": str(folder / "home"), **given}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return environment_in(tmp_path)


@pytest.fixture(scope="module")
def history_task(tmp_path_factory: pytest.TempPathFactory, python_image: str) -> Path:
    """The task that the command makes of the only fix of a repository."""
    folder = tmp_path_factory.mktemp("history")
    repository, suite = make_history(folder / "sums", python_image), folder / "suite"
    assert run(example(HISTORY, repository, suite), environment_in(folder)) == 0
    (task,) = suite.iterdir()
    return task


def example(
    words: list[str], repository: Path | None = None, suite: Path | None = None
) -> list[str]:
    places = {"PATH": str(repository), "SUITE": str(suite)}
    return [places.get(word, word) for word in words]


@pytest.mark.engine
def test_a_usable_fix_becomes_a_task_that_tells_the_fix_from_its_absence(
    tmp_path: Path, history_task: Path, python_image: str
) -> None:
    task, repository = history_task, history_task.parents[1] / "sums"
    config = check_task(task)
    assert config["task"]["name"] == f"sums/{task.name}"
    assert config["metadata"]["base_commit"] == git(repository, "rev-parse", "HEAD~1")
    assert (task / "instruction.md").read_text() == "# add.sh subtracts\n\n2 3 is -1.\n"
    dockerfile = (task / "environment/Dockerfile").read_text()
    assert f"\nFROM {python_image}\n" in dockerfile and "setup.sh" in dockerfile
    patch = (task / "solution/fix.patch").read_text()
    assert "$1 + $2" in patch and "tests/" not in patch

    # As the Dockerfile does it.
    testbed, bundle = tmp_path / "testbed", task / "environment/repository.bundle"
    git(tmp_path, "clone", "-q", "-b", "main", str(bundle), str(testbed))
    setup = tmp_path / "task"
    setup.mkdir()
    shutil.copy(task / "environment/setup.sh", setup)
    steps = [line.removeprefix("RUN ") for line in dockerfile.splitlines() if "/opt/task" in line]
    for step in (step for step in steps if step.startswith(("bash ", "echo "))):
        command = step.replace("/opt/task", str(setup))
        subprocess.run(["bash", "-c", command], cwd=testbed, check=True)
    without_setup = reward_of(task, testbed, tmp_path / "without")
    with_setup = {"BASH_ENV": f"{setup}/bash_env"}
    before = reward_of(task, testbed, tmp_path / "before", with_setup)
    execute_script(task / "solution/solve.sh", testbed, tmp_path)
    assert [without_setup, before] == ["0", "0"]
    assert reward_of(task, testbed, tmp_path / "unprepared") == "0"
    assert reward_of(task, testbed, tmp_path / "after", with_setup) == "1"
    # A shell that another has started keeps the variables that it was given.
    shell = ["bash", "-c", 'echo $SUM; SUM=minus bash -c "echo \\$SUM"']
    shown = subprocess.run(shell, env={**os.environ, **with_setup}, capture_output=True, text=True)
    assert shown.stdout.split() == ["plus", "minus"]


@pytest.mark.attack
@pytest.mark.engine
def test_nothing_of_the_fix_is_in_what_the_agent_starts_from(
    tmp_path: Path, history_task: Path
) -> None:
    """An agent searches the objects, refs and tags of its repository for the fix and its tests:
    they are not there."""
    bundle = history_task / "environment/repository.bundle"
    git(tmp_path, "clone", "-q", "--mirror", str(bundle), "clone.git")
    clone = tmp_path / "clone.git"
    listed = git(
        clone, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)"
    )
    seen = [git(clone, "for-each-ref"), git(clone, "log", "--all")]
    seen += [git(clone, "cat-file", "-p", line.split()[1]) for line in listed.splitlines()]
    assert "Begin" in "\n".join(seen) and "$1 - $2" in "\n".join(seen)
    for future in ("Fixes #1", "v1", "$1 + $2", ADD, "tests/add1.sh"):
        assert future not in "\n".join(seen)


@pytest.mark.engine
@pytest.mark.usefixtures("engine")
def test_the_command_stops_after_three_fixes_that_fail_for_one_cause(
    tmp_path: Path, environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    repository = make_history(tmp_path / "sums", "localhost:1/no-such-image:1", fixes=5)
    suite = tmp_path / "suite"
    assert run(example(HISTORY, repository, suite), environment) == 1
    shown = capsys.readouterr().err
    assert shown.count("not usable, the sandbox failed") == 3
    assert "localhost:1/no-such-image:1" in shown and "\n  -> " in shown
    assert list(suite.iterdir()) == []


def test_a_history_without_a_usable_fix_says_why(
    tmp_path: Path,
    environment: dict[str, str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    repository = make_checkout(tmp_path / "r", {"a.py": "a = 1\n"})
    (repository / "test_a.py").write_text("def test_a(): pass\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Test a\n\nFixes #3")
    assert run(example(HISTORY, repository, tmp_path / "suite"), environment) == 3
    shown = capsys.readouterr()
    assert "0 of 1 fix can be tasks" in shown.out
    assert "not usable, it changes only tests" in shown.err


def test_harbor_runs_resolver_on_the_bundled_suite_with_the_options_that_are_given(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    script = tmp_path / "bin/harbor"
    script.parent.mkdir()
    words = f'printf "%s\\n" "$@" "$LLM_API_KEY" > {tmp_path}/arguments; exit 7'
    script.write_text(f"#!/bin/sh\n{words}\n")
    script.chmod(0o755)
    given = {"PATH": f"{script.parent}:{environment['PATH']}", "LLM_API_KEY": "key"}
    command = ["eval", "run", "bundled", "--model", "m", "-k", "3", "--ak", "package=x y"]
    assert run(command, environment | given) == 7
    suite = str(Path(__file__).parents[2] / "suite")
    agent = "resolver.evaluation.harbor_agent:ResolverAgent"
    seen = ["run", "--path", suite, "--agent", agent, *command[3:], "key"]
    assert (tmp_path / "arguments").read_text().splitlines() == seen


def test_without_harbor_its_installation_is_named(
    environment: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", "run", "bundled"], environment | {"PATH": "/nowhere"}) == 2
    assert "pip install 'resolver-agent[evaluation]'" in capsys.readouterr().err
