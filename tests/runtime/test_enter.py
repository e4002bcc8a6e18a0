"""Tests of the first process of the local sandbox: without privileges, and without namespaces."""

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

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


NOBODY = 65534
SEEN_INSIDE = """
import os, socket, sys
socket_path, pipe, notes, folder = sys.argv[1:]
def attempt(act):
    try:
        return act() or "done"
    except OSError as error:
        return os.strerror(error.errno)
print(open(notes).read())
print(attempt(lambda: socket.socket(socket.AF_UNIX).connect(socket_path)))
print(attempt(lambda: os.write(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), b"x") and "done"))
print(attempt(lambda: open(notes, "a")))
print(attempt(lambda: open(folder + "/new", "w") and "done"))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can read, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.attack
@pytest.mark.usefixtures("namespaces")
def test_without_privileges_nothing_of_the_host_can_be_written_or_connected_to(
    open_folder: Path,
) -> None:
    """With the local runtime, a user without privileges writes to the machine's files and connects
    to its sockets and pipes: nothing can be written, and they lead nowhere."""
    own, shown = open_folder / "own", open_folder / "shown, and: more"
    own.mkdir()
    shown.mkdir()
    (shown / "notes").write_text("text")
    os.mkfifo(shown / "pipe")
    user = os.getuid() or NOBODY
    for path in (own, shown, *shown.iterdir()):
        os.chown(path, user, user)
    places = {"folder": str(own), "readable": [str(shown), "/usr"], "hidden": ["/root/.ssh"]}
    arguments = [str(shown / name) for name in ("socket", "pipe", "notes")] + [str(own)]
    report_reader, report_writer = os.pipe()
    # The interpreter of the tests and the checkout may be in a folder of root's.
    python = shutil.which("python3", path=os.defpath) or sys.executable
    script = shutil.copy(enter.__file__, open_folder)
    start = [python, "-I", "-S", script, str(report_writer), json.dumps(places)]
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(shown / "socket"))
        (shown / "socket").chmod(0o777)
        server.listen()
        answer = subprocess.run(
            [*start, python, "-c", SEEN_INSIDE, *arguments],
            stdout=subprocess.PIPE,
            pass_fds=[report_writer],
            user=user if os.getuid() == 0 else None,
            extra_groups=[] if os.getuid() == 0 else None,
            cwd=own,
            text=True,
            check=True,
        ).stdout.splitlines()
    os.close(report_writer)
    with os.fdopen(report_reader) as pipe:
        report = json.load(pipe)
    assert report["files"] and report["connectable"] == [], report
    refused = ["Connection refused", "No such device or address", "Read-only file system"]
    assert answer == ["text", *refused, "done"]
    assert (own / "new").exists()


REFUSED_OVERLAY = """
import os, socket, subprocess, sys
place, report, *command = sys.argv[1:]
os.chdir(place)
def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)
mount("-t", "tmpfs", "tmpfs", "layers")
for name in ("lower", "upper", "work", "once", "upper-2", "work-2", "twice"):
    os.mkdir(f"layers/{name}")
for lower, upper, work, target in (("lower", "upper", "work", "once"),
                                   ("once", "upper-2", "work-2", "twice")):
    option = f"lowerdir=layers/{lower},upperdir=layers/{upper},workdir=layers/{work}"
    mount("-t", "overlay", "overlay", "-o", option, f"layers/{target}")
open("layers/twice/notes", "w").write("text")
os.mkfifo("layers/twice/pipe")
server = socket.socket(socket.AF_UNIX)
server.bind(f"{place}/layers/twice/socket")
server.listen()
os.chdir("own")
sys.exit(subprocess.call(command, pass_fds=[int(report)]))
"""
"""Makes a folder of which the kernel makes no overlay, with a socket that accepts connections:
overlays can be nested twice, FILESYSTEM_MAX_STACK_DEPTH in linux/fs.h."""


@pytest.mark.attack
@pytest.mark.usefixtures("namespaces")
def test_where_the_kernel_makes_no_overlay_sockets_are_covered_and_it_is_reported(
    open_folder: Path,
) -> None:
    """With the local runtime, programs use sockets where the kernel refuses to make an overlay: the
    known ones are covered, and the run names the folder."""
    own, layers = open_folder / "own", open_folder / "layers"
    own.mkdir()
    layers.mkdir()
    shown = layers / "twice"
    places = {"folder": str(own), "readable": [str(shown)], "hidden": []}
    python = sys.executable
    report_reader, report_writer = os.pipe()
    start = [python, "-I", "-S", enter.__file__, str(report_writer), json.dumps(places)]
    arguments = [str(shown / name) for name in ("socket", "pipe", "notes")] + [str(own)]
    unshare = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    done = subprocess.run(
        [
            *unshare, python, "-c", REFUSED_OVERLAY, str(open_folder), str(report_writer),
            *start, python, "-c", SEEN_INSIDE, *arguments,
        ],
        stdout=subprocess.PIPE, pass_fds=[report_writer], text=True, check=True,
    )  # fmt: skip
    os.close(report_writer)
    with os.fdopen(report_reader) as pipe:
        report = json.load(pipe)
    assert report["files"] and report["connectable"] == [str(shown)], report
    # Nobody reads the pipe. A file that is read-only stays so.
    refused = ["Connection refused", "No such device or address", "Read-only file system"]
    assert done.stdout.splitlines() == ["text", *refused, "done"], done.stdout
