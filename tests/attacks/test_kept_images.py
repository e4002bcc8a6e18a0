"""One repository against another's kept images, where one engine serves both."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from resolver.config.image_reference import PREPARED_PREFIX
from resolver.config.settings import load_settings
from resolver.config.sources import REPOSITORY_FILE, repository_settings
from resolver.errors import SandboxError, UsageError
from resolver.git.workspace import Workspace
from resolver.runs.wiring.sandbox import RunHost, open_environment
from resolver.runtime.environment.environment import Environment
from resolver.runtime.environment.images import (
    PREPARED_LABEL,
    REPOSITORY_LABEL,
    find_prepared_image,
)
from tests.parts.image_registry import ImageRegistry
from tests.parts.runs import make_checkout

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("images")]

BASE = "resolver-test/busybox:latest"
SECRET = "source-canary-5d1f7a9b3c2e4068"
SETUP = {".agents/setup.sh": "sh scripts/dep.sh\n", "scripts/dep.sh": "make dep\n"}


def open_image(folder: Path, files: dict[str, str]) -> Environment:
    """Return the environment that a run chooses for a repository with these files."""
    checkout = make_checkout(folder / "checkout", {**SETUP, **files})
    workspace = Workspace.clone(str(checkout), folder / "clone.git")
    named = repository_settings(workspace.read(REPOSITORY_FILE))
    settings = load_settings({}, {"RESOLVER_BUILD_IMAGES": "true"}, named)
    return open_environment(settings, "docker", workspace, RunHost(os.environ, folder))


def keep(engine: docker.DockerClient, key: str, repository: str) -> str:
    """Keep an image with another repository's source in it, and return its name."""
    container = engine.containers.create(BASE, ["sh", "-c", f"echo {SECRET} >/source"])
    try:
        container.start()
        container.wait()
        labels = {PREPARED_LABEL: key, REPOSITORY_LABEL: repository}
        changes = [f"LABEL {name}={value}" for name, value in labels.items()]
        container.commit(repository=PREPARED_PREFIX, tag=key, changes=changes)
    finally:
        container.remove()
    return f"{PREPARED_PREFIX}:{key}"


@pytest.fixture
def kept(engine: docker.DockerClient, busybox_image: str) -> Iterator[str]:
    """Name of the image that was kept for another repository, with its source inside."""
    name = keep(engine, "0123abcd" * 8, "another")
    yield name
    engine.images.remove(name, force=True)


def test_an_environment_that_one_repository_prepared_is_never_another_s(
    engine: docker.DockerClient, registry: ImageRegistry, tmp_path: Path
) -> None:
    """A hostile repository prepares an environment with another's set-up files: the other
    repository never uses it."""
    files = {REPOSITORY_FILE: f"image: {registry.name}\n"}
    hostile = open_image(tmp_path / "hostile", files)
    assert hostile.key and hostile.repository
    name = keep(engine, hostile.key, hostile.repository)
    try:
        assert find_prepared_image(engine, hostile.key)
        honest = open_image(tmp_path / "honest", files)
        assert (honest.image, honest.is_prepared) == (hostile.source_image, False)
    finally:
        engine.images.remove(name, force=True)


def test_another_repository_s_kept_image_can_t_be_named(
    engine: docker.DockerClient, kept: str, registry: ImageRegistry, tmp_path: Path
) -> None:
    """A repository names another's kept image by name, id or prefix, also in a Dockerfile:
    refused, nothing is read."""
    number = str(engine.images.get(kept).id)
    short = next(number[7:end] for end in range(8, 30) if not number[7:end].isdecimal())
    names = [kept, f"docker.io/library/{kept}", f"localhost/{kept}", number, number[7:]]
    base = f"FROM {registry.name}\n"
    refused = [
        *({REPOSITORY_FILE: f"image: {json.dumps(name)}\n"} for name in names),
        *({".devcontainer.json": json.dumps({"image": name})} for name in names),
    ]
    # The names of a Dockerfile, and what reads like the beginning of an id, are asked of a
    # registry, and never of the engine.
    unavailable = [
        *({"Dockerfile": f"FROM {name}\n"} for name in (kept, number, short)),
        {"Dockerfile": f"ARG X={short}\nFROM $X\n"},
        *({"Dockerfile": f"{base}COPY --fr\\om={n} /source /\n"} for n in (kept, short)),
        {"Dockerfile": f"{base}RUN --mount=type=bind,from={kept},target=/k cat /k/source\n"},
        {"Dockerfile": f"{base}RUN <<E\nE\nCOPY --from={short} /source /\n"},
        {REPOSITORY_FILE: f'image: "{short}"\n'},
    ]
    for place, files in enumerate((*refused, *unavailable)):
        image = "devcontainer" if ".devcontainer.json" in files else "dockerfile:Dockerfile"
        described = {REPOSITORY_FILE: f"image: {image}\n", **files}
        wanted = UsageError if files in refused else SandboxError
        with pytest.raises(wanted) as caught:
            open_image(tmp_path / f"{place}", described)
        assert caught.value.next_step and SECRET not in str(caught.value)


@pytest.mark.usefixtures("own_images")
def test_a_base_image_can_t_copy_from_a_kept_one(
    engine: docker.DockerClient,
    kept: str,
    registry: ImageRegistry,
    tmp_path: Path,
) -> None:
    """A base image copies from a kept image by an ONBUILD instruction: refused."""
    base = engine.containers.create(BASE, ["true"])
    try:
        made = base.commit(changes=[f"ONBUILD COPY --from={kept} /source /"])
    finally:
        base.remove()
    name = registry.publish(str(made.id), "onbuild")
    files = {REPOSITORY_FILE: "image: dockerfile:Dockerfile\n", "Dockerfile": f"FROM {name}\n"}
    with pytest.raises(SandboxError, match="could not be built") as caught:
        open_image(tmp_path, files)
    assert SECRET not in str(caught.value)
