"""`resolver init --check`: the setup, tried once in a sandbox."""

import os
from pathlib import Path

import docker
import pytest

from resolver.cli.main import run
from resolver.config.image_reference import PREPARED_PREFIX
from resolver.git.clone import repository_identity
from resolver.runtime.environment.images import REPOSITORY_LABEL, derive_key
from tests.parts.runs import make_checkout

ACTION = ("--action", "octo/resolver@0123456789abcdef0123456789abcdef01234567")
HERE = {
    "PATH": os.environ["PATH"],
    "HOME": os.environ.get("HOME", "/root"),
    "RESOLVER_RUNTIME": "local",
}


def check(root: Path, **environment: str) -> int:
    return run(["init", str(root), *ACTION, "--check"], {**HERE, **environment})


def test_a_setup_that_fails_is_shown_with_its_output_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = make_checkout(tmp_path / "demo", {".agents/setup.sh": "echo no such tool; exit 4\n"})
    assert check(root) == 1
    shown = capsys.readouterr().out
    assert "The setup from .agents/setup.sh fails" in shown and "no such tool" in shown
    assert "run `resolver init --check` again" in shown


def test_checks_are_tried_and_what_the_environment_lacks_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = "import unittest\n{}\nclass A(unittest.TestCase):\n    def test_a(self): pass\n"
    settings = {".github/resolver.yml": "max_budget: 1\n"}
    files = {**settings, "setup.py": "", "test_a.py": test.format("")}
    root = make_checkout(tmp_path / "works", files)
    assert check(root) == 0
    runs = "The check `python -m unittest discover` runs: 1 tests pass, 0 fail."
    assert runs in capsys.readouterr().out
    root = make_checkout(tmp_path / "lacks", {**files, "test_a.py": test.format("import nowhere")})
    assert check(root) == 1
    shown = capsys.readouterr().out
    assert "The check `python -m unittest discover`: no test ran: " in shown
    assert "No module named 'nowhere'" in shown
    assert "Install what the tests need: `setup: pip install -e .`" in shown


@pytest.mark.engine
@pytest.mark.usefixtures("busybox_image")
def test_the_image_is_tried_and_nothing_is_kept(
    engine: docker.DockerClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = "resolver-test/busybox:latest"
    files = {".github/resolver.yml": f"image: {image}\nsetup: 'busybox true; test -f run.sh'\n"}
    root = make_checkout(tmp_path / "demo", {**files, "run.sh": ""})
    owner = derive_key("repository", repository_identity(str(root)))
    assert check(root, RESOLVER_RUNTIME="docker") == 0, capsys.readouterr().out
    assert f"in a sandbox of {image}" in capsys.readouterr().out
    label = f"{REPOSITORY_LABEL}={owner}"
    assert engine.images.list(name=PREPARED_PREFIX, filters={"label": label}) == []
    (root / ".github/resolver.yml").write_text("image: resolver-test/none:1\nsetup: 'true'\n")
    assert check(root, RESOLVER_RUNTIME="docker") == 1
    assert "resolver-test/none:1 is not on the engine" in capsys.readouterr().err
