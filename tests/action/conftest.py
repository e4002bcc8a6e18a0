"""The Action's image, built once, and a scene for one test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest

from tests.action.image import action_image
from tests.action.scene import Scene
from tests.parts.github import github_server
from tests.parts.model_endpoint import ModelEndpoint


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient, python_image: str) -> str:
    """Name of the image of this checkout's Dockerfile."""
    return action_image(engine, python_image)


@contextmanager
def set_up(engine: docker.DockerClient, image: str, sandbox: str, folder: Path) -> Iterator[Scene]:
    """A scene whose servers containers reach; what was asked of GitHub is validated at its end."""
    with github_server(folder / "github", "0.0.0.0") as github, ModelEndpoint("0.0.0.0") as model:
        yield Scene(engine, image, sandbox, github, model, folder)
        github.validate_everything()


@pytest.fixture
def scene(
    engine: docker.DockerClient, image: str, python_image: str, tmp_path: Path
) -> Iterator[Scene]:
    """A scene with nothing done yet."""
    with set_up(engine, image, python_image, tmp_path) as made:
        yield made
