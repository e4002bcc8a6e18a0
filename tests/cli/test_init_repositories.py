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

MATHEMATICS = {
    "setup.py": "",
    "pyproject.toml": "[build-system]\nrequires = []\n",
    ".devcontainer/devcontainer.json": """{
  // development of the library
  "image": "mcr.microsoft.com/devcontainers/base:bookworm",
  "features": {"ghcr.io/devcontainers/features/python:1": {"version": "3.12"}},
  "postCreateCommand": "pip install -e '.[dev]' && pip install -r doc/requirements.txt",
}
""",
    "doc/requirements.txt": "sphinx\n",
}

SEARCH_TOOL = {
    "Cargo.toml": '[package]\nname = "search"\n',
}

WEB_FRAMEWORK_GO = {
    "go.mod": "module example.org/web\n\ngo 1.23\n",
    "Makefile": "test:\n\tgo test ./...\n",
}

WEB_FRAMEWORK_NODE = {
    "package.json": '{"scripts": {"test": "mocha", "test-ci": "nyc npm test", "lint": "eslint ."}}',
}


@pytest.mark.parametrize(
    ("files", "image", "setup"),
    [
        (COMMAND_LINE_LIBRARY, "python:3.12-slim-bookworm", "pip install uv &&"),
        (MATHEMATICS, "python:3.12-slim-bookworm", "pip install -e ."),
        (SEARCH_TOOL, "rust:1-slim-bookworm", "cargo fetch"),
        (WEB_FRAMEWORK_GO, "golang:1.23-bookworm", "go mod download"),
        (WEB_FRAMEWORK_NODE, "node:22-bookworm-slim", "npm install"),
    ],
    ids=["click", "sympy", "ripgrep", "gin", "express"],
)
def test_image_and_setup_fit(
    tmp_path: Path, files: Mapping[str, str], image: str, setup: str
) -> None:
    settings, _ = init(tmp_path / "demo", files)
    assert settings["image"] == image
    assert settings["setup"].startswith(setup)


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
