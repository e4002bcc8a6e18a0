"""First process of the local sandbox: leaves the host's namespaces, then starts the server.

Run as a script, with the standard library alone:
    enter.py REPORT_FD PLACES PROGRAM [ARGUMENT...]
PLACES is a JSON object: {"folder": writable, "kept": [readable], "hidden": [not even that],
"filter": socket_filter.py, "most": bytes of one file}.
It writes one JSON object to REPORT_FD, which says what it could separate, and closes it:
{"processes": bool, "network": bool, "files": bool, "families": bool, "sockets": int,
"problem": str}. Where the kernel does not allow namespaces, the program runs all the same and the
report says so.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import runpy
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_APART = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_MOVE, _MS_REC, _MS_PRIVATE = 4096, 8192, 16384, 1 << 18

_SYS_MOUNT_SETATTR = 442  # the same on every processor; Linux 5.12
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_ATTR_RDONLY = 1

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAP_VERSION_3 = 0x20080522

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_ENGINE_SOCKETS = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
)

_PRIVATE = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - replaced by the sandbox's own
"""Where other programs keep temporary files and sockets, the host's own clone among them."""

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_KERNEL = ("sys", "sysrq-trigger", "irq", "bus", "fs")
"""Parts of /proc by which root steers the kernel, as to run a program outside (core_pattern)."""

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _prctl(option: int, *arguments: int) -> int:
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return int(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)))


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    _call(
        "mount",
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        data.encode() or None,
    )


def _set_attributes(path: str, on: int, off: int, flags: int = 0) -> None:
    attributes = struct.pack("=4Q", on, off, 0, 0)
    _call(
        "syscall",
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(path),
        ctypes.c_uint(flags),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )


def leave_namespaces() -> None:
    """New namespaces for mounts, IPC, processes (of children) and network. Raises OSError.

    With root's capabilities directly, else inside a user namespace that maps the user to itself.
    """
    try:
        _call("unshare", _APART)
        return
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    user, group = os.getuid(), os.getgid()
    _call("unshare", _APART | CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def socket_paths() -> list[str]:
    """Unix sockets that something of this machine may be listening on, the engine's among them."""
    with open("/proc/net/unix", errors="surrogateescape") as table:
        listed = [line.rstrip("\n").split(" ", 7)[-1].strip() for line in table]
    known = [path for path in listed if path.startswith("/")]
    return [path for path in dict.fromkeys((*_ENGINE_SOCKETS, *known)) if os.path.exists(path)]  # noqa: PTH110


def separate(sockets: list[str]) -> int:
    """In the first process of the new namespaces: own /proc, loopback up, `sockets` covered.

    Returns how many were covered. Raises OSError where /proc can't be replaced.
    """
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    covered = 0
    for path in sockets:
        try:
            _mount("/dev/null", os.path.realpath(path), "", _MS_BIND)
            covered += 1
        except OSError:
            continue
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack_from("16xH", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))[0]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
    return covered


def close_files(folder: str, kept: list[str], hidden: list[str]) -> None:
    """After `separate`: nothing is writable but `folder`, private folders in it, and devices
    that are no way out. Raises OSError where the kernel is too old, before anything is changed.

    kept: folders that stay readable wherever they are. hidden: files and folders to cover.
    """
    _set_attributes("/", 0, 0)  # changes nothing; is it there at all?
    own = Path(folder, "private")
    own.mkdir()
    _make_devices(own / "dev")
    _cover(hidden, own / "empty")
    shown = sorted({path for place in [folder, *kept] for path in (place, os.path.realpath(place))})
    below = [path for path in shown if path.startswith(tuple(f"{p}/" for p in _PRIVATE))]
    opened = [(path, os.open(path, os.O_PATH)) for path in below if Path(path).is_dir()]
    _mount(folder, folder, "", _MS_BIND)
    private = [place for place in _PRIVATE if os.path.realpath(place) == place]
    for place in private:
        _mount(_folder(own / place[1:], 0o1777), place, "", _MS_BIND)
    for path, descriptor in opened:
        _mount(f"/proc/self/fd/{descriptor}", _folder(Path(path)), "", _MS_BIND | _MS_REC)
        os.close(descriptor)
    _set_attributes("/", _ATTR_RDONLY, 0, _AT_RECURSIVE)
    for place in (folder, *private, "/proc", "/dev", "/dev/pts"):
        _set_attributes(place, 0, _ATTR_RDONLY)
    for path in (f"/proc/{name}" for name in _KERNEL):
        if Path(path).exists():
            _mount(path, path, "", _MS_BIND | _MS_REC)
            _set_attributes(path, _ATTR_RDONLY, 0, _AT_RECURSIVE)
    os.chdir(Path.cwd())  # the same path, now on the writable mount


def _make_devices(new: Path) -> None:
    """A /dev without disks and without the terminals of others."""
    _mount("tmpfs", _folder(new), "tmpfs", _MS_NOSUID)
    for name in _DEVICES:
        (new / name).touch()
        _mount(f"/dev/{name}", str(new / name), "", _MS_BIND)
    for name, target in _DEVICE_LINKS.items():
        (new / name).symlink_to(target)
    _folder(new / "shm", 0o1777)
    options = "newinstance,ptmxmode=0666,mode=0620"
    _mount("devpts", _folder(new / "pts"), "devpts", _MS_NOSUID | _MS_NOEXEC, options)
    _mount(str(new), "/dev", "", _MS_MOVE)


def _cover(hidden: list[str], empty: Path) -> None:
    _folder(empty)
    for path in map(Path, hidden):
        if path.is_dir():
            _mount(str(empty), str(path.resolve()), "", _MS_BIND)
        elif path.exists():
            _mount("/dev/null", str(path.resolve()), "", _MS_BIND)


def _folder(path: Path, mode: int = 0o755) -> str:
    path.mkdir(parents=True, exist_ok=True)
    if mode != 0o755:
        path.chmod(mode)
    return str(path)


def drop_capabilities() -> None:
    """No capability, now or after an exec: a root in here can't undo `separate`."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        if _prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # past the last one, or without the right to
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION_3, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def run_server(command: list[str]) -> int:
    """Run the program as a child and reap the orphans; when it ends, all others end too."""
    child = os.fork()
    if child == 0:
        os.execv(command[0], command)  # noqa: S606
    _prctl(_PR_SET_DUMPABLE, 0)  # it holds the wire's descriptors as well
    while True:
        ended, status = os.wait()
        if ended == child:
            break
    try:
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            os.wait()
    except OSError:  # no child is left
        return os.waitstatus_to_exitcode(status) & 0xFF


def enter_sandbox(report_fd: int, places: dict[str, Any], command: list[str]) -> int:
    """Separate what can be, report, and run `command` to its end."""
    report: dict[str, Any] = dict.fromkeys(("processes", "network", "files", "families"), False)
    report |= {"sockets": 0, "problem": ""}
    sockets = socket_paths()
    confine = places.pop("filter", "")
    if "most" in places:
        most = places.pop("most")
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    apart = False
    try:
        leave_namespaces()
        apart = report["network"] = True
    except OSError as error:
        report["problem"] = str(error)
    if not apart:
        # Without a process namespace orphans come here instead of to the host's first process,
        # so that the host finds all of them below this one.
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        drop_capabilities()
        _filter_sockets(confine, report)
        _send(report_fd, report)
        return run_server(command)
    first = os.fork()
    if first != 0:
        os.close(report_fd)
        return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        report["sockets"] = separate(sockets)
        report["processes"] = True
        close_files(**places)
        report["files"] = True
    except OSError as error:
        report["problem"] = str(error)
    drop_capabilities()
    _filter_sockets(confine, report)
    _send(report_fd, report)
    return run_server(command)


def _filter_sockets(confine: str, report: dict[str, Any]) -> None:
    """Refuse families of sockets that lead out of a network namespace (see socket_filter.py)."""
    if not confine:
        return
    try:
        runpy.run_path(confine)["refuse_sockets"]()
        report["families"] = True
    except OSError as error:
        report["problem"] = report["problem"] or str(error)


def _send(fd: int, report: dict[str, Any]) -> None:
    with os.fdopen(fd, "w") as pipe:
        json.dump(report, pipe)


if __name__ == "__main__":
    sys.exit(enter_sandbox(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]))
