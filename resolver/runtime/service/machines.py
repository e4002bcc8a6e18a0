"""Opens the machines that the server provides, and removes those that an earlier server left."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from resolver.runtime.base import Machine, SandboxSpec
from resolver.runtime.docker import DockerMachine
from resolver.runtime.engine import RUN_LABEL, connect_engine, engine_errors, remove_container
from resolver.runtime.local import LocalMachine
from resolver.runtime.service.sandboxes import OpenMachine
from resolver.runtime.toolbox import Toolbox

_SERVED: Final = "served"


def run_prefix(server: str) -> str:
    """Return the start of the run id in the labels of containers of the server with that name."""
    return f"{_SERVED}.{server}."


def docker_machines(environment: Mapping[str, str], toolbox: Toolbox) -> OpenMachine:
    """Return a function that opens containers, each with its own connection to the engine."""

    @contextmanager
    def open_machine(spec: SandboxSpec) -> Iterator[Machine]:
        engine = connect_engine(environment)
        try:
            with DockerMachine(spec, toolbox, engine) as machine:
                yield machine
        finally:
            engine.close()

    return open_machine


def local_machines(environment: Mapping[str, str]) -> OpenMachine:
    """Return a function that opens folders and process trees of the server's machine."""

    def open_machine(spec: SandboxSpec) -> AbstractContextManager[Machine]:
        return LocalMachine(spec, environment)

    return open_machine


def remove_abandoned(environment: Mapping[str, str], prefix: str) -> int:
    """Remove the containers that a killed server of this name has left; return their number."""
    engine = connect_engine(environment)
    try:
        with engine_errors("the engine can't list its containers", "check it with `docker ps`"):
            found = engine.containers.list(
                all=True, ignore_removed=True, filters={"label": RUN_LABEL}
            )
        ours = [c for c in found if c.labels.get(RUN_LABEL, "").startswith(prefix)]
        for container in ours:
            remove_container(container)
    finally:
        engine.close()
    return len(ours)
