"""First process of the local sandbox: leaves the host's namespaces, then starts the action server.

It runs as a script and needs the standard library only:
    enter.py REPORT_FD PLACES PROGRAM [ARGUMENT...]

PLACES is a JSON object: {"folder": the writable folder, "readable": [folders that stay readable],
"hidden": [files and folders to cover], "filter": path of socket_filter.py, "max_file_bytes":
largest size of one file}.

The script writes one JSON object to REPORT_FD, which says what could be separated, and closes it:
{"processes": bool, "network": bool, "files": bool, "families": bool, "sockets": int,
"problem": str}. If the kernel does not allow namespaces, the program runs nevertheless and the
report says so.

See namespaces(7), user_namespaces(7), mount_namespaces(7) and capabilities(7).
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
_NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_MOVE, _MS_REC, _MS_PRIVATE = 4096, 8192, 16384, 1 << 18

_SYS_MOUNT_SETATTR = 442  # the same number on every architecture; since Linux 5.12
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

_REPLACED_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - replaced by folders of the sandbox
"""Folders in which other programs keep temporary files and sockets, and in which the host keeps its
own clone. The sandbox gets empty folders in their place."""

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "ptmx": "pts/ptmx",
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_KERNEL_CONTROLS = ("sys", "sysrq-trigger", "irq", "bus", "fs")
"""Parts of /proc through which root controls the kernel. An example is core_pattern, which makes
the kernel start a program outside the sandbox: see core(5)."""

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def _prctl(option: int, *arguments: int) -> int:
    """Call prctl(2) and return its result; unused arguments are 0, as some options require."""
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
    """Set (`on`) and clear (`off`) attributes of a mount: mount_setattr(2). Raises OSError."""
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
    """Create new namespaces: mount, IPC, network and, for the children, process namespaces.

    With the capabilities of root this is done directly, otherwise inside a user namespace that maps
    the user to itself. Raises OSError.
    """
    try:
        _call("unshare", _NEW_NAMESPACES)
        return
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
    # A process without CAP_SYS_ADMIN may create other namespaces only together with a user
    # namespace, in which it has all capabilities. "deny" must be written to setgroups before a
    # process without privileges may write gid_map: user_namespaces(7).
    user, group = os.getuid(), os.getgid()
    _call("unshare", _NEW_NAMESPACES | CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def socket_paths() -> list[str]:
    """Return the paths of Unix sockets on which programs of this machine may listen.

    The known sockets of container engines are included if they exist.
    """
    with open("/proc/net/unix", errors="surrogateescape") as table:
        paths = [line.rstrip("\n").split(" ", 7)[-1].strip() for line in table]
    # Only sockets with a path need to be covered. Abstract ones belong to a network namespace, so
    # the host's are out of reach in the new one: unix(7), network_namespaces(7).
    absolute_paths = [path for path in paths if path.startswith("/")]
    return [p for p in dict.fromkeys((*_ENGINE_SOCKETS, *absolute_paths)) if os.path.exists(p)]  # noqa: PTH110


def separate(sockets: list[str]) -> int:
    """Set up the new namespaces: an own /proc, the loopback interface up, and `sockets` covered.

    Call it in the first process of the new namespaces. Returns how many sockets were covered.
    Raises OSError if /proc can't be replaced.
    """
    # A new mount namespace starts with copies of the host's mounts, which may be shared: a mount
    # made here would then appear on the host too. MS_PRIVATE ends the sharing: mount_namespaces(7).
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    # The old /proc shows the host's processes. A proc file system shows those of the process
    # namespace of whoever mounts it: pid_namespaces(7).
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    covered = 0
    for path in sockets:
        try:
            _mount("/dev/null", os.path.realpath(path), "", _MS_BIND)
            covered += 1
        except OSError:
            continue
    # The only interface of a new network namespace is a loopback interface, and it is down:
    # netdevice(7).
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack_from("16xH", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[0]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
    return covered


def close_files(folder: str, readable: list[str], hidden: list[str]) -> None:
    """Make everything read-only except `folder`, and replace /dev and _REPLACED_FOLDERS.

    Call it after `separate`. The replacements of the private folders are in `folder`; the new /dev
    holds only devices that do not lead out of the sandbox. Raises OSError if the kernel is too old,
    before anything is changed.
    readable: folders that stay readable, wherever they are.
    hidden: files and folders to cover.
    """
    _set_attributes("/", 0, 0)  # changes nothing; fails if the kernel lacks mount_setattr(2)
    replacements = Path(folder, "private")
    replacements.mkdir()
    _make_devices(replacements / "dev")
    readable_paths = sorted(
        {path for place in [folder, *readable] for path in (place, os.path.realpath(place))}
    )
    # Folders to show may lie below a folder that gets covered, such as a virtual environment in
    # /tmp. They are opened before, and mounted again at their old path through /proc/self/fd
    # afterwards.
    replaced = tuple(f"{path}/" for path in _REPLACED_FOLDERS)
    covered = tuple(f"{path}/" for place in hidden for path in (place, os.path.realpath(place)))
    opened = [
        (path, os.open(path, os.O_PATH))
        for path in readable_paths
        if path.startswith((*replaced, *covered)) and Path(path).is_dir()
    ]
    _cover(hidden, replacements / "empty")
    # The replacements of the private folders are in `folder`, so it is shown again first.
    _show_again([(path, fd) for path, fd in opened if path.startswith(covered)])
    _mount(folder, folder, "", _MS_BIND)
    private = [place for place in _REPLACED_FOLDERS if os.path.realpath(place) == place]
    for place in private:
        _mount(_folder(replacements / place[1:], 0o1777), place, "", _MS_BIND)
    _show_again([(path, fd) for path, fd in opened if path.startswith(replaced)])
    for _, descriptor in opened:
        os.close(descriptor)
    # Everything becomes read-only first, then the writable places are opened again one by one.
    _set_attributes("/", _ATTR_RDONLY, 0, _AT_RECURSIVE)
    for place in (folder, *private, "/proc", "/dev", "/dev/pts"):
        _set_attributes(place, 0, _ATTR_RDONLY)
    for path in (f"/proc/{name}" for name in _KERNEL_CONTROLS):
        if Path(path).exists():
            _mount(path, path, "", _MS_BIND | _MS_REC)
            _set_attributes(path, _ATTR_RDONLY, 0, _AT_RECURSIVE)
    os.chdir(Path.cwd())  # the same path, but now on the writable mount


def _show_again(opened: list[tuple[str, int]]) -> None:
    for path, descriptor in opened:
        _mount(f"/proc/self/fd/{descriptor}", _folder(Path(path)), "", _MS_BIND | _MS_REC)


def _make_devices(folder: Path) -> None:
    """Replace /dev with one that has no disks and none of the terminals of other programs."""
    _mount("tmpfs", _folder(folder), "tmpfs", _MS_NOSUID)
    for name in _DEVICES:
        (folder / name).touch()
        _mount(f"/dev/{name}", str(folder / name), "", _MS_BIND)
    for name, target in _DEVICE_LINKS.items():
        (folder / name).symlink_to(target)
    _folder(folder / "shm", 0o1777)
    options = "newinstance,ptmxmode=0666,mode=0620"
    _mount("devpts", _folder(folder / "pts"), "devpts", _MS_NOSUID | _MS_NOEXEC, options)
    _mount(str(folder), "/dev", "", _MS_MOVE)


def _cover(hidden: list[str], empty: Path) -> None:
    """Cover each folder with the empty folder `empty` and each file with /dev/null."""
    _folder(empty)
    for path in map(Path, hidden):
        if path.is_dir():
            _mount(str(empty), str(path.resolve()), "", _MS_BIND)
        elif path.exists():
            _mount("/dev/null", str(path.resolve()), "", _MS_BIND)


def _folder(path: Path, mode: int = 0o755) -> str:
    """Create the folder if it is missing, set a mode other than the default, return its path."""
    path.mkdir(parents=True, exist_ok=True)
    if mode != 0o755:
        path.chmod(mode)
    return str(path)


def drop_capabilities() -> None:
    """Give up all capabilities for good, so that root in the sandbox can't undo `separate`."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    for capability in range(64):
        if _prctl(_PR_CAPBSET_DROP, capability) != 0:
            break  # past the last capability, or no right to drop it
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION_3, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def run_server(command: list[str]) -> int:
    """Run the program as a child and reap orphans; when it ends, kill all other processes.

    Returns the exit code of the program.
    """
    child = os.fork()
    if child == 0:
        os.execv(command[0], command)  # noqa: S606
    # This process holds the descriptors of the wire too. If it were dumpable, other processes of
    # the same user could open them through /proc: PR_SET_DUMPABLE in prctl(2).
    _prctl(_PR_SET_DUMPABLE, 0)
    while True:
        ended_pid, status = os.wait()
        if ended_pid == child:
            break
    try:
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            os.wait()
    except OSError:  # there are no children left
        return os.waitstatus_to_exitcode(status) & 0xFF


def enter_sandbox(report_fd: int, places: dict[str, Any], command: list[str]) -> int:
    """Separate what can be separated, report it, and run `command`. Returns its exit code."""
    report: dict[str, Any] = dict.fromkeys(("processes", "network", "files", "families"), False)
    report |= {"sockets": 0, "problem": ""}
    sockets = socket_paths()
    filter_script = places.pop("filter", "")
    if "max_file_bytes" in places:
        max_file_bytes = places.pop("max_file_bytes")
        resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))
    has_namespaces = False
    try:
        leave_namespaces()
        has_namespaces = report["network"] = True
    except OSError as error:
        report["problem"] = str(error)
    if not has_namespaces:
        # Without a process namespace, orphans become children of this process instead of the host's
        # first process, so that the host finds all of them below this one: PR_SET_CHILD_SUBREAPER
        # in prctl(2).
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        drop_capabilities()
        _filter_sockets(filter_script, report)
        _send(report_fd, report)
        return run_server(command)
    # unshare(2) puts only children into the new process namespace. The first child is its process
    # 1; when that ends, the kernel kills all others in the namespace: pid_namespaces(7).
    first_child = os.fork()
    if first_child != 0:
        os.close(report_fd)
        return os.waitstatus_to_exitcode(os.waitpid(first_child, 0)[1]) & 0xFF
    # If the process outside is killed, the namespace and everything in it end too.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        report["sockets"] = separate(sockets)
        report["processes"] = True
        close_files(**places)
        report["files"] = True
    except OSError as error:
        report["problem"] = str(error)
    drop_capabilities()
    _filter_sockets(filter_script, report)
    _send(report_fd, report)
    return run_server(command)


def _filter_sockets(filter_script: str, report: dict[str, Any]) -> None:
    """Refuse socket families that lead out of a network namespace (sandbox/socket_filter.py)."""
    if not filter_script:
        return
    try:
        runpy.run_path(filter_script)["refuse_sockets"]()
        report["families"] = True
    except OSError as error:
        report["problem"] = report["problem"] or str(error)


def _send(fd: int, report: dict[str, Any]) -> None:
    with os.fdopen(fd, "w") as pipe:
        json.dump(report, pipe)


if __name__ == "__main__":
    sys.exit(enter_sandbox(int(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3:]))
