"""Tests of the Action's image: its content, and that a run builds nothing that it could contain."""

import re
from pathlib import Path
from typing import Any

import docker
import pytest
import yaml

from tests.action.image import ROOT

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
    """Return the output of the command in a container with the runner's HOME."""
    environment = {"HOME": "/github/home", "PYTHONWARNINGS": "error"}
    output: bytes = engine.containers.run(
        image, list(command[1:]), entrypoint=command[0], environment=environment, remove=True
    )
    return output.decode()


def test_the_image_contains_the_toolbox(engine: docker.DockerClient, image: str) -> None:
    assert in_image(engine, image, "/opt/venv/bin/python", "-c", TOOLBOX) == "True\n"


def test_the_image_is_not_larger_than_it_must_be(
    engine: docker.DockerClient, image: str, python_image: str
) -> None:
    size, base = (engine.images.get(name).attrs["Size"] for name in (image, python_image))
    assert size - base < MOST_BYTES


def test_the_image_contains_no_build_tools(engine: docker.DockerClient, image: str) -> None:
    tools = "/src /opt/build /wheels /install /opt/resolver-src"
    found = in_image(engine, image, "sh", "-c", f"ls -d {tools} 2>/dev/null || true")
    assert found == ""
    packages = in_image(engine, image, "sh", "-c", "ls /opt/venv/lib/*/site-packages").split()
    assert "resolver" in packages and not {"hatchling", "pip", "setuptools"} & set(packages)


SOCKET = "/var/run/docker.sock"


def documented_service() -> dict[str, Any]:
    """Return the service of the compose file in docs/how-to/server.md."""
    page = (ROOT / "docs/how-to/server.md").read_text()
    [text] = re.findall(r"```yaml\n(# compose.*?)```", page, re.S)
    service: dict[str, Any] = yaml.safe_load(text)["services"]["resolver"]
    return service


def test_a_server_needs_neither_root_nor_capabilities(
    engine: docker.DockerClient, image: str, python_image: str
) -> None:
    """A whole run, in the container that docs/how-to/server.md describes: it uses the engine's
    socket, the toolbox, the caches and the volume as that user."""
    service = documented_service()
    assert f"{SOCKET}:{SOCKET}" in service["volumes"]
    container = engine.containers.create(
        image,
        ["demo"],
        user=service["user"],
        group_add=[str(Path(SOCKET).stat().st_gid)],
        cap_drop=service["cap_drop"],
        security_opt=service["security_opt"],
        working_dir=service["working_dir"],
        environment={
            **service["environment"],
            "RESOLVER_RUNTIME": "docker",
            "RESOLVER_IMAGE": python_image,
        },
        volumes=[f"{SOCKET}:{SOCKET}", service["working_dir"]],
    )
    try:
        container.start()
        code = container.wait()["StatusCode"]
        output = container.logs().decode()
    finally:
        container.remove(v=True, force=True)
    assert code == 0, output
    assert "- check: Verified" in output
    assert "this machine" not in output, "it ran without the engine"
