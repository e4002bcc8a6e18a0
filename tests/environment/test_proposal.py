"""Tests of the environment that `init` proposes."""

import json
from collections.abc import Mapping

import pytest

from resolver.runtime.environment.proposal import (
    NOTHING,
    ProposedEnvironment,
    propose_environment,
)
from resolver.runtime.environment.survey import survey

CONTAINER = ".devcontainer/devcontainer.json"
PROJECT = '[project]\nname = "demo"\n'
SEEN = ("python:3.12-slim-bookworm", "pip install -e .")


def propose(files: Mapping[str, str]) -> ProposedEnvironment:
    def read(path: str) -> bytes | None:
        return files[path].encode() if path in files else None

    return propose_environment(survey(read), read)


def container(**content: object) -> dict[str, str]:
    return {"pyproject.toml": PROJECT, CONTAINER: json.dumps(content)}


def test_without_a_description_image_and_setup_fit_the_files() -> None:
    found = propose({"pyproject.toml": PROJECT})
    assert (found.image, found.setup, found.prepared_by) == (*SEEN, None)


def test_a_usable_devcontainer_gives_image_and_setup() -> None:
    files = container(image="example.org/py:3", postCreateCommand="bash ./tools/setup.sh")
    files |= {"tools/setup.sh": "pip install -r tools/dev.txt\n", "tools/dev.txt": "pytest\n"}
    found = propose(files)
    assert found == ProposedEnvironment("devcontainer", None, CONTAINER)
    assert found.installs


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (container(build={"dockerfile": "Dockerfile"}), "names no image"),
        (container(image="i:1", features={"x": {}}, postCreateCommand="npm ci"), "`features`"),
        (container(dockerComposeFile="c.yml", service="app"), "`dockerComposeFile`"),
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
    assert (found.image, found.setup, found.prepared_by) == (*SEEN, None)
    assert said in found.skip_reason


def test_nothing_is_set_up_if_neither_works() -> None:
    broken = {"image": "i:1", "features": {"x": {}}, "postCreateCommand": "make deps"}
    found = propose({CONTAINER: json.dumps(broken)})
    assert (found.setup, found.installs) == (NOTHING, False)


def test_an_image_without_setup_is_used() -> None:
    found = propose({CONTAINER: json.dumps({"image": "i:1"})})
    assert (found.image, found.setup) == ("devcontainer", None)


def test_the_repositorys_own_script_takes_precedence() -> None:
    files = container(image="i:1", features={}, postCreateCommand="./gone.sh")
    found = propose({**files, ".agents/setup.sh": "make deps\n"})
    assert found == ProposedEnvironment(SEEN[0], None, ".agents/setup.sh")


def test_a_reason_can_not_end_its_comment() -> None:
    found = propose(container(image="a\u2028b:\x85"))
    assert found.skip_reason and found.skip_reason.isprintable()
