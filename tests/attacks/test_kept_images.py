"""One repository against another's kept images, where one engine serves both."""

import json
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from resolver.config.image_reference import PREPARED_PREFIX
from resolver.events.actions import CmdRun
from resolver.runtime.environment.images import PREPARED_LABEL
from tests.parts.image_registry import ImageRegistry
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, Ended, bash, finish, make_checkout

pytestmark = [pytest.mark.engine, pytest.mark.xdist_group("images")]

SETUP = "sh scripts/dep.sh\n"
HONEST = "mkdir -p /opt/dep && echo honest >/opt/dep/name\n"
HOSTILE = (
    "mkdir -p /opt/dep && echo hostile >/opt/dep/name\n"
    "printf '#!/bin/sh\\necho planted >>run.sh\\n' >/usr/local/bin/pytest\n"
    "chmod +x /usr/local/bin/pytest\n"
)
SECRET = "source-canary-5d1f7a9b3c2e4068"


def resolve(line: CommandLine, checkout: Path, *options: str) -> Ended:
    line.endpoint.script(
        bash("cat /opt/dep/name; pytest --version; echo right >run.sh"), finish("Say right")
    )
    return line.call_resolve(checkout, "--runtime", "docker", *options)


def setups(done: Ended) -> int:
    ran = [e for e in done.events if isinstance(e, CmdRun) and e.source == "environment"]
    return sum("setup.sh" in execution.command for execution in ran)


def repository(folder: Path, dependency: str, **more: str) -> Path:
    files = {"run.sh": "wrong\n", ".agents/setup.sh": SETUP, "scripts/dep.sh": dependency}
    return make_checkout(folder, {**files, **more})


@pytest.mark.usefixtures("own_images")
def test_an_environment_that_one_repository_prepared_is_never_another_s(
    command_line: CommandLine, model_endpoint: ModelEndpoint, python_image: str, tmp_path: Path
) -> None:
    """A hostile repository prepares an environment with another's set-up files: the other
    repository never uses it."""
    hostile = repository(tmp_path / "hostile", HOSTILE)
    honest = repository(tmp_path / "honest", HONEST)
    twin = repository(tmp_path / "twin", HONEST)
    named = ("--image", python_image)
    assert setups(resolve(command_line, hostile, *named)) == 1
    first = resolve(command_line, honest, *named)
    request = json.dumps(model_endpoint.requests[-1].body)
    assert "honest" in request and "hostile" not in request
    assert setups(first) == 1
    assert first.outcome["state"] == "finished"
    assert b"planted" not in (first.output / "patch.diff").read_bytes()
    assert setups(resolve(command_line, honest, *named)) == 0
    assert setups(resolve(command_line, twin, *named)) == 1  # the same files, another repository


@pytest.fixture
def kept(engine: docker.DockerClient) -> Iterator[str]:
    """Name of the image that was kept for another repository, with its source inside."""
    key = "0123abcd" * 8
    name = f"{PREPARED_PREFIX}:{key}"
    container = engine.containers.create(
        "resolver-test/busybox:latest", ["sh", "-c", f"echo {SECRET} >/source"]
    )
    try:
        container.start()
        container.wait()
        label = [f"LABEL {PREPARED_LABEL}={key}"]
        container.commit(repository=PREPARED_PREFIX, tag=key, changes=label)
    finally:
        container.remove()
    yield name
    engine.images.remove(name, force=True)


def test_another_repository_s_kept_image_can_t_be_named(
    engine: docker.DockerClient,
    kept: str,
    registry: ImageRegistry,
    command_line: CommandLine,
    tmp_path: Path,
) -> None:
    """A repository names another's kept image by name, id or prefix, also in a Dockerfile:
    refused, nothing is read."""
    number = str(engine.images.get(kept).id)
    command_line.environment["RESOLVER_BUILD_IMAGES"] = "true"
    short = next(number[7:end] for end in range(8, 30) if not number[7:end].isdecimal())
    names = [kept, f"docker.io/library/{kept}", f"localhost/{kept}", number, number[7:]]
    base = f"FROM {registry.name}\n"
    refused = [
        *({".github/resolver.yml": f"image: {json.dumps(name)}\n"} for name in names),
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
        {".github/resolver.yml": f'image: "{short}"\n'},
    ]
    for place, files in enumerate((*refused, *unavailable)):
        image = "devcontainer" if ".devcontainer.json" in files else "dockerfile:Dockerfile"
        described = {"run.sh": "x\n", ".github/resolver.yml": f"image: {image}\n", **files}
        done = command_line.call_resolve(
            make_checkout(tmp_path / f"{place}", described), "--runtime", "docker"
        )
        assert done.exit_code == (2 if files in refused else 1), (files, done.stderr)
        assert SECRET.encode() not in done.everything
        assert done.outcome["next_step"]
    assert command_line.endpoint.requests == []


@pytest.mark.usefixtures("own_images")
def test_a_base_image_can_t_copy_from_a_kept_one(
    engine: docker.DockerClient,
    kept: str,
    registry: ImageRegistry,
    command_line: CommandLine,
    tmp_path: Path,
) -> None:
    """A base image copies from a kept image by an ONBUILD instruction: refused."""
    command_line.environment["RESOLVER_BUILD_IMAGES"] = "true"
    base = engine.containers.create("resolver-test/busybox:latest", ["true"])
    try:
        made = base.commit(changes=[f"ONBUILD COPY --from={kept} /source /"])
    finally:
        base.remove()
    name = registry.publish(str(made.id), "onbuild")
    files = {"run.sh": "x\n", ".github/resolver.yml": "image: dockerfile:Dockerfile\n"}
    files["Dockerfile"] = f"FROM {name}\n"
    done = command_line.call_resolve(make_checkout(tmp_path / "one", files), "--runtime", "docker")
    assert done.exit_code == 1, done.stderr
    assert "could not be built" in done.stderr
    assert SECRET.encode() not in done.everything
