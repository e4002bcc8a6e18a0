"""The development container runs scripts of this repository, and sets up what CI sets up."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEVCONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())


@pytest.mark.parametrize("command", ["onCreateCommand", "postCreateCommand", "postStartCommand"])
def test_the_files_that_a_command_runs_exist(command: str) -> None:
    files = re.findall(r"(?:sh|bash) (\S+\.sh)", DEVCONTAINER[command])
    assert files or DEVCONTAINER[command].startswith("make ")
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_continuous_integration_runs_the_same_scripts() -> None:
    steps = (ROOT / ".ci" / "run").read_text()
    commands = " ".join(str(DEVCONTAINER[name]) for name in DEVCONTAINER if "Command" in name)
    scripts = set(re.findall(r"\S+\.sh", commands))
    assert scripts == set(re.findall(r"\S+\.sh", steps))


def test_the_engine_has_a_file_system_of_its_own() -> None:
    """Layers can't be stacked on the layers of the container itself: overlayfs(5)."""
    assert DEVCONTAINER["privileged"]
    assert any("target=/var/lib/docker" in mount for mount in DEVCONTAINER["mounts"])
