"""The Action's image, built once, and a scenario for one test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest

from tests.action.image import action_image
from tests.action.scenario import Scenario
from tests.parts.github import github_server
from tests.parts.model_endpoint import ModelEndpoint


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient, python_image: str) -> str:
    """Name of the image of this checkout's Dockerfile."""
    return action_image(engine, python_image)


@contextmanager
def set_up(
    engine: docker.DockerClient, image: str, sandbox: str, folder: Path
) -> Iterator[Scenario]:
    """A scenario whose servers containers reach; requests to GitHub are validated at its end."""
    with github_server(folder / "github", "0.0.0.0") as github, ModelEndpoint("0.0.0.0") as model:
        yield Scenario(engine, image, sandbox, github, model, folder)
        github.validate_everything()


@pytest.fixture
def scenario(
    engine: docker.DockerClient, image: str, python_image: str, tmp_path: Path
) -> Iterator[Scenario]:
    """A scenario with nothing done yet."""
    with set_up(engine, image, python_image, tmp_path) as made:
        yield made
