"""Tests of recognizing a project from the files at its root."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.runtime.environment.survey import Survey, folders_of, survey


def look(files: dict[str, str]) -> Survey:
    return survey(files, lambda name: files[name].encode() if name in files else None)


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
        ({"go.mod": "module x\n\ngo 1.23.1\n"}, "golang:1.23-bookworm", "go mod download"),
        ({"Cargo.toml": "[package]"}, "rust:1-slim-bookworm", "cargo fetch"),
        ({"package.json": json.dumps({"scripts": {"test": "x"}, "engines": {"node": ">=18"}}),
          "package-lock.json": "{}"}, "node:22-bookworm-slim", "npm ci"),
        ({"package.json": "{}", ".nvmrc": "v24.1.0\n", "yarn.lock": ""}, "node:24-bookworm-slim",
         "corepack enable && yarn install --frozen-lockfile"),
        ({"Gemfile": "", ".ruby-version": "ruby-3.3.5", ".rspec": ""}, "ruby:3.3-bookworm",
         "bundle install"),
        ({"Cargo.toml": "", "rust-toolchain.toml": '[toolchain]\nchannel = "1.78.0"\n'},
         "rust:1.78.0-slim-bookworm", "cargo fetch"),
        ({"Cargo.toml": "", "rust-toolchain": "stable\n"}, "rust:1-slim-bookworm", "cargo fetch"),
        ({"pom.xml": "<maven.compiler.source>1.8</maven.compiler.source>"},
         "maven:3-eclipse-temurin-8", "mvn -q -B dependency:go-offline"),
        ({"pom.xml": "<java.version> 16 </java.version>"}, "maven:3-eclipse-temurin-17",
         "mvn -q -B dependency:go-offline"),
        ({"pom.xml": ""}, "maven:3-eclipse-temurin-21", "mvn -q -B dependency:go-offline"),
        ({"pom.xml": "", "mvnw": ""}, "maven:3-eclipse-temurin-21",
         "./mvnw -q -B dependency:go-offline"),
        ({"build.gradle.kts": "", "gradlew": ""}, "gradle:8-jdk21",
         "./gradlew --no-daemon testClasses"),
    ],
)  # fmt: skip
def test_image_and_setup_come_from_the_files(files: dict[str, str], image: str, setup: str) -> None:
    found = look(files)
    assert (found.image, found.setup) == (image, setup)


def test_a_package_json_next_to_another_language_is_secondary() -> None:
    found = look({"package.json": "{}", "go.mod": "module x"})
    assert (found.language, found.others) == ("Go", ("JavaScript",))


def test_an_unknown_repository_has_no_setup() -> None:
    assert look({"README": "words"}) == Survey()


def look_below(files: dict[str, str]) -> Survey:
    names = {path.partition("/")[0] for path in files}
    read = {path: text.encode() for path, text in files.items()}
    return survey(names, read.get, folders_of(files))


def test_projects_in_folders_are_set_up_in_their_folders() -> None:
    found = look_below(
        {
            "README.md": "",
            "services/api/pyproject.toml": "[project]",
            "services/api/tests/test_a.py": "",
            "services/wor ker/requirements.txt": "",
            "web/package.json": '{"scripts": {"test": "vitest"}}',
            "web/node_modules/x/package.json": "{}",
            "docs/requirements.txt": "",
        }
    )
    assert (found.language, found.others) == ("Python", ("JavaScript",))
    assert found.setup == (
        "(cd services/api && pip install -e .) && "
        "(cd 'services/wor ker' && pip install -r requirements.txt)"
    )


def test_a_project_at_the_root_takes_precedence() -> None:
    found = look_below(
        {"package.json": '{"workspaces": ["packages/*"]}', "packages/a/package.json": "{}",
         "native/Cargo.toml": "", "Makefile": "test:\n"}
    )  # fmt: skip
    assert (found.language, found.others) == ("JavaScript", ("Rust",))
    assert found.setup == "npm install"


def test_a_project_within_another_is_part_of_it() -> None:
    found = look_below({"core/go.mod": "", "core/tools/go.mod": "", "a/b/c/go.mod": ""})
    assert found.setup == "(cd core && go mod download)"


NAMES = [
    "pyproject.toml",
    "package.json",
    "go.mod",
    ".nvmrc",
    ".ruby-version",
    "Gemfile",
    "Makefile",
]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.text() | st.sampled_from(["[]", "[1", "project=1"]))
)
def test_any_content_can_be_surveyed(files: dict[str, str]) -> None:
    found = look({name: text for name, text in files.items() if text.isprintable()})
    assert found.image and "\n" not in found.image
