"""Tests of recognizing a project from the files at its root, and of its usual installation."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.settings import load_settings
from resolver.git.workspace import Workspace
from resolver.runs.wiring.sandbox import RunHost, open_environment
from resolver.runtime.environment.plan import SetupPlan
from resolver.runtime.environment.survey import Survey, survey
from tests.parts.runs import make_checkout


def look(files: dict[str, str]) -> Survey:
    return survey({name: text.encode() for name, text in files.items()}.get)


@pytest.mark.parametrize(
    ("files", "image", "setup"),
    [
        (
            {"pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.13"\n'
             '[project.optional-dependencies]\ndocs = []\ntest = ["pytest"]\n'},
            "python:3.13-slim-bookworm", "pip install -e '.[test]'",
        ),
        (
            {"pyproject.toml": '[project]\nname = "x"\n[dependency-groups]\ndev = []\n'},
            "python:3.12-slim-bookworm", "pip install -e . && pip install --group dev",
        ),
        (
            {"setup.py": "", "requirements.txt": "", "test-requirements.txt": "", "tox.ini": ""},
            "python:3.12-slim-bookworm",
            "pip install -r requirements.txt && pip install -r test-requirements.txt"
            " && pip install -e .",
        ),
        ({"pyproject.toml": "", "uv.lock": ""}, "python:3.12-slim-bookworm",
         "pip install uv && uv sync --all-extras"),
        ({"go.mod": "module x\n\ngo 1.23.1\n"}, "golang:1-bookworm", "go mod download"),
        ({"Cargo.toml": "[package]"}, "rust:1-slim-bookworm", "cargo fetch"),
        ({"package.json": json.dumps({"scripts": {"test": "x"}, "engines": {"node": ">=18"}}),
          "package-lock.json": "{}"}, "node:22-bookworm-slim", "npm ci"),
        ({"package.json": "{}", ".nvmrc": "v24.1.0\n", "yarn.lock": ""}, "node:24-bookworm-slim",
         "corepack enable && yarn install --frozen-lockfile"),
        ({"package.json": "{}", "go.mod": "module x"}, "golang:1-bookworm", "go mod download"),
        ({"README": "words"}, "python:3.12-slim-bookworm", None),
        ({"Gemfile": "", ".ruby-version": "ruby-3.3.5", ".rspec": ""}, "ruby:3.3-bookworm",
         "bundle install"),
        ({"Cargo.toml": "", "rust-toolchain.toml": '[toolchain]\nchannel = "1.78.0"\n'},
         "rust:1.78.0-slim-bookworm", "cargo fetch"),
        ({"Cargo.toml": "", "rust-toolchain": "stable\n"}, "rust:1-slim-bookworm", "cargo fetch"),
        ({"pom.xml": "<maven.compiler.source>1.8</maven.compiler.source>"},
         "maven:3-eclipse-temurin-8", "mvn -q -B dependency:go-offline"),
        ({"pom.xml": "<java.version> 16 </java.version>"}, "maven:3-eclipse-temurin-17",
         "mvn -q -B dependency:go-offline"),
        ({"pom.xml": "", "mvnw": ""}, "maven:3-eclipse-temurin-21",
         "./mvnw -q -B dependency:go-offline"),
        ({"build.gradle.kts": "", "gradlew": ""}, "gradle:8-jdk21",
         "./gradlew --no-daemon testClasses"),
    ],
)  # fmt: skip
def test_image_and_setup_come_from_the_files(
    files: dict[str, str], image: str, setup: str | None
) -> None:
    found = look(files)
    assert (found.image, found.setup) == (image, setup)


@pytest.mark.parametrize(
    ("kind", "egress", "is_executed"),
    [
        ("docker", ("packages",), True),
        ("docker", ("pypi.org", "files.pythonhosted.org"), True),
        ("docker", ("pypi.org",), False),
        ("docker", (), False),
        ("local", ("packages",), False),  # it would change this machine's own programs
    ],
)
def test_the_usual_installation_is_executed_where_its_hosts_can_be_reached(
    checkout: Path, tmp_path: Path, kind: str, egress: tuple[str, ...], is_executed: bool
) -> None:
    workspace = Workspace.clone(str(checkout), tmp_path / "clone.git")
    settings = load_settings({"egress": egress}, {})
    found = open_environment(settings, kind, workspace, RunHost({}, tmp_path), keep=False)
    script = "pip install -e . && pip install pytest"
    plan = SetupPlan("pyproject.toml", script, is_standard=True)
    assert (found.plan, found.suggested) == ((plan, None) if is_executed else (None, script))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"pyproject.toml": "[project]\n[tool.pytest.ini_options]\n"}
    return make_checkout(tmp_path_factory.mktemp("checkout") / "demo", files)


NAMES = ["pyproject.toml", "package.json", "go.mod", ".nvmrc", ".ruby-version", "Gemfile"]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.text() | st.sampled_from(["[]", "[1", "project=1"]))
)
def test_any_content_can_be_surveyed(files: dict[str, str]) -> None:
    found = look({name: text for name, text in files.items() if text.isprintable()})
    assert found.image and "\n" not in found.image
