"""From the settings and the repository to the environment a run starts in, and back into a saved
image for the next run."""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from resolver.errors import UsageError
from resolver.events.lifecycle import StageCompleted
from resolver.events.state import State
from resolver.events.stream import EventStream
from resolver.runtime.engine import image_settings
from resolver.runtime.runtime import Runtime
from resolver.setup.devcontainer import Read
from resolver.setup.images import (
    PREPARED,
    PREPARED_LABEL,
    Build,
    Context,
    build_image,
    image_id,
    prepared_image,
    wanted_image,
)
from resolver.setup.plan import SetupPlan, find_setup, setup_key
from resolver.setup.prepare import Prepared, prepare, take_exports

if TYPE_CHECKING:
    from docker import DockerClient


@dataclass(frozen=True)
class Repository:
    """What is looked at in the commit that the work starts from.

    blobs: gives the object id by path of every file. tree: gives the object id of the whole. Both
    are asked for only where something depends on them.
    """

    read: Read
    context: Context
    blobs: Callable[[], Mapping[str, str]]
    tree: Callable[[], str]


@dataclass(frozen=True)
class Wishes:
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
    key: what the prepared environment is kept under, "" when it isn't. is_prepared: `image` is
    such a kept one, and the setup need not run.
    """

    image: str
    plan: SetupPlan | None = None
    key: str = ""
    is_prepared: bool = False


def choose_environment(
    wishes: Wishes, repository: Repository, engine: "Callable[[], DockerClient] | None"
) -> Environment:
    """Decide, and build or pull what is missing. engine: connects to it, which is done only
    where an image is built or kept; None where the sandbox is no container of an engine that is
    reached from here.

    Raises UsageError, and SandboxError when the image can't be had.
    """
    plan = find_setup(repository.read, wishes.setup)
    wanted = wanted_image(wishes.image, repository.read)
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
    with closing(engine()) as client:
        image = wanted
        if isinstance(image, Build):
            image = build_image(client, image, repository.tree(), repository.context)
        if plan is None or not wishes.keep:
            return Environment(image, plan)
        image_settings(client, image)  # pulled, so that it has an id
        key = setup_key(plan, image_id(client, image), repository.blobs())
        kept = prepared_image(client, key)
    return Environment(kept or image, plan, key, kept is not None)


def set_up(
    environment: Environment,
    runtime: Runtime,
    stream: EventStream,
    state: State,
    base: str,
    seconds: float,
) -> Prepared:
    """Make the sandbox, in which `base` is checked out, ready for the agent.

    seconds: how long the setup may take.
    """
    plan = environment.plan
    if plan is None:
        return Prepared(ok=True)
    started = time.monotonic()
    if environment.is_prepared:
        take_exports(runtime, stream)
        made, detail = Prepared(ok=True), f"{plan.source}: kept from an earlier run"
    else:
        made = prepare(plan, runtime, stream, state, base, seconds)
        detail = f"{plan.source}: {'done' if made.ok else 'failed'}"
        if made.ok and environment.key:
            name = f"{PREPARED}:{environment.key}"
            kept = runtime.save(name, {PREPARED_LABEL: environment.key})
            detail += ", kept for the next run" if kept else ""
    took = round(time.monotonic() - started, 3)
    stream.add(StageCompleted(stage="setup", detail=detail, seconds=took))
    return made


def _require_leave(build: Build, wishes: Wishes) -> None:
    if not wishes.builds:
        raise UsageError(
            f"the image is to be built from {build.dockerfile}, and building is not allowed",
            "a build runs the repository's own commands with the engine's network: "
            "allow it with RESOLVER_BUILDS=true, or name an image",
        )
