"""Chooses the environment of a run from the settings and the repository, and sets it up.

A sandbox that was set up can be saved as an image for later runs.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from resolver.config.image_reference import PREPARED
from resolver.errors import UsageError
from resolver.events.lifecycle import StageCompleted
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.runtime.engine import image_settings
from resolver.runtime.environment.images import (
    PREPARED_LABEL,
    REPOSITORY_LABEL,
    Build,
    BuildSource,
    build_image,
    derive_key,
    find_kept_image,
    image_id,
    remove_older_environments,
    requested_image,
)
from resolver.runtime.environment.plan import SetupPlan, find_setup
from resolver.runtime.environment.prepare import PreparedEnvironment, prepare, take_exports
from resolver.runtime.runtime import Runtime

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class SetupRepository:
    """The repository as the choice of the environment sees it.

    identity: distinguishes it from all other repositories that use the engine.
    trusted: the commit that describes the environment.
    base_tree: returns the object id of the tree in which the set-up runs. It is called only if the
        result depends on it.
    """

    identity: str
    trusted: BuildSource
    base_tree: Callable[[], str]


@dataclass(frozen=True)
class EnvironmentWishes:
    """The settings for the environment.

    image: an image's name, `devcontainer` or `dockerfile:PATH`.
    setup: bash.
    builds: True if an image may be built.
    keep: True if a prepared environment is to be kept.
    """

    image: str
    setup: str = ""
    builds: bool = False
    keep: bool = True


@dataclass(frozen=True)
class Environment:
    """The environment of a run.

    image: the image of the sandbox.
    plan: the set-up to run; None if there is none.
    key: key under which the prepared environment is kept; "" if it isn't kept.
    repository: digest of the repository that it belongs to.
    is_prepared: True if `image` is a kept environment, so that the set-up need not run.
    """

    image: str
    plan: SetupPlan | None = None
    key: str = ""
    repository: str = ""
    is_prepared: bool = False


def choose_environment(
    wishes: EnvironmentWishes,
    repository: SetupRepository,
    engine: "Callable[[], DockerClient] | None",
) -> Environment:
    """Choose the environment, and build or pull what is missing.

    engine: connects to the engine; called only if an image is built or kept. None if the sandbox is
        not a container of an engine that can be reached from here.
    Raises UsageError, and SandboxError if the image can't be built or pulled.
    """
    plan = find_setup(repository.trusted.read, wishes.setup)
    wanted = requested_image(wishes.image, repository.trusted.read)
    if engine is None:
        if isinstance(wanted, Build):
            raise UsageError(
                f"an image is built from {wanted.dockerfile} by a Docker engine alone",
                "work with --runtime docker, or name an image",
            )
        return Environment(wanted, plan)
    if isinstance(wanted, Build):
        _require_leave(wanted, wishes)
    keeps = plan is not None and wishes.keep
    if not keeps and not isinstance(wanted, Build):
        return Environment(wanted, plan)
    owner = derive_key("repository", repository.identity)
    with closing(engine()) as client:
        if isinstance(wanted, Build):
            image = build_image(client, wanted, owner, repository.trusted)
        else:
            image_settings(client, wanted)  # pull it, so that it has an id
            image = image_id(client, wanted)
        if plan is None or not wishes.keep:
            return Environment(image, plan)
        key = derive_environment_key(plan, image, owner, repository.base_tree())
        kept = find_kept_image(client, f"{PREPARED}:{key}", PREPARED_LABEL, key)
        if kept is None:
            remove_older_environments(client, owner)
    return Environment(kept or image, plan, key, owner, kept is not None)


def derive_environment_key(plan: SetupPlan, image: str, repository: str, tree: str) -> str:
    """Return the key of the environment that the plan makes of an image.

    A set-up may read any file and call any script of the repository, so the key depends on the
    whole tree. It depends on the repository too, because two repositories never share an
    environment.
    image: the engine's id of the image, since a name may refer to another image later.
    tree: object id of the tree that is checked out while the set-up runs.
    """
    return derive_key("prepared", repository, tree, image, plan.source, plan.script)


def set_up(
    environment: Environment,
    runtime: Runtime,
    stream: EventStream,
    state: State,
    base: str,
    seconds: float,
) -> PreparedEnvironment:
    """Set the sandbox up for the agent; `base` is checked out in it.

    seconds: time limit of the set-up.
    """
    plan = environment.plan
    if plan is None:
        return PreparedEnvironment(ok=True)
    started = time.monotonic()
    if environment.is_prepared:
        take_exports(runtime, stream)
        made, detail = PreparedEnvironment(ok=True), f"{plan.source}: kept from an earlier run"
    else:
        made = prepare(plan, runtime, stream, state, base, seconds)
        detail = f"{plan.source}: {'done' if made.ok else 'failed'}"
        if made.ok and environment.key:
            name = f"{PREPARED}:{environment.key}"
            labels = {PREPARED_LABEL: environment.key, REPOSITORY_LABEL: environment.repository}
            kept = runtime.save(name, labels)
            detail += ", kept for the next run" if kept else ""
    took = round(time.monotonic() - started, 3)
    stream.add(StageCompleted(stage="setup", detail=detail, seconds=took))
    return made


def _require_leave(build: Build, wishes: EnvironmentWishes) -> None:
    if not wishes.builds:
        raise UsageError(
            f"the image is to be built from {build.dockerfile}, and building is not allowed",
            "a build runs the repository's own commands with the engine's network: "
            "allow it with `RESOLVER_IMAGE_OPTIONS={build: true}`, or name an image",
        )
