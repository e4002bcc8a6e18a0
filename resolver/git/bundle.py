"""The exchange of git objects with a sandbox: a clean git directory goes in, a bundle comes out.

The directory contains the base commit with its history, but no remote, hook or credential of the
clone. It is streamed as a tar. Layout: https://git-scm.com/docs/gitrepository-layout

A sandbox is not trusted, so nothing of the bundle is used but its objects. Its refs are not
created. Its pack is passed to `git index-pack --strict` instead of fetched, because `git fetch`
checks the objects of a bundle only since git 2.46.
Format: https://git-scm.com/docs/gitformat-bundle
"""

import io
import re
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from resolver.errors import PolicyViolation, WorkspaceError
from resolver.git.git import HostGit, git_failure, repository_config
from resolver.git.remote import OBJECT_ID
from resolver.git.tree import stream_tar

_PACK_FILES = (".pack", ".idx", ".rev")

# Writable for everyone: the container engine unpacks the files as root, and the sandbox's
# unprivileged user has to be able to link and remove them.
_FOLDER_MODE, _FILE_MODE = 0o777, 0o666

_SUBFOLDERS = ("refs/heads", "objects/info", "objects/pack")

_REFS_HEADER = "# pack-refs with: peeled fully-peeled sorted \n"


def git_dir_tar(git: HostGit, folder: Path, base: str, branch: str, name: str) -> Iterator[bytes]:
    """Yield an uncompressed tar of a non-bare git directory, in chunks.

    branch: the branch that HEAD points to, "" for a detached HEAD.
    name: the directory's name in the tar.
    """
    config = repository_config(bare=False)
    head = f"ref: refs/heads/{branch}\n" if branch else f"{base}\n"
    small_files = {"HEAD": head, "config": config}
    if branch:
        small_files["packed-refs"] = f"{_REFS_HEADER}{base} refs/heads/{branch}\n"
    # The history ends where it ends in the clone; without this file, git would miss the parents.
    shallow = folder / "shallow"
    if shallow.is_file():
        small_files["shallow"] = shallow.read_text("ascii")
    with tempfile.TemporaryDirectory(prefix="outgoing-", dir=folder) as temporary:
        members = [
            (_member(member, 0, tarfile.DIRTYPE, _FOLDER_MODE), io.BytesIO())
            for member in (name, *(f"{name}/{subfolder}" for subfolder in _SUBFOLDERS))
        ]
        for file, text in small_files.items():
            data = text.encode("utf-8", "surrogateescape")
            members.append((_member(f"{name}/{file}", len(data)), io.BytesIO(data)))
        packs = (
            (_member(f"{name}/objects/pack/{path.name}", path.stat().st_size), open(path, "rb"))  # noqa: SIM115 - closed by stream_tar
            for path in _packs(git, base, Path(temporary))
        )
        yield from stream_tar(chain[tuple[tarfile.TarInfo, BinaryIO]](members, packs))


def _packs(git: HostGit, base: str, target: Path) -> list[Path]:
    """Write a pack with exactly the history of `base`, and return its files.

    Objects of other branches, or of later commits, must not reach the sandbox. Git copies what is
    packed already.
    """
    git.run(
        "pack-objects", "--revs", "--delta-base-offset", "--quiet", f"{target}/pack",
        stdin=f"{base}\n".encode(),
    )  # fmt: skip
    return sorted(path for path in target.iterdir() if path.suffix in _PACK_FILES)


def _member(
    name: str, size: int, kind: bytes = tarfile.REGTYPE, mode: int = _FILE_MODE
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.mode = size, kind, mode
    return info


MAX_BUNDLE_BYTES = 1 << 30
"""Maximum size of a bundle in bytes."""

_MAX_LINE_BYTES = 4096
_MAX_HEADER_LINES = 16
# https://git-scm.com/docs/git-fsck#_fsck_messages
_FORBIDDEN_NAME = re.compile(r"\bhasDot(?:git|dot)?\b|\bfullPathname\b")
_NEXT_STEP = "nothing was published; run it again, and look at what ran in the sandbox"


@dataclass(frozen=True)
class BundleHeader:
    """The part of a bundle that precedes its pack.

    prerequisites: ids of the commits that the receiver must have.
    references: id and name of each ref.
    """

    prerequisites: tuple[str, ...]
    references: tuple[tuple[str, str], ...]


def unbundle(git: HostGit, path: Path, base: str, commit: str, tree: str) -> None:
    """Add the objects of the bundle at `path`, and check that they are the announced change.

    The bundle must have exactly one ref. It must point to `commit`, whose only parent is `base` and
    whose tree is `tree`. All objects must be valid, and none may be missing. Raises WorkspaceError
    if one of these conditions is not met, and PolicyViolation for a name that stands for `.git`.
    """
    for object_id in (commit, tree):
        if not OBJECT_ID.fullmatch(object_id) or len(object_id) != len(base):
            raise _bundle_error(f"it announces {object_id!r:.100} as an object id")
    if path.stat().st_size > MAX_BUNDLE_BYTES:
        raise _bundle_error(f"it has more than {MAX_BUNDLE_BYTES} bytes")
    with open(path, "rb", buffering=0) as file:
        _check_header(read_header(file), base, commit)
        # --fix-thin: a bundle has a thin pack, with deltas against objects of the base.
        # --strict: reject malformed objects, such as trees with an entry `.git` or `..`, and links
        # to missing objects. https://git-scm.com/docs/git-index-pack
        args = (
            "index-pack", "--stdin", "--fix-thin", "--strict",
            f"--max-input-size={MAX_BUNDLE_BYTES}",
        )  # fmt: skip
        # The header was read unbuffered, so the descriptor is at the first byte of the pack.
        result = git.attempt(*args, stdin=file)
    if result.status != 0:
        what = git_failure(args, result).what
        if _FORBIDDEN_NAME.search(result.stderr):
            raise PolicyViolation(
                f"it adds a file whose name git refuses, such as a form of .git: {what}", _NEXT_STEP
            )
        raise _bundle_error(what)
    _check_commit(git, base, commit, tree)
    # Walk from the commit to the base, so that an object that is in neither is found here and not
    # by a later command.
    walk = git.attempt("rev-list", "--objects", "--quiet", commit, f"^{base}")
    if walk.status != 0:
        raise _bundle_error(git_failure(("rev-list",), walk).what)


def read_header(file: FileIO) -> BundleHeader:
    """Read the header of a bundle, and leave `file` at the first byte of the pack.

    Only version 2 is read: it has no capabilities, such as `filter`, with which objects may be
    missing. Raises WorkspaceError if the header is malformed.
    """
    if _read_line(file) != b"# v2 git bundle":
        raise _bundle_error("it is not a git bundle")
    prerequisites: list[str] = []
    references: list[tuple[str, str]] = []
    for _ in range(_MAX_HEADER_LINES):
        line = _read_line(file)
        if not line:
            return BundleHeader(tuple(prerequisites), tuple(references))
        text = line.decode("utf-8", "replace")
        if text.startswith("-"):
            prerequisites.append(_check_object_id(text[1:].partition(" ")[0]))
        else:
            value, _, name = text.partition(" ")
            references.append((_check_object_id(value), name))
    raise _bundle_error("it has too many refs")


def _read_line(file: FileIO) -> bytes:
    """Read one line, without its newline. Raises WorkspaceError if it is too long or incomplete."""
    line = file.readline(_MAX_LINE_BYTES)
    if not line.endswith(b"\n"):
        raise _bundle_error("its header is cut off")
    return line[:-1]


def _check_object_id(text: str) -> str:
    if not OBJECT_ID.fullmatch(text):
        raise _bundle_error(f"its header holds {text!r:.100} instead of an object id")
    return text


def _check_header(header: BundleHeader, base: str, commit: str) -> None:
    """Raise WorkspaceError unless the header has one ref, at `commit`, and requires only `base`."""
    if len(header.references) != 1:
        raise _bundle_error(f"it has {len(header.references)} refs and not one")
    if header.references[0][0] != commit:
        raise _bundle_error("its ref is not the announced commit")
    if any(prerequisite != base for prerequisite in header.prerequisites):
        raise _bundle_error("it builds on something other than the base commit")


def _check_commit(git: HostGit, base: str, commit: str, tree: str) -> None:
    """Raise WorkspaceError unless the commit has exactly this tree and exactly this parent."""
    # The raw object is parsed: other commands show the parents as the shallow boundary alters them.
    result = git.attempt("cat-file", "commit", commit, limit=1 << 20)
    if result.status != 0:
        raise _bundle_error("the announced commit is not in it")
    lines = result.stdout.partition(b"\n\n")[0].decode("utf-8", "replace").splitlines()
    trees = [line.removeprefix("tree ") for line in lines if line.startswith("tree ")]
    parents = [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]
    if trees != [tree]:
        raise _bundle_error(f"its commit has another tree than the announced {tree}")
    if parents != [base]:
        raise _bundle_error("its commit is not made directly on the base commit")


def _bundle_error(reason: str) -> WorkspaceError:
    return WorkspaceError(f"the change from the sandbox can't be used: {reason}", _NEXT_STEP)
