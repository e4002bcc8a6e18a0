"""Changes whose tests take more than they are given, in real containers."""

import os
import uuid
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from resolver.config.settings import load_settings
from resolver.models.run import Patch
from resolver.runs.verify import verify_in_sandboxes
from resolver.runs.wiring.sandbox import RunHost
from tests.parts.engine import TOOLBOX_CACHE
from tests.runs.plain_values import prepared_run, run_log, run_request
from tests.verification.suite.local_trees import write_repository
from tests.verification.suite.projects import THREE, UNITTEST

pytestmark = [pytest.mark.engine, pytest.mark.attack, pytest.mark.nightly]

RUN = f"hostile-{uuid.uuid4().hex[:8]}-"

HANGS = """\
import time


class T(unittest.TestCase):
    def test_x(self):
        time.sleep(600)
"""
FORKS = """\
import os


class T(unittest.TestCase):
    def test_x(self):
        while True:
            os.fork()
"""
SETTINGS = {
    "runtime": "docker",
    "checks": [{"name": "unittest", "command": "python3 -m unittest discover", "timeout": 6}],
    "memory": "256m",
}


TEXTS = {"hangs": HANGS, "forks": FORKS}


@pytest.mark.parametrize("name", TEXTS)
def test_a_change_whose_test_takes_everything_is_not_verified_and_ends(
    name: str, tmp_path: Path, engine: docker.DockerClient, python_image: str
) -> None:
    """A test of the change never ends, or forks without end: it is not verified."""
    new = {
        f"tests/test_{name}.py": f"import unittest\n{TEXTS[name]}",
        **UNITTEST.tests("three", THREE),
    }
    head = {**UNITTEST.base, **UNITTEST.code_with(UNITTEST.fix), **new}
    workspace, tree = write_repository(tmp_path / "repository.git", UNITTEST.base, head)
    settings = load_settings({**SETTINGS, "image": python_image}, {})
    request = replace(
        run_request(tmp_path), host=RunHost(os.environ, TOOLBOX_CACHE), run=RUN + name
    )
    prepared = prepared_run(request, workspace, settings=settings)
    with run_log(prepared.request.output.log) as log:
        found = verify_in_sandboxes(prepared, log, Patch(base=workspace.base, tree=tree))
    assert found.verdict == "not_verified", found
    base = found.checks[0].base
    assert base is not None and base.exit_code == 0
