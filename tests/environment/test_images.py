"""Tests of the sandbox's image: named, described by the repository, or built."""

import os
import subprocess
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import docker
import pytest

from resolver.config.image_reference import BUILT_PREFIX
from resolver.errors import SandboxError, UsageError
from resolver.git.git import HostGit
from resolver.git.tree import context_tar
from resolver.runtime.environment.environment import (
    Environment,
    EnvironmentOptions,
    SetupRepository,
    choose_environment,
)
from resolver.runtime.environment.images import (
    Build,
    BuildSource,
    build_image,
    remove_old_images,
    requested_image,
)
from tests.parts.image_registry import ImageRegistry
from tests.parts.sandboxes import git_dir_tar

pytestmark = pytest.mark.xdist_group("images")


def context(folder: Path, files: dict[str, bytes]) -> tuple[HostGit, str]:
    _, commit = git_dir_tar(folder, files)
    return HostGit(git_dir=folder / ".git"), commit


def members(chunks: Iterator[bytes]) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=BytesIO(b"".join(chunks))) as tar:
        return {m.name: m for m in tar.getmembers()}


def test_an_image_name_is_unchanged() -> None:
    assert requested_image("python:3.12", {}.get) == "python:3.12"


@pytest.mark.parametrize(
    ("setting", "files", "said"),
    [
        ("devcontainer", {}, "there is none of"),
        ("devcontainer", {".devcontainer.json": b"{}"}, "names no image"),
        ("dockerfile:ci/Dockerfile", {}, "ci/Dockerfile"),
    ],
)
def test_an_unsupported_image_setting_is_reported(
    setting: str, files: dict[str, bytes], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        requested_image(setting, files.get)


@pytest.mark.parametrize("image", ["sha256:395f", "resolver-prepared:1", "not an image"])
def test_a_devcontainer_names_a_registry_s_image(image: str) -> None:
    files = {".devcontainer.json": f'{{"image": "{image}"}}'.encode()}
    with pytest.raises(UsageError, match=r"\.devcontainer\.json, image"):
        requested_image("devcontainer", files.get)
    assert requested_image("devcontainer", {".devcontainer.json": b'{"image": "ab"}'}.get) == (
        "ab:latest"
    )


def test_a_build_needs_the_operators_permission() -> None:
    files = {"Dockerfile": b"FROM x"}
    source = BuildSource(files.get, lambda *_: iter(()), lambda: "t")
    repository = SetupRepository("here", source, lambda: "t")

    def engine() -> docker.DockerClient:
        pytest.fail("the engine was asked")

    with pytest.raises(UsageError, match="building is not allowed"):
        choose_environment(EnvironmentOptions("dockerfile:Dockerfile"), repository, engine)
    assert choose_environment(EnvironmentOptions("a:1"), repository, engine) == Environment("a:1")


def test_the_context_is_the_commit_s_files_with_modes_and_links(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    git, _ = context(folder, {"app/run.sh": b"#!/bin/sh\n", "app/a": b"same", "b": b"same"})
    (folder / "app" / "run.sh").chmod(0o755)
    (folder / "app" / "link").symlink_to("a")
    run = ["git", "-C", str(folder), "-c", "user.name=T", "-c", "user.email=t@example.org"]
    subprocess.run([*run, "add", "-A"], check=True)
    subprocess.run([*run, "commit", "-qm", "more"], check=True)
    found = members(context_tar(git, "HEAD", "b"))
    assert set(found) == {"app", "app/run.sh", "app/a", "app/link", "b"}
    assert found["app/run.sh"].mode == 0o755
    assert found["app/link"].linkname == "a"


@pytest.mark.engine
def test_the_same_build_is_executed_once(
    engine: docker.DockerClient, registry: ImageRegistry, tmp_path: Path
) -> None:
    text = f"FROM {registry.name}\nCOPY . /in\nRUN echo told >/word\nUSER 1000\n".encode()
    git, commit = context(tmp_path / "r", {"Dockerfile": text, "f": os.urandom(8)})
    asked: list[str] = []

    def tar(dockerfile: str) -> Iterator[bytes]:
        asked.append(dockerfile)
        return context_tar(git, commit, dockerfile)

    source = BuildSource({"Dockerfile": text}.get, tar, lambda: commit)
    build = Build("Dockerfile")
    found = build_image(engine, build, "owner", source)
    [name] = engine.images.get(found).tags
    try:
        assert build_image(engine, build, "owner", source) == found
        assert asked == ["Dockerfile"]
        shown = engine.containers.run(
            found, ["/bin/cat", "/word"], network_mode="none", remove=True
        )
        assert shown == b"told\n"
        assert engine.images.get(found).attrs["Config"]["User"] == "1000"
        later = datetime.now(UTC) + timedelta(hours=1)
        assert name not in remove_old_images(engine, later, timedelta(days=1))
        assert name in remove_old_images(engine, later, timedelta(minutes=59))
    finally:
        if name in {tag for image in engine.images.list(name=BUILT_PREFIX) for tag in image.tags}:
            engine.images.remove(name, force=True)


@pytest.mark.engine
def test_a_build_that_fails_says_why(
    engine: docker.DockerClient, registry: ImageRegistry, tmp_path: Path
) -> None:
    files = {"Dockerfile": f"FROM {registry.name}\nRUN ls /nothing-there\n".encode()}
    git, commit = context(tmp_path / "r", files)
    source = BuildSource(files.get, lambda path: context_tar(git, commit, path), lambda: commit)
    with pytest.raises(SandboxError, match="nothing-there"):
        build_image(engine, Build("Dockerfile"), "owner", source)
