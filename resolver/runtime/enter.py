"""First process of the local sandbox: leaves the host's namespaces, then starts the server.

Run as a script, with the standard library alone:  enter.py REPORT_FD PROGRAM [ARGUMENT...]
It writes one JSON object to REPORT_FD, which says what it could separate, and closes it:
{"processes": bool, "network": bool, "sockets": int, "problem": str}. Where the kernel does not
allow namespaces, the program runs all the same and the report says so.
"""

import ctypes
import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_APART = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18

_PR_SET_PDEATHSIG = 1
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

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _prctl(option: int, *arguments: int) -> int:
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return int(_libc.prctl(option, *(ctypes.c_ulong(value) for value in padded)))


def _mount(source: str, target: str, kind: str, flags: int) -> None:
    _call(
        "mount",
        os.fsencode(source),
        os.fsencode(target),
        kind.encode(),
        ctypes.c_ulong(flags),
        None,
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


def drop_capabilities() -> None:
    """No capability, now or after an exec: a root in here can't undo `separate`."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        if _prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # past the last one, or without the right to
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION_3, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def run(command: list[str]) -> int:
    """Run the program as a child and reap the orphans; when it ends, all others end too."""
    child = os.fork()
    if child == 0:
        os.execv(command[0], command)  # noqa: S606
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


def main(report_fd: int, command: list[str]) -> int:
    """Separate what can be, report, and run `command` to its end."""
    report = {"processes": False, "network": False, "sockets": 0, "problem": ""}
    sockets = socket_paths()
    apart = False
    try:
        leave_namespaces()
        apart = report["network"] = True
    except OSError as error:
        report["problem"] = str(error)
    if not apart:
        _send(report_fd, report)
        # Without a process namespace orphans come here instead of to the host's first process,
        # so that the host finds all of them below this one.
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        drop_capabilities()
        return run(command)
    first = os.fork()
    if first != 0:
        os.close(report_fd)
        return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        report["sockets"] = separate(sockets)
        report["processes"] = True
    except OSError as error:
        report["problem"] = str(error)
    drop_capabilities()
    _send(report_fd, report)
    return run(command)


def _send(fd: int, report: dict[str, object]) -> None:
    with os.fdopen(fd, "w") as pipe:
        json.dump(report, pipe)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
