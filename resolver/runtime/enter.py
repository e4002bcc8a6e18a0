"""First process of the local sandbox: leaves the host's namespaces, then starts the action server.

It runs as a script and needs the standard library only:
    enter.py REPORT_FD PLACES PROGRAM [ARGUMENT...]

PROGRAM may be a Python script (*.py): it runs in a fork of this interpreter, which saves the start
of another one.

PLACES is a JSON object: {"folder": the writable folder, "readable": [folders that stay readable],
"hidden": [files and folders to cover], "filter": path of socket_filter.py, "max_file_bytes":
largest size of one file}.

The script writes one JSON object to REPORT_FD, which says what could be separated, and closes it:
{"processes": bool, "network": bool, "files": bool, "families": bool, "connectable": [folders whose
sockets and named pipes are the host's], "problem": str}. If the kernel does not allow namespaces,
the program runs nevertheless and the report says so.

See namespaces(7), user_namespaces(7), mount_namespaces(7), capabilities(7) and
https://docs.kernel.org/filesystems/overlayfs.html
"""

import ctypes
import errno
import fcntl
import json
import os
import re
import resource
import runpy
import signal
import site
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
_NEW_NAMESPACES = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2

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

_KERNEL_FOLDERS = ("/proc", "/sys", "/dev")
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


def separate() -> None:
    """Set up the new namespaces: an own /proc, and the loopback interface up.

    Call it in the first process of the new namespaces. Raises OSError if /proc can't be replaced.
    """
    # A new mount namespace starts with copies of the host's mounts, which may be shared: a mount
    # made here would then appear on the host too. MS_PRIVATE ends the sharing: mount_namespaces(7).
    _mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    # The old /proc shows the host's processes. A proc file system shows those of the process
    # namespace of whoever mounts it: pid_namespaces(7).
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    # The only interface of a new network namespace is a loopback interface, and it is down:
    # netdevice(7).
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack_from("16xH", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request))[0]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def cover_sockets(sockets: list[str], root: str = "") -> None:
    """Cover the Unix sockets below `root` that exist, where the kernel makes no overlay."""
    for path in sockets:
        with suppress(OSError):
            _mount("/dev/null", root + os.path.realpath(path), "", _MS_BIND)


def close_files(
    folder: str, readable: list[str], hidden: list[str], sockets: list[str]
) -> list[str]:
    """Move into a new root: the host's files read-only, `folder` writable, an own /dev and /run.

    Call it after `separate`. The replacements of _REPLACED_FOLDERS are in `folder`; the new /dev
    holds only devices that do not lead out of the sandbox. Raises OSError if the kernel is too old,
    before anything is changed.
    readable: folders that stay readable, wherever they are.
    hidden: files and folders that are empty in the new root.
    sockets: the known Unix sockets, which are covered where the kernel makes no overlay.
    Returns the folders whose sockets and named pipes are still the host's; see `_show`.
    """
    _set_attributes("/", 0, 0)  # changes nothing; fails if the kernel lacks mount_setattr(2)
    replacements = Path(folder, "private")
    new_root, empty = (_folder(replacements / name) for name in ("root", "empty"))
    _mount("tmpfs", new_root, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0755")
    private = [place for place in _REPLACED_FOLDERS if os.path.realpath(place) == place]
    mount_points = _mount_points()
    left_out = {*_KERNEL_FOLDERS, *private, *hidden, *map(os.path.realpath, hidden)}
    connectable = _show("/", new_root, left_out, mount_points)
    # The replacements of the private folders are in `folder`, so nothing covers it from here on.
    _cover(new_root, hidden, empty)
    for place in private:
        source = _folder(replacements / place[1:], 0o1777)
        _mount(source, _folder(Path(new_root + place)), "", _MS_BIND)
    _mount(folder, _folder(Path(new_root + folder)), "", _MS_BIND)
    # Folders to show may lie below a folder that is replaced or hidden, such as a virtual
    # environment in /tmp.
    for path in sorted({path for place in readable for path in (place, os.path.realpath(place))}):
        # os.path.isdir returns False for a folder that this user may not search.
        if os.path.isdir(path) and not os.path.isdir(new_root + path):  # noqa: PTH112
            connectable += _show(path, _folder(Path(new_root + path)), set(), mount_points)
    cover_sockets([path for path in sockets if _is_below(path, connectable)], new_root)
    _mount("/proc", _folder(Path(new_root, "proc")), "", _MS_BIND | _MS_REC)
    _mount("/sys", _folder(Path(new_root, "sys")), "", _MS_BIND | _MS_REC)
    _make_devices(Path(new_root, "dev"))
    # Everything becomes read-only first, then the writable places are opened again one by one.
    _set_attributes(new_root, _ATTR_RDONLY, 0, _AT_RECURSIVE)
    for place in (folder, *private, "/proc", "/dev", "/dev/pts"):
        _set_attributes(new_root + place, 0, _ATTR_RDONLY)
    for path in (f"{new_root}/proc/{name}" for name in _KERNEL_CONTROLS):
        if Path(path).exists():
            _mount(path, path, "", _MS_BIND | _MS_REC)
            _set_attributes(path, _ATTR_RDONLY, 0, _AT_RECURSIVE)
    _change_root(new_root)
    return connectable


def _show(source: str, target: str, left_out: set[str], mount_points: list[str]) -> list[str]:
    """Show the folder `source` and all below it at `target`, read-only.

    A read-only mount does not keep a program from connecting to a Unix socket in it, nor from
    writing to a named pipe. An overlay without an upper layer does: its files are read from the
    host's, but its sockets and pipes are other ones, which nobody listens to. This also holds for
    those that are made later. Returns the folders of which the kernel makes no overlay; these are
    bind mounts.

    An overlay shows the files of one mount, and a user namespace may not uncover what lies below
    another mount. So the folders that have a mount below them are made anew, one level at a time.
    left_out: folders that stay empty.
    """
    if source in left_out:
        return []
    if not any(path.startswith(f"{source.rstrip('/')}/") for path in mount_points):
        try:
            _mount_overlay(source, target)
        except OSError:
            _mount(source, target, "", _MS_BIND)
            return [source]
        return []
    connectable = []
    with suppress(PermissionError), os.scandir(source) as entries:
        for entry in entries:
            path = Path(target, entry.name)
            if entry.is_symlink():
                path.symlink_to(os.readlink(entry.path))  # noqa: PTH115
            elif entry.is_dir():
                connectable += _show(entry.path, _folder(path), left_out, mount_points)
            elif entry.is_file() and entry.path not in left_out:
                path.touch()
                _mount(entry.path, str(path), "", _MS_BIND)
    return connectable


def _mount_overlay(source: str, target: str) -> None:
    """Mount a read-only overlay of the folder `source` at `target`. Raises OSError.

    The kernel wants a second layer, which is the empty folder `target` itself.
    """
    layers = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (source, target)]
    try:
        # Paths may contain the separators of mount options. Those of descriptors don't.
        option = "lowerdir=" + ":".join(f"/proc/self/fd/{layer}" for layer in layers)
        _mount("overlay", target, "overlay", _MS_NOSUID | _MS_NODEV, option)
    finally:
        for layer in layers:
            os.close(layer)


def _mount_points() -> list[str]:
    """Return where something is mounted."""
    with open("/proc/self/mountinfo", "rb") as table:
        fields = [line.split(b" ")[4] for line in table]
    # Spaces, tabs, newlines and backslashes are written as octal numbers: proc_pid_mountinfo(5).
    return [os.fsdecode(re.sub(rb"\\(\d{3})", _octal_byte, field)) for field in fields]


def _octal_byte(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8) & 0xFF])


def _change_root(new_root: str) -> None:
    """Make `new_root` the root of the mount namespace and detach the old one."""
    place = os.getcwd()  # noqa: PTH109
    os.chdir(new_root)
    # With "." for both, the old root is mounted on top of the new one, in the same place:
    # pivot_root(2).
    _call("pivot_root", b".", b".")
    _call("umount2", b".", ctypes.c_int(_MNT_DETACH))
    os.chdir(place)  # the same path, but now on the writable mount


def _make_devices(folder: Path) -> None:
    """Make a /dev that has no disks and none of the terminals of other programs."""
    # A sticky folder that all may write to would refuse a redirection to a device of somebody else:
    # proc_sys_fs(5), protected_regular.
    _mount("tmpfs", _folder(folder), "tmpfs", _MS_NOSUID, "mode=0755")
    for name in _DEVICES:
        (folder / name).touch()
        _mount(f"/dev/{name}", str(folder / name), "", _MS_BIND)
    for name, target in _DEVICE_LINKS.items():
        (folder / name).symlink_to(target)
    _folder(folder / "shm", 0o1777)
    options = "newinstance,ptmxmode=0666,mode=0620"
    _mount("devpts", _folder(folder / "pts"), "devpts", _MS_NOSUID | _MS_NOEXEC, options)


def _is_below(path: str, folders: list[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def _cover(new_root: str, hidden: list[str], empty: str) -> None:
    """Cover each folder with the empty folder `empty` and each file with /dev/null."""
    for path in (Path(new_root + os.path.realpath(place)) for place in hidden):
        with suppress(PermissionError):  # then it can't be read in the sandbox either
            if path.is_dir():
                _mount(empty, str(path), "", _MS_BIND)
            elif path.exists():
                _mount("/dev/null", str(path), "", _MS_BIND)


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
        if command[0].endswith(".py"):
            return _run_script(command)
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


def _run_script(command: list[str]) -> int:
    """Run a Python script with its arguments in this process, and return 0."""
    site.main()  # which -S has left out: the script may look for installed packages
    sys.argv = command
    runpy.run_path(command[0], run_name="__main__")
    return 0


def enter_sandbox(report_fd: int, places: dict[str, Any], command: list[str]) -> int:
    """Separate what can be separated, report it, and run `command`. Returns its exit code."""
    report: dict[str, Any] = dict.fromkeys(("processes", "network", "files", "families"), False)
    report |= {"connectable": ["/"], "problem": ""}
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
        separate()
        report["processes"] = True
        report["connectable"] = close_files(**places, sockets=sockets)
        report["files"] = True
    except OSError as error:
        report["problem"] = str(error)
        cover_sockets(sockets)
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
