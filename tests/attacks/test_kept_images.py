"""One repository against another's kept images, where one engine serves both."""

import json
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from resolver.config.image_reference import PREPARED_PREFIX
from resolver.events.actions import CmdRun
from resolver.runtime.environment.images import PREPARED_LABEL
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


@pytest.mark.usefixtures("busybox_image")
def test_another_repository_s_kept_image_can_t_be_named(
    engine: docker.DockerClient, kept: str, command_line: CommandLine, tmp_path: Path
) -> None:
    """A repository names another's kept image by name, id or prefix, also in a Dockerfile:
    refused, nothing is read."""
    number = str(engine.images.get(kept).id)
    command_line.environment["RESOLVER_IMAGE_OPTIONS"] = "{build: true}"
    short = next(number[7:end] for end in range(8, 30) if not number[7:end].isdecimal())
    names = [kept, f"docker.io/library/{kept}", f"localhost/{kept}", number, number[7:]]
    base = "resolver-test/busybox:latest"
    described = [
        *({"image": name} for name in names),
        *({".devcontainer.json": json.dumps({"image": name})} for name in names),
        *({"Dockerfile": f"FROM {name}\n"} for name in (*names, short)),
        *({"Dockerfile": f"ARG X={n}\nFROM $X\n"} for n in (kept, short)),
        *({"Dockerfile": f"FROM {base}\nCOPY --fr\\om={n} /source /\n"} for n in (kept, short)),
    ]
    for place, files in enumerate(described):
        image = files.pop("image", "devcontainer" if ".devcontainer.json" in files else "")
        settings = f"image: {json.dumps(image or 'dockerfile:Dockerfile')}\n"
        checkout = make_checkout(
            tmp_path / f"{place}", {"run.sh": "x\n", ".github/resolver.yml": settings, **files}
        )
        done = command_line.call_resolve(checkout, "--runtime", "docker")
        assert done.exit_code == 2, (settings, files, done.stderr)
        assert SECRET.encode() not in done.everything
        assert done.outcome["next_step"]
    # what reads like the beginning of an id is asked of the registry, and never of the engine
    checkout = make_checkout(
        tmp_path / "short", {"run.sh": "x\n", ".github/resolver.yml": f'image: "{short}"\n'}
    )
    done = command_line.call_resolve(checkout, "--runtime", "docker")
    assert done.exit_code == 1
    assert f"{short}:latest" in done.stderr
    assert command_line.endpoint.requests == []


@pytest.mark.usefixtures("own_images")
def test_a_base_image_that_copies_from_a_kept_one_is_refused(
    engine: docker.DockerClient, kept: str, command_line: CommandLine, tmp_path: Path
) -> None:
    """A base image copies from a kept image by an ONBUILD instruction: refused."""
    command_line.environment["RESOLVER_IMAGE_OPTIONS"] = "{build: true}"
    base = engine.containers.create("resolver-test/busybox:latest", ["true"])
    name = f"resolver-test-onbuild:{tmp_path.name.lower()}"
    try:
        repository_name, _, tag = name.partition(":")
        changes = [f"ONBUILD COPY --from={kept} /source /"]
        base.commit(repository=repository_name, tag=tag, changes=changes)
    finally:
        base.remove()
    try:
        files = {"run.sh": "x\n", "Dockerfile": f"FROM {name}\n"}
        files[".github/resolver.yml"] = "image: dockerfile:Dockerfile\n"
        checkout = make_checkout(tmp_path / "one", files)
        done = command_line.call_resolve(checkout, "--runtime", "docker")
        assert done.exit_code == 2, done.stderr
        assert "ONBUILD" in done.stderr
    finally:
        engine.images.remove(name, force=True)
