"""The Action's image: what is in it, and what a run need not make anew."""

import docker
import pytest

pytestmark = [
    pytest.mark.engine,
    pytest.mark.xdist_group("action"),
    pytest.mark.timeout(900),  # the first test builds the image
]

MOST_BYTES = 500_000_000
"""What Resolver may add to its base: litellm and what it needs are most of it."""

TOOLBOX = """
import os
from resolver.runs.common import open_host
from resolver.runtime.toolbox import Toolbox
cache = open_host(os.environ).cache
before = {path.name for path in cache.iterdir()}
print(before == {Toolbox(cache).archive().name})
"""


def in_image(engine: docker.DockerClient, image: str, *command: str) -> str:
    """What the command prints in a container with the runner's HOME."""
    environment = {"HOME": "/github/home", "PYTHONWARNINGS": "error"}
    output: bytes = engine.containers.run(
        image, list(command[1:]), entrypoint=command[0], environment=environment, remove=True
    )
    return output.decode()


def test_the_toolbox_is_made_already(engine: docker.DockerClient, image: str) -> None:
    assert in_image(engine, image, "/opt/venv/bin/python", "-c", TOOLBOX) == "True\n"


def test_the_image_is_not_larger_than_it_must_be(
    engine: docker.DockerClient, image: str, python_image: str
) -> None:
    size, base = (engine.images.get(name).attrs["Size"] for name in (image, python_image))
    assert size - base < MOST_BYTES


def test_only_what_is_installed_is_copied(engine: docker.DockerClient, image: str) -> None:
    found = in_image(engine, image, "find", "/opt/resolver-src", "-maxdepth", "1", "-mindepth", "1")
    assert {path.rpartition("/")[2] for path in found.split()} == {
        *("LICENSE", "README.md", "prompts", "pyproject.toml", "requirements.txt", "resolver"),
    }
    stray = in_image(engine, image, "find", "/opt/resolver-src", "-name", "__pycache__")
    assert "resolver/__pycache__" not in stray


def test_the_same_image_is_the_servers(engine: docker.DockerClient, image: str) -> None:
    assert "Usage: resolver serve" in in_image(engine, image, "resolver", "serve", "--help")
