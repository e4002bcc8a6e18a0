"""`resolver init` on repositories as large projects have them: descriptions of an environment that
have grown old, and many workflows of which few run tests."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from resolver.cli.main import run

ACTION = ("--action", "octo/resolver@0123456789abcdef0123456789abcdef01234567")
FOLDER = ".github/workflows"

SCORECARD = """\
name: Scorecard supply-chain security
on:
  branch_protection_rule:
  schedule: [{cron: '16 21 * * 1'}]
  push: {branches: [main, master]}
permissions: read-all
jobs:
  analysis:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: ossf/scorecard-action@v2
        with: {results_file: results.sarif}
"""
CODEQL = """\
name: CodeQL
on:
  push: {branches: [main, master]}
  pull_request: {branches: [main, master]}
jobs:
  analyze:
    name: Analyze
    strategy: {matrix: {language: [python, javascript]}}
    steps:
      - uses: actions/checkout@v4
      - uses: github/codeql-action/init@v3
      - run: make bootstrap
      - uses: github/codeql-action/analyze@v3
"""
STALE = """\
name: Close stale issues
on: {schedule: [{cron: '0 1 * * *'}], pull_request_target: {types: [labeled]}}
jobs:
  stale:
    steps: [{uses: actions/stale@v9}]
"""

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
    f"{FOLDER}/tests.yaml": """\
name: Tests
on:
  pull_request: {paths-ignore: ['docs/**', 'README.md']}
  push: {branches: [main, stable], paths-ignore: ['docs/**']}
jobs:
  suite:
    name: ${{ matrix.name || matrix.python }}
    strategy:
      matrix: {include: [{python: '3.13'}, {name: Minimum, python: '3.10', tox: minimum}]}
    steps:
      - uses: actions/checkout@v4
      - run: uv run --locked tox run -e ${{ matrix.tox || format('py{0}', matrix.python) }}
  typing:
    steps:
      - run: uv run --locked tox run -e typing
""",
    f"{FOLDER}/pre-commit.yaml": """\
name: pre-commit
on: {pull_request: , push: {branches: [main, stable]}}
jobs:
  main:
    steps: [{run: uv run --locked --group pre-commit pre-commit run --all-files}]
""",
    f"{FOLDER}/publish.yaml": """\
name: Publish
on: {push: {tags: ['*']}}
jobs:
  build:
    steps: [{run: uv build}]
  pypi:
    needs: build
    steps: [{uses: pypa/gh-action-pypi-publish@v1}]
""",
    f"{FOLDER}/lock.yaml": STALE,
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
    f"{FOLDER}/runtests.yml": """\
name: test
on:
  push: {branches: [master, '*.x']}
  pull_request: {branches: [master, '*.x']}
concurrency: {group: x, cancel-in-progress: true}
jobs:
  code-quality:
    steps: [{run: python -m pip install flake8}, {run: flake8 lib}]
  suite:
    strategy: {matrix: {group: [1, 2, 3, 4]}}
    steps:
      - run: pip install -r requirements-dev.txt
      - run: pytest --split ${{ matrix.group }}/4
""",
    f"{FOLDER}/docs-preview.yml": """\
name: Docs preview
on: {push: {branches: [master]}, pull_request: }
jobs:
  build:
    steps: [{run: make -C doc html}, {run: tox -e docs}, {uses: actions/upload-artifact@v4}]
""",
    f"{FOLDER}/comment-on-pr.yml": """\
name: Comment on PR
on: {pull_request_target: {types: [opened, edited, synchronize]}}
jobs:
  comment:
    steps: [{run: bin/check_authors.py}]
""",
    f"{FOLDER}/release.yml": """\
name: release
on: {push: {branches: ['1.*']}}
jobs:
  build:
    steps: [{run: release/build.sh}, {run: pytest --pyargs lib}]
""",
    f"{FOLDER}/backport.yml": """\
on: {pull_request: {types: [closed]}}
jobs:
  backport:
    steps: [{run: make test}]
""",
    f"{FOLDER}/stale.yml": STALE,
}

SEARCH_TOOL = {
    "Cargo.toml": '[package]\nname = "search"\n',
    f"{FOLDER}/ci.yml": """\
name: ci
on:
  pull_request:
  push: {branches: [master]}
  schedule: [{cron: '00 01 * * *'}]
jobs:
  build:
    name: ${{ matrix.build }}
    env:
      CARGO: cargo
      TARGET_FLAGS:
    strategy: {matrix: {build: [pinned, stable, musl]}}
    steps:
      - run: echo "CARGO=cross" >> $GITHUB_ENV
        if: matrix.build == 'musl'
      - run: ${{ env.CARGO }} build --verbose --workspace ${{ env.TARGET_FLAGS }}
      - run: ${{ env.CARGO }} test --verbose --workspace ${{ env.TARGET_FLAGS }}
  rustfmt:
    steps: [{run: cargo fmt --all --check}]
""",
    f"{FOLDER}/release.yml": """\
name: release
on: {push: {tags: ['[0-9]+.[0-9]+.[0-9]+']}}
jobs:
  build-release:
    steps: [{run: cargo test --release}, {run: cargo build --release}]
""",
}

WEB_FRAMEWORK_GO = {
    "go.mod": "module example.org/web\n\ngo 1.23\n",
    "Makefile": "test:\n\tgo test ./...\n",
    f"{FOLDER}/web.yml": """\
name: Run Tests
on:
  push: {branches: [master]}
  pull_request: {branches: [master]}
jobs:
  lint:
    steps: [{uses: golangci/golangci-lint-action@v6}]
  test:
    needs: lint
    strategy: {matrix: {os: [ubuntu-latest, macos-latest], test-tags: ['', '-tags nomsgpack']}}
    steps:
      - name: Run Tests
        run: make test
""",
    f"{FOLDER}/goreleaser.yml": """\
name: Goreleaser
on: {push: {tags: ['*']}}
jobs:
  goreleaser:
    steps: [{uses: goreleaser/goreleaser-action@v6}]
""",
    f"{FOLDER}/codeql.yml": CODEQL,
    f"{FOLDER}/trivy-scan.yml": """\
name: Trivy Security Scan
on: {push: {branches: [master]}, pull_request: {branches: [master]}}
jobs:
  trivy:
    steps: [{uses: aquasecurity/trivy-action@v0}]
""",
}

WEB_FRAMEWORK_NODE = {
    "package.json": '{"scripts": {"test": "mocha", "test-ci": "nyc npm test", "lint": "eslint ."}}',
    f"{FOLDER}/ci.yml": """\
name: ci
on:
  push: {branches: [master], paths-ignore: ['*.md']}
  pull_request: {paths-ignore: ['*.md']}
jobs:
  lint:
    steps: [{run: npm run lint}]
  suite:
    steps: [{run: npm install}, {shell: bash, run: npm run test-ci}]
""",
    f"{FOLDER}/legacy.yml": """\
name: legacy
on: [push, pull_request]
jobs:
  old:
    uses: ./.github/workflows/shared.yml
    with: {node: 18}
""",
    f"{FOLDER}/shared.yml": """\
on: {workflow_call: {inputs: {node: {type: string}}}}
jobs:
  run:
    strategy: {matrix: {command: [npm run lint, npm test]}}
    steps: [{run: '${{ matrix.command }}'}]
""",
    f"{FOLDER}/codeql.yml": CODEQL,
    f"{FOLDER}/scorecard.yml": SCORECARD,
}


@pytest.mark.parametrize(
    ("files", "heard", "image", "setup"),
    [
        (COMMAND_LINE_LIBRARY, ["Tests"], "python:3.12-slim-bookworm", "pip install uv &&"),
        (MATHEMATICS, ["test"], "python:3.12-slim-bookworm", "pip install -e ."),
        (SEARCH_TOOL, ["ci"], "rust:1-slim-bookworm", "cargo fetch"),
        (WEB_FRAMEWORK_GO, ["Run Tests"], "golang:1.23-bookworm", "go mod download"),
        (WEB_FRAMEWORK_NODE, ["ci", "legacy"], "node:22-bookworm-slim", "npm install"),
    ],
    ids=["click", "sympy", "ripgrep", "gin", "express"],
)
def test_image_and_setup_fit_and_only_test_workflows_are_read(
    tmp_path: Path, files: Mapping[str, str], heard: list[str], image: str, setup: str
) -> None:
    settings, workflow = init(tmp_path / "demo", files, "--fix-checks", "all")
    assert workflow[True]["workflow_run"]["workflows"] == heard
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
