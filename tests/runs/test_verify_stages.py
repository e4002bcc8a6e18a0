"""Tests of what the verify stage does with a change."""

import os
from dataclasses import replace
from pathlib import Path

import docker
import pytest
import yaml

from resolver.config.settings import load_settings
from resolver.controller.control import Control
from resolver.errors import SetupFailed
from resolver.events.lifecycle import CheckExecuted
from resolver.git.workspace import Workspace
from resolver.models.run import Patch
from resolver.models.verification import ProjectCheck, UnpreparedEnvironment
from resolver.runs.check_sandboxes import CheckSandboxes
from resolver.runs.verify import verify_in_sandboxes
from resolver.runs.wiring.sandbox import RunHost
from tests.git.scenario import make_repository, plain_git, write
from tests.github import reports
from tests.parts.engine import TOOLBOX_CACHE, wait_until_removed
from tests.runs.plain_values import prepared_run, run_log, run_request

SETUP = "set -e\nmkdir -p site; cp wheels/$(cat requirements.txt) site/\nexport SITE=$PWD/site\n"
FILES = {
    "requirements.txt": "minus",
    "wheels/minus": "",
    "wheels/plus": "",
    "tests/test_a.py": "import unittest\n",
}


class Project:
    """A repository, its bare clone, and changes of it."""

    def __init__(self, folder: Path, files: dict[str, str]) -> None:
        self.repository = make_repository(folder / "project", files)
        self.workspace = Workspace.clone(str(self.repository), folder / "clone.git")

    def commit(self, files: dict[str, str]) -> str:
        """Return a commit, also in the clone, that differs from the base in these files."""
        for path, text in files.items():
            write(self.repository, path, text)
        plain_git(self.repository, "checkout", "-q", "-B", "change", self.workspace.base)
        plain_git(self.repository, "commit", "-qam", "Change")
        commit = plain_git(self.repository, "rev-parse", "HEAD")
        plain_git(self.repository, "checkout", "-q", "main")
        git_dir = str(self.workspace.git.git_dir)
        plain_git(self.repository, "push", "-q", git_dir, f"{commit}:refs/changes/{commit}")
        return commit

    def patch(self, files: dict[str, str]) -> Patch:
        commit = self.commit(files)
        return Patch(
            base=self.workspace.base,
            tree=self.workspace.tree(commit),
            files=reports.patch(*files).files,
        )


def test_a_changed_dependency_that_no_set_up_installs_is_not_verified_in_the_old_environment(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path, FILES)
    prepared = prepared_run(
        run_request(tmp_path),
        project.workspace,
        settings=load_settings({"runtime": "local"}, {}),
    )
    with run_log(prepared.request.output.log) as log:
        found = verify_in_sandboxes(prepared, log, project.patch({"requirements.txt": "plus"}))
        assert list(log.state.events) == [], "nothing is executed"
    assert (found.verdict, found.reason) == ("not_verified", "environment")
    unprepared = UnpreparedEnvironment(paths=("requirements.txt",), cause="no_setup")
    assert found.unprepared == unprepared


@pytest.mark.engine
def test_a_changed_dependency_is_installed_from_the_change_by_its_set_up(
    tmp_path: Path, engine: docker.DockerClient, python_image: str
) -> None:
    project = Project(tmp_path, {**FILES, ".agents/setup.sh": SETUP})
    settings = load_settings({"runtime": "docker", "image": python_image}, {})
    host = RunHost(os.environ, TOOLBOX_CACHE)
    check = ProjectCheck(name="site", command='ls "$SITE"')

    def execute(name: str) -> str:
        head = project.commit({"requirements.txt": name})
        commits = {"base": project.workspace.base, "head": head}
        sandboxes = CheckSandboxes(
            settings, host, "dependency", project.workspace, commits, Control()
        )
        assert sandboxes.unprepared is None
        with sandboxes.open("head") as executor:
            return executor.execute(check, 60).output.strip()

    assert execute("plus") == "plus"
    with pytest.raises(SetupFailed) as failed:
        execute("none")
    assert failed.value.paths == ("requirements.txt",)
    assert "wheels/none" in failed.value.output
    wait_until_removed(engine, "dependency-head")


CHECKS = """\
checks:
  - name: unit
    command: python3 -m unittest
    services:
      cache:
        image: resolver-test/redis:7
        command: [redis-server, --save, "", --maxmemory, 32mb]
        ports: [6379]
"""
CACHE_CODE = """\
import subprocess


def ask(*words):
    command = ["redis-cli", "-e", "-h", "cache", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def total(prices):
    assert ask("CONFIG", "GET", "maxmemory")[1] == str(32 * 1024 * 1024)
    ask("DEL", "total")
    ask("RPUSH", "total", *prices)
    return {}(map(int, ask("LRANGE", "total", 0, -1)))
"""
TEST = """\
import unittest
import shop


class ShopTest(unittest.TestCase):
    def test_one(self):
        self.assertEqual(shop.total([3]), 3)
"""
ADDED_TEST = """\

    def test_two(self):
        self.assertEqual(shop.total([3, 4]), 7)
"""


@pytest.mark.engine
def test_a_check_with_a_service_is_verified(
    tmp_path: Path, engine: docker.DockerClient, service_images: tuple[str, str]
) -> None:
    """What the repository declares reaches the containers of its checks, and its values the code
    under test."""
    project = Project(tmp_path, {"shop.py": CACHE_CODE.format("max"), "test_shop.py": TEST})
    given = {"runtime": "docker", "image": service_images[1], "service_images": ["resolver-test/*"]}
    settings = load_settings(given, {}, yaml.safe_load(CHECKS))
    request = replace(run_request(tmp_path), host=RunHost(os.environ, TOOLBOX_CACHE))
    prepared = prepared_run(request, project.workspace, settings=settings)
    fix = {"shop.py": CACHE_CODE.format("sum"), "test_shop.py": TEST + ADDED_TEST}
    with run_log(request.output.log) as log:
        found = verify_in_sandboxes(prepared, log, project.patch(fix))
        outputs = [e.execution.output for e in log.state.events if isinstance(e, CheckExecuted)]
    evidence = found.evidence()
    assert evidence.verdict == "verified", "\n".join(outputs)
    assert evidence.reproduction == ("test_shop.ShopTest.test_two",)
    [check] = evidence.checks
    assert (check.base.passed, check.head.passed) == (1, 2)
    wait_until_removed(engine, f"{request.run}-head")
