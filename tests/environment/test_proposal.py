"""Tests of the environment that `init` proposes."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.runtime.environment.proposal import (
    NOTHING,
    ProposedEnvironment,
    missing_files,
    propose_environment,
)
from resolver.runtime.environment.survey import survey

CONTAINER = ".devcontainer/devcontainer.json"
PROJECT = '[project]\nname = "demo"\n'
SEEN = ("python:3.12-slim-bookworm", "pip install -e .")


def propose(files: Mapping[str, str]) -> ProposedEnvironment:
    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    def exists(path: str) -> bool:
        return any(file == path or file.startswith(f"{path}/") for file in files)

    names = {path for path in files if "/" not in path}
    return propose_environment(survey(names, read), read, exists)


def container(**content: object) -> dict[str, str]:
    return {"pyproject.toml": PROJECT, CONTAINER: json.dumps(content)}


def test_without_a_description_image_and_setup_fit_the_files() -> None:
    found = propose({"pyproject.toml": PROJECT})
    assert (found.image, found.setup, found.prepared_by) == (*SEEN, "")


def test_a_usable_devcontainer_gives_image_and_setup() -> None:
    files = container(image="example.org/py:3", postCreateCommand="bash ./tools/setup.sh")
    files |= {"tools/setup.sh": "pip install -r tools/dev.txt\n", "tools/dev.txt": "pytest\n"}
    found = propose(files)
    assert found == ProposedEnvironment("devcontainer", "", CONTAINER)
    assert found.installs


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (container(image="i:1", postCreateCommand="./setup.sh"), "names setup.sh"),
        (
            {
                **container(image="i:1", onCreateCommand=".devcontainer/create.sh"),
                ".devcontainer/create.sh": "python -m venv .venv\n. .venv/bin/activate\n"
                "pip install -r requirements/dev.txt\npip install -e .\n",
            },
            ".devcontainer/create.sh names requirements/dev.txt",
        ),
        (container(build={"dockerfile": "Dockerfile"}), "names .devcontainer/Dockerfile"),
        (
            {
                **container(build={"dockerfile": "Dockerfile"}, postCreateCommand="make deps"),
                ".devcontainer/Dockerfile": "FROM i:1\n",
            },
            "RESOLVER_IMAGE_OPTIONS={build: true}",
        ),
        (container(image="i:1", features={"x": {}}, postCreateCommand="npm ci"), "`features`"),
        (container(dockerComposeFile="c.yml", service="app"), "`dockerComposeFile`"),
        (container(postCreateCommand="make deps"), "neither an image nor a Dockerfile"),
        (container(image="sha256:12", postCreateCommand="make deps"), "by its id"),
        (container(image="i:1"), "installs nothing"),
        ({"pyproject.toml": PROJECT, CONTAINER: "{"}, "not JSON"),
        (
            {
                "pyproject.toml": PROJECT,
                ".github/workflows/copilot-setup-steps.yml": "jobs: {copilot-setup-steps: {}}\n",
            },
            "GitHub's own runner",
        ),
    ],
)
def test_an_unusable_description_gives_neither_image_nor_setup(
    files: dict[str, str], said: str
) -> None:
    found = propose(files)
    assert (found.image, found.setup, found.prepared_by) == (*SEEN, "")
    assert said in " ".join(found.skip_reasons)


def test_nothing_is_set_up_if_neither_works() -> None:
    found = propose({CONTAINER: json.dumps({"image": "i:1", "postCreateCommand": "./gone.sh"})})
    assert (found.setup, found.installs) == (NOTHING, False)


def test_an_image_without_setup_is_used() -> None:
    found = propose({CONTAINER: json.dumps({"image": "i:1"})})
    assert (found.image, found.setup) == ("devcontainer", "")


def test_the_repositorys_own_script_takes_precedence() -> None:
    files = container(image="i:1", features={}, postCreateCommand="./gone.sh")
    found = propose({**files, ".agents/setup.sh": "make deps\n"})
    assert found == ProposedEnvironment(SEEN[0], "", ".agents/setup.sh")


def test_a_reason_can_not_end_its_comment() -> None:
    found = propose(container(image="i:1", postCreateCommand=["sh", "a\u2028b/x\x85.sh"]))
    assert all(reason.isprintable() for reason in found.skip_reasons)


FILES = {"a.sh": "b/c.sh\n", "dev.txt": "", "sub/x.txt": "", "src/app.py": "", "b/d": ""}


def missing(script: str) -> list[str]:
    def read(path: str) -> bytes | None:
        return FILES[path].encode() if path in FILES else None

    def exists(path: str) -> bool:
        return any(file == path or file.startswith(f"{path}/") for file in FILES)

    return [f"{missing.by}: {missing.path}" for missing in missing_files(script, "x", read, exists)]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("./a.sh", ["a.sh: b/c.sh"]),
        ("sudo bash gone.sh --all", ["x: gone.sh"]),
        ("source tools/env.sh && make", ["x: tools/env.sh"]),
        ("pip3 install -rg.txt --requirement=h.txt -c dev.txt", ["x: g.txt", "x: h.txt"]),
        ("python -m pip install --upgrade pip\npython -m pip install -r gone.txt", ["x: gone.txt"]),
        ("uv pip install -r gone.txt", ["x: gone.txt"]),
        ("cd sub && pip install -r x.txt -r y.txt", ["x: sub/y.txt"]),
        ("cp .env.example .env; chmod +x bin/go", ["x: .env.example", "x: bin/go"]),
        ("(python setup.py develop)", ["x: setup.py"]),
    ],
)  # fmt: skip
def test_missing_files_that_a_command_needs_are_found(script: str, found: list[str]) -> None:
    assert missing(script) == found


@pytest.mark.parametrize(
    "script",
    [
        "pip install -r dev.txt", "npm ci", "python -m pytest -c pytest.ini", "/opt/setup.sh",
        "~/x.sh; . $HOME/.cargo/env; . ~/.bashrc", "python -m venv v; . v/bin/activate",
        "uv sync; . .venv/bin/activate; node_modules/.bin/x", "git clone u tool; tool/setup.sh",
        "[ -f r.txt ] && pip install -r r.txt", "if [ -f r.txt ]; then pip install -r r.txt; fi",
        "pip install -r r.txt || true", "test -e y.sh && ./y.sh\ncp dev.txt z.txt; sh z.txt",
        "cd $X; ./gone.sh", "cd /; ./gone.sh", "echo ./gone.sh", "bash -c 'echo hi'", "../up.sh",
    ],
)  # fmt: skip
def test_files_that_may_exist_or_be_optional_are_ignored(script: str) -> None:
    assert missing(script) == []


@given(st.text(max_size=200))
def test_any_script_is_parsed(script: str) -> None:
    assert isinstance(missing(script), list)
