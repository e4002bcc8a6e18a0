"""`resolver init` on repositories as large projects have them: descriptions of an environment that
have grown old."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from resolver.cli.main import run

ACTION = ("--action", "octo/resolver@0123456789abcdef0123456789abcdef01234567")

COMMAND_LINE_LIBRARY = {
    "pyproject.toml": '[project]\nname = "press"\nrequires-python = ">=3.10"\n'
    '[dependency-groups]\ntests = ["pytest"]\n',
    "uv.lock": "version = 1\n",
    ".devcontainer/devcontainer.json": """{
  "name": "press",
  "image": "mcr.microsoft.com/devcontainers/python:3",
  "features": {"ghcr.io/devcontainers/features/node:1": {}},
  "customizations": {"vscode": {"settings": {"python.terminal.activateEnvironment": false}}},
  "onCreateCommand": ".devcontainer/on-create-command.sh"
}
""",
    ".devcontainer/on-create-command.sh": """\
#!/bin/bash
set -e
python3 -m venv --upgrade-deps .venv
. .venv/bin/activate
pip install -r requirements/dev.txt
pip install -e .
pre-commit install --install-hooks
""",
}


def test_what_is_not_used_is_said_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(tmp_path / "demo", COMMAND_LINE_LIBRARY)
    reason = ".devcontainer/devcontainer.json needs `features`, which Resolver does not act on"
    assert f"Not used: {reason}" in capsys.readouterr().out
    assert f"# Not used: {reason}" in (tmp_path / "demo/.github/resolver.yml").read_text()


def test_a_devcontainer_that_works_is_used_whole(tmp_path: Path) -> None:
    path = ".devcontainer/devcontainer.json"
    usable = COMMAND_LINE_LIBRARY[path].replace('"features"', '"customizations"', 1)
    files = {**COMMAND_LINE_LIBRARY, path: usable}
    settings, workflow = init(tmp_path / "demo", files)
    assert settings["image"] == "devcontainer"
    assert "setup" not in settings
    assert workflow["jobs"]["resolve"]["steps"][0]["with"]["egress"] == "packages"


def init(root: Path, files: Mapping[str, str], *options: str) -> tuple[dict[Any, Any], ...]:
    """The settings and the workflow that are written."""
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert run(["init", str(root), *ACTION, *options], {}) == 0
    written = (".github/resolver.yml", ".github/workflows/agent.yml")
    return tuple(yaml.safe_load((root / name).read_text()) for name in written)
