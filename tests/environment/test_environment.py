"""Tests of choosing a prepared environment, on a real engine."""

import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import docker
import pytest

from resolver.config.image_reference import PREPARED_PREFIX
from resolver.config.settings import load_settings
from resolver.errors import UsageError
from resolver.git.workspace import Workspace
from resolver.runs.wiring import sandbox
from resolver.runs.wiring.sandbox import RunHost, open_environment
from resolver.runtime.environment.environment import (
    Environment,
    derive_environment_key,
    find_environment,
)
from resolver.runtime.environment.images import (
    MAX_PREPARED_IMAGES,
    PREPARED_LABEL,
    REPOSITORY_LABEL,
    remove_old_images,
    remove_older_environments,
)
from resolver.runtime.environment.plan import SetupPlan
from tests.parts.image_registry import ImageRegistry
from tests.parts.runs import git, make_checkout

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("images")]

BASE = "resolver-test/busybox:latest"


@dataclass
class Shelf:
    """Images made from the smallest one by a test, and removed at its end."""

    engine: docker.DockerClient
    names: list[str] = field(default_factory=list)

    def keep(self, environment: Environment, key: str | None = None) -> str:
        """An image under the environment's name, as `set_up` keeps one; its id."""
        given = {
            PREPARED_LABEL: str(environment.key),
            REPOSITORY_LABEL: str(environment.repository),
        }
        return self.make(f"{PREPARED_PREFIX}:{key or environment.key}", given)

    def make(self, name: str, labels: dict[str, str]) -> str:
        repository, _, tag = name.partition(":")
        container = self.engine.containers.create(BASE, ["true"])
        changes = [f"LABEL {key}={value}" for key, value in labels.items()]
        try:
            changes.append(f"ENV made={uuid.uuid4()}")
            made = container.commit(repository=repository, tag=tag, changes=changes)
        finally:
            container.remove()
        self.names = [*(other for other in self.names if other != name), name]
        return str(made.id)

    def names_now(self) -> list[str]:
        """Return those of the names that the engine still has, in order of creation."""
        # One request: `images.list` looks each image up, which another test may remove meanwhile.
        images = self.engine.api.images()
        has = {tag for image in images for tag in image["RepoTags"] or ()}
        return [name for name in self.names if name in has]


@pytest.fixture
def shelf(engine: docker.DockerClient, busybox_image: str) -> Iterator[Shelf]:
    assert busybox_image == BASE
    made = Shelf(engine)
    yield made
    for name in made.names_now():
        engine.images.remove(name, force=True)


PLAN = SetupPlan(".agents/setup.sh", ". ./.agents/setup.sh")


@pytest.fixture
def identity() -> str:
    return f"github.com/octo/{uuid.uuid4()}"


def test_an_environment_belongs_to_one_repository_and_tree(
    engine: docker.DockerClient, shelf: Shelf, identity: str
) -> None:
    def choose(repository: str, tree: str = "t1") -> Environment:
        return find_environment(engine, BASE, PLAN, repository, tree)

    first = choose(identity)
    assert (first.image, first.is_prepared) == (engine.images.get(BASE).id, False)
    # An image that only has the name is not started from.
    shelf.keep(replace(first, key=hashlib.sha256(b"other").hexdigest()), key=first.key)
    assert choose(identity) == first
    kept = shelf.keep(first)
    assert choose(identity) == replace(first, image=kept, is_prepared=True)
    for found in (choose(f"{identity}x"), choose(identity, "t2")):
        assert (found.image, found.is_prepared) == (first.image, False)
        assert found.key != first.key


def test_the_setup_s_script_and_its_image_are_part_of_the_key() -> None:
    keys = {
        derive_environment_key(PLAN, "i", "r", "t"),
        derive_environment_key(PLAN, "j", "r", "t"),
        derive_environment_key(PLAN, "i", "s", "t"),
        derive_environment_key(PLAN, "i", "r", "u"),
        derive_environment_key(replace(PLAN, script="make deps"), "i", "r", "t"),
        derive_environment_key(replace(PLAN, source="other"), "i", "r", "t"),
        derive_environment_key(PLAN, "ir", "", "t"),
    }
    assert len(keys) == 7


def test_only_old_environments_of_the_repository_are_removed(
    engine: docker.DockerClient, shelf: Shelf, identity: str
) -> None:
    def kept(owner: str, number: int) -> Environment:
        return Environment(BASE, None, f"{owner}-{number}", owner)

    owner, other = uuid.uuid4().hex, uuid.uuid4().hex
    shelf.keep(kept(other, 0))
    for number in range(MAX_PREPARED_IMAGES + 1):
        if number == 2:
            time.sleep(1)  # the engine lists the time of an image in whole seconds
        shelf.keep(kept(owner, number))
    remove_older_environments(engine, owner)
    stay = [f"{PREPARED_PREFIX}:{owner}-{number}" for number in range(2, MAX_PREPARED_IMAGES + 1)]
    assert shelf.names_now() == [f"{PREPARED_PREFIX}:{other}-0", *stay]
    later = datetime.now(UTC) + timedelta(hours=1)
    assert not set(stay) & set(remove_old_images(engine, later, timedelta(days=1)))
    assert set(stay) <= set(remove_old_images(engine, later, timedelta(minutes=59)))


def test_the_tree_is_the_one_that_the_setup_is_run_in_not_the_default_branch_s(
    shelf: Shelf, tmp_path: Path
) -> None:
    files = {".agents/setup.sh": "sh dep.sh\n", "dep.sh": "one\n"}
    checkout = make_checkout(tmp_path / "checkout", files)
    first = git(checkout, "rev-parse", "HEAD")
    (checkout / "dep.sh").write_text("two\n")
    git(checkout, "commit", "-qam", "Two")
    workspace = Workspace.clone(str(checkout), tmp_path / "clone.git")
    settings = load_settings({"image": BASE}, {})
    host = RunHost(os.environ, tmp_path)

    def key(where: Workspace) -> str | None:
        return open_environment(settings, "docker", where, host).key

    on_branch = replace(workspace, base=first, default=workspace.base)
    assert key(on_branch) not in {None, key(workspace)}
    assert shelf.names == []


def test_an_image_is_built_from_the_commit_only_with_the_operators_permission(
    engine: docker.DockerClient,
    registry: ImageRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"FROM {registry.name}\nCOPY . /in\nRUN cat /in/word >/told\n"
    checkout = make_checkout(tmp_path / "checkout", {"Dockerfile": text, "word": "told\n"})
    workspace = Workspace.clone(str(checkout), tmp_path / "clone.git")
    host = RunHost(os.environ, tmp_path)

    def build(**options: object) -> str:
        settings = load_settings({"image": "dockerfile:Dockerfile", **options}, {})
        return open_environment(settings, "docker", workspace, host).image

    with pytest.raises(UsageError, match="building is not allowed"):
        build()
    with pytest.raises(UsageError, match="not in the repository"):
        build(image="dockerfile:ci/Dockerfile", build_images=True)
    found, newer = build(build_images=True), None
    try:
        assert build(build_images=True) == found
        command = ["/bin/cat", "/told"]
        shown = engine.containers.run(found, command, network_mode="none", remove=True)
        assert shown == b"told\n"
        (checkout / "word").write_text("new\n")
        git(checkout, "commit", "-qam", "New")
        workspace = Workspace.clone(str(checkout), tmp_path / "newer.git")
        newer = build(build_images=True)
        remove_old_images(engine, datetime.fromtimestamp(0, UTC), timedelta(0))
        with pytest.raises(docker.errors.ImageNotFound):
            engine.images.get(found)
        assert engine.images.get(newer)
        monkeypatch.setattr(sandbox, "MAX_CONTEXT_BYTES", 10)
        with pytest.raises(UsageError, match="more than 10 bytes"):
            build(build_images=True)
    finally:
        for tag in engine.images.get(newer or found).tags:
            engine.images.remove(tag, force=True)
