"""From the settings and the repository to the environment a run starts in, and back into a saved
image for the next run."""

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
    """What is looked at in the repository.

    identity: tells it from all others that the engine serves. trusted: the commit that says what
    the environment is made from. base_tree: gives the object id of the tree that the setup is run
    in. Trees are asked for only where something depends on them.
    """

    identity: str
    trusted: BuildSource
    base_tree: Callable[[], str]


@dataclass(frozen=True)
class EnvironmentWishes:
    """The settings that decide. image: a name, `devcontainer` or `dockerfile:PATH`. setup: bash.
    builds: whether an image may be built. keep: whether a prepared environment is kept."""

    image: str
    setup: str = ""
    builds: bool = False
    keep: bool = True


@dataclass(frozen=True)
class Environment:
    """What a run starts in.

    image: what the sandbox is made from. plan: the setup to run, None when there is none.
    key: what the prepared environment is kept under, "" when it isn't. repository: the digest of
    whose it is. is_prepared: `image` is such a kept one, and the setup need not run.
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
    """Decide, and build or pull what is missing. engine: connects to it, which is done only
    where an image is built or kept; None where the sandbox is no container of an engine that is
    reached from here.

    Raises UsageError, and SandboxError when the image can't be had.
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
            image_settings(client, wanted)  # pulled, so that it has an id
            image = image_id(client, wanted)
        if plan is None or not wishes.keep:
            return Environment(image, plan)
        key = derive_environment_key(plan, image, owner, repository.base_tree())
        kept = find_kept_image(client, f"{PREPARED}:{key}", PREPARED_LABEL, key)
        if kept is None:
            remove_older_environments(client, owner)
    return Environment(kept or image, plan, key, owner, kept is not None)


def derive_environment_key(plan: SetupPlan, image: str, repository: str, tree: str) -> str:
    """Names the environment that the plan makes of an image: the same key, the same environment.

    A setup may read any file and call any script of the repository, so nothing less than the whole
    tree says what it has seen; and two repositories never share an environment, whatever they have
    in common. image: the engine's id of it, since a name may come to mean another. tree: the object
    id of what is checked out while the setup runs.
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
    """Make the sandbox, in which `base` is checked out, ready for the agent.

    seconds: how long the setup may take.
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
            "allow it with RESOLVER_BUILDS=true, or name an image",
        )
