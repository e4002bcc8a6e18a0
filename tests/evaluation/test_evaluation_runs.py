"""Tests of whole evaluations: killed and continued, several at a time, in Docker."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml

from resolver.cli.agent_workflow import evaluation_workflow_text
from resolver.cli.main import run
from resolver.evaluation.results import read_evaluation
from resolver.runtime.engine import RUN_LABEL
from tests.parts.evaluation_tasks import write_suite
from tests.parts.runs import INSTALLED_RESOLVER, RESOLVER
from tests.parts.waiting import until


def environment_of(folder: Path) -> dict[str, str]:
    """Return an environment whose temporary folders are below `folder`."""
    (folder / "tmp").mkdir(parents=True)
    return {
        "HOME": str(folder / "home"),
        "PATH": os.environ["PATH"],
        "TMPDIR": str(folder / "tmp"),
        "RESOLVER_VERIFY": "false",
    }


def arguments(folder: Path, *more: str) -> list[str]:
    words = ["eval", "run", str(folder / "suite"), "--output", str(folder / "results")]
    return [*words, "--model", "oracle", "--parallel", "2", *more]


def results_of(folder: Path) -> list[dict[str, Any]]:
    """Return the results without their durations."""
    results = read_evaluation(folder / "results").results
    return [result.model_dump(mode="json", exclude={"seconds"}) for result in results]


def processes_in(environment: Mapping[str, str]) -> list[str]:
    """Return the processes that work below the temporary folders of an environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if str(path.readlink()).startswith(environment["TMPDIR"]):
                found.append(path.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.nightly
def test_a_killed_evaluation_continues_and_gives_the_same_results_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    """Whole runs, because processes are killed in the middle of them."""
    write_suite(tmp_path / "suite", 3)
    environment = environment_of(tmp_path)
    words = arguments(tmp_path, "--runtime", "local")
    command = [INSTALLED_RESOLVER, *words]
    killed = subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    until(lambda: any((tmp_path / "results").glob("*/*/result.json")))
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("results/*/*/result.json")}

    continued = subprocess.run([RESOLVER, *words], env=environment, capture_output=True)
    assert continued.returncode == 0, continued.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    results = results_of(tmp_path)
    assert [result["resolved"] for result in results] == [True] * 3
    # Only an empty folder can be left, if the kill came between its creation and its lock.
    assert [path for path in (tmp_path / "tmp").rglob("*") if not path.is_dir()] == []
    assert list((tmp_path / "results").glob("*/*/repository.git")) == []
    assert processes_in(environment) == []

    whole = tmp_path / "whole"
    write_suite(whole / "suite", 3)
    uninterrupted = arguments(whole, "--runtime", "local")
    assert run(uninterrupted, environment_of(whole)) == 0
    assert results_of(whole) == results


@pytest.mark.nightly
@pytest.mark.engine
def test_an_evaluation_in_docker_leaves_no_container(
    tmp_path: Path, engine: docker.DockerClient, python_image: str
) -> None:
    """Whole runs, because the engine alone knows which containers are left."""
    write_suite(tmp_path / "suite", 2)
    environment = environment_of(tmp_path)
    docker_options = ("--model", "nop", "--runtime", "docker", "--image", python_image)
    words = arguments(tmp_path, *docker_options)
    assert run(words, environment) == 0
    assert [result["resolved"] for result in results_of(tmp_path)] == [True, True, False, False]
    # Other tests have containers on the engine at the same time, whose runs may have short ids.
    requests = tmp_path.glob("results/*/*/output/request.json")
    runs = tuple(json.loads(path.read_text())["run"] for path in requests)
    assert len(runs) == 4

    def left() -> list[str]:
        containers = engine.containers.list(all=True, ignore_removed=True)
        labels = [str(container.labels.get(RUN_LABEL, "")) for container in containers]
        return [label for label in labels if label.startswith(runs)]

    until(lambda: not left())


def test_the_scheduled_workflow_writes_an_issue_if_fewer_tasks_are_resolved(tmp_path: Path) -> None:
    """Whole runs, because the script of a workflow starts the real commands one after the other."""
    write_suite(tmp_path / "suite", 1)
    workflow = yaml.safe_load(evaluation_workflow_text("octo/resolver@v1", "main", "suite"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/resolver").symlink_to(RESOLVER)
    steps = {step.get("name"): step for step in workflow["jobs"]["evaluate"]["steps"]}
    environment = {
        **environment_of(tmp_path),
        **workflow["jobs"]["evaluate"]["env"],
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "RESOLVER_RUNTIME": "local",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_SERVER_URL": "https://github.test",
        "GITHUB_REPOSITORY": "ada/sums",
        "GITHUB_RUN_ID": "7",
    }
    for model in ("oracle", "nop"):
        (tmp_path / "results").mkdir()
        subprocess.run(
            ["bash", "-e", "-c", steps["Run the tasks"]["run"]],
            env={**environment, "LLM_MODEL": model},
            cwd=tmp_path,
            check=True,
        )
        if model == "oracle":
            assert not (tmp_path / "issue.md").exists()
            (tmp_path / "results").rename(tmp_path / "baseline")
    issue = (tmp_path / "issue.md").read_text()
    assert "| nop | 0 of 1 (0 %, 0-79 %) | - |" in issue
    assert "1 is no longer resolved by nop" in issue and "- `task-000`" in issue
    assert "(https://github.test/ada/sums/actions/runs/7)" in issue
    assert "Evaluation of suite" in (tmp_path / "summary.md").read_text()
