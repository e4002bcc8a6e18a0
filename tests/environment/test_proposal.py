"""Tests of the environment that `init` proposes."""

import json
from collections.abc import Mapping

import pytest

from resolver.runtime.environment.plan import find_setup
from resolver.runtime.environment.proposal import (
    NOTHING,
    ProposedEnvironment,
    propose_environment,
)
from resolver.runtime.environment.survey import survey

CONTAINER = ".devcontainer/devcontainer.json"
COPILOT = ".github/workflows/copilot-setup-steps.yml"
SCRIPT = ".agents/setup.sh"
IMAGE = "python:3.12-slim-bookworm"
SETUP = "pip install -e ."
PROJECT = {"pyproject.toml": '[project]\nname = "demo"\n'}


def container(**content: object) -> dict[str, str]:
    return {CONTAINER: json.dumps(content)}


INSTALLING = container(image="i:1", postCreateCommand="npm ci")
UNUSABLE = (
    container(build={"dockerfile": "Dockerfile"}, postCreateCommand="npm ci"),
    container(image="i:1", features={"x": {}}, postCreateCommand="npm ci"),
    container(image="i:1", dockerComposeFile="c.yml", postCreateCommand="npm ci"),
    container(image="sha256:12", postCreateCommand="make deps"),
    {CONTAINER: "{"},
)


@pytest.mark.parametrize(
    ("files", "proposed"),
    [
        (PROJECT, ProposedEnvironment(IMAGE, SETUP)),
        ({}, ProposedEnvironment(IMAGE)),
        (PROJECT | INSTALLING, ProposedEnvironment("devcontainer", prepared_by=CONTAINER)),
        (container(image="i:1"), ProposedEnvironment("devcontainer", prepared_by=CONTAINER)),
        (PROJECT | INSTALLING | {SCRIPT: ""}, ProposedEnvironment(IMAGE, prepared_by=SCRIPT)),
        ({COPILOT: ""}, ProposedEnvironment(IMAGE, prepared_by=COPILOT)),
        (PROJECT | {COPILOT: ""}, ProposedEnvironment(IMAGE, SETUP, unused=COPILOT)),
        *(
            (PROJECT | unusable, ProposedEnvironment(IMAGE, SETUP, unused=CONTAINER))
            for unusable in (*UNUSABLE, container(image="i:1"))
        ),
        *(
            (unusable, ProposedEnvironment(IMAGE, NOTHING, unused=CONTAINER))
            for unusable in UNUSABLE
        ),
    ],
)
def test_image_and_setup_come_from_one_source(
    files: Mapping[str, str], proposed: ProposedEnvironment
) -> None:
    read = {path: text.encode() for path, text in files.items()}.get
    found = propose_environment(survey(read), read)
    assert found == proposed
    assert found.installs == (proposed.setup not in {None, NOTHING} or bool(proposed.prepared_by))


@pytest.mark.parametrize("files", UNUSABLE)
def test_the_commands_of_an_unused_devcontainer_do_not_run_in_another_image(
    files: Mapping[str, str],
) -> None:
    read = {path: text.encode() for path, text in files.items()}.get
    plan = find_setup(read, propose_environment(survey(read), read).setup)
    assert plan and plan.script == NOTHING
