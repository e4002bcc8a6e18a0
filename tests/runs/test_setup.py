"""Tests of the environment that the settings and the repository choose for a run."""

import os
from pathlib import Path

import docker
import pytest

from resolver.config.settings import load_settings
from resolver.errors import UsageError
from resolver.git.workspace import Workspace
from resolver.runs.wiring.sandbox import RunHost, open_environment
from tests.git.scenario import make_repository

pytestmark = pytest.mark.xdist_group("images")


@pytest.mark.engine
@pytest.mark.usefixtures("own_images")
def test_a_devcontainer_s_build_is_the_sandbox_where_the_operator_allows_it(
    engine: docker.DockerClient, python_image: str, tmp_path: Path
) -> None:
    files: dict[str | bytes, bytes | str] = {
        ".devcontainer/devcontainer.json": '{"build": {"dockerfile": "Dockerfile"}} // ours\n',
        ".devcontainer/Dockerfile": f"FROM {python_image}\nRUN echo from-the-build >/built\n",
    }
    repository = make_repository(tmp_path / "one", files)
    workspace = Workspace.clone(str(repository), tmp_path / "clone.git")
    chosen = {"image": "devcontainer"}
    host = RunHost(os.environ, tmp_path / "cache")
    with pytest.raises(UsageError) as refused:
        open_environment(load_settings(chosen, {}), "docker", workspace, host)
    assert "RESOLVER_IMAGE_OPTIONS" in refused.value.what + refused.value.next_step
    allowed = load_settings({**chosen, "image_options": {"build": True}}, {})
    found = open_environment(allowed, "docker", workspace, host)
    assert found.dockerfile == ".devcontainer/Dockerfile"
    shown = engine.containers.run(
        found.image, ["/bin/cat", "/built"], network_mode="none", remove=True
    )
    assert shown == b"from-the-build\n"
