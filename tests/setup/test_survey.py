"""What a repository seems to be, from the files at its root."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.setup.survey import Survey, survey


def look(files: dict[str, str]) -> Survey:
    return survey(files, lambda name: files[name].encode() if name in files else None)


@pytest.mark.parametrize(
    ("files", "image", "setup", "tests"),
    [
        (
            {"pyproject.toml": '[project]\nname = "x"\nrequires-python = ">=3.13"\n'
             '[project.optional-dependencies]\ndocs = []\ntest = ["pytest"]\n'},
            "python:3.13-slim-bookworm", "pip install -e '.[test]'", "python -m pytest",
        ),
        (
            {"pyproject.toml": '[project]\nname = "x"\n[dependency-groups]\ndev = []\n'},
            "python:3.12-slim-bookworm", "pip install -e . && pip install --group dev",
            "python -m pytest",
        ),
        (
            {"setup.py": "", "requirements.txt": "", "test-requirements.txt": "", "tox.ini": ""},
            "python:3.12-slim-bookworm",
            "pip install -r requirements.txt && pip install -r test-requirements.txt"
            " && pip install -e .",
            "tox",
        ),
        ({"pyproject.toml": "", "uv.lock": ""}, "python:3.12-slim-bookworm",
         "pip install uv && uv sync --all-extras", "python -m pytest"),
        ({"go.mod": "module x\n\ngo 1.23.1\n"}, "golang:1.23-bookworm", "go mod download",
         "go test ./..."),
        ({"Cargo.toml": "[package]"}, "rust:1-slim-bookworm", "cargo fetch", "cargo test"),
        ({"package.json": json.dumps({"scripts": {"test": "x"}, "engines": {"node": ">=18"}}),
          "package-lock.json": "{}"}, "node:22-bookworm-slim", "npm ci", "npm test"),
        ({"package.json": "{}", ".nvmrc": "v24.1.0\n", "yarn.lock": ""}, "node:24-bookworm-slim",
         "corepack enable && yarn install --frozen-lockfile", ""),
        ({"Gemfile": "", ".ruby-version": "3.3.5", ".rspec": ""}, "ruby:3.3-slim-bookworm",
         "bundle install", "bundle exec rspec"),
        ({"pom.xml": ""}, "maven:3-eclipse-temurin-21", "mvn -q -B dependency:go-offline",
         "mvn -q -B test"),
        ({"build.gradle.kts": "", "gradlew": ""}, "gradle:8-jdk21",
         "./gradlew --no-daemon testClasses", "./gradlew test"),
        ({"Makefile": "all: x\ntest: all\n\tpytest\n", "Cargo.toml": ""}, "rust:1-slim-bookworm",
         "cargo fetch", "make test"),
    ],
)  # fmt: skip
def test_image_setup_and_tests_come_from_the_files(
    files: dict[str, str], image: str, setup: str, tests: str
) -> None:
    found = look(files)
    assert (found.image, found.setup, found.tests) == (image, setup, tests)


def test_a_package_json_beside_another_language_is_the_other_one() -> None:
    found = look({"package.json": "{}", "go.mod": "module x"})
    assert (found.language, found.others) == ("Go", ("JavaScript",))


def test_a_repository_of_nothing_known_has_no_setup() -> None:
    assert look({"README": "words"}) == Survey()


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
def test_no_content_makes_it_fail(files: dict[str, str]) -> None:
    found = look({name: text for name, text in files.items() if text.isprintable()})
    assert found.image and "\n" not in found.image
