"""Tests of the first process of the local sandbox on a kernel that allows nothing."""

import io
import json
import tarfile
from collections.abc import Iterator

import docker
import pytest

from resolver.runtime import enter


@pytest.fixture
def confined(
    engine: docker.DockerClient, python_image: str
) -> Iterator[docker.models.containers.Container]:
    """A container, whose seccomp profile refuses namespaces, with enter.py in it."""
    container = engine.containers.run(
        python_image, ["sleep", "60"], detach=True, network_mode="none"
    )
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(enter.__file__, "enter.py")
    container.put_archive("/", packed.getvalue())
    yield container
    container.remove(force=True)


@pytest.mark.engine
def test_without_namespaces_the_program_runs_and_the_report_is_honest(
    confined: docker.models.containers.Container,
) -> None:
    program = "(setsid sleep 100 &) ; echo ran; grep CapEff /proc/self/status; exit 7"
    start = "python3 -I -S /enter.py 3 {} /bin/bash -c"
    script = f"{start} '{program}' 3>/report; echo $?; cat /report"
    lines = confined.exec_run(["bash", "-c", script]).output.decode().splitlines()
    assert lines[0] == "ran"
    assert int(lines[1].split()[1], 16) == 0
    assert lines[2] == "7"
    report = json.loads(lines[3])
    assert not (report["processes"] or report["network"] or report["files"])
    assert "not permitted" in report["problem"]
    left = confined.exec_run(["bash", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).output
    assert b"sleep 100" not in left
