"""The exchange of git objects with a sandbox: a clean git directory goes in, a bundle comes out.

The directory contains the base commit with its history, but no remote, hook or credential of the
clone. It is streamed as a tar. Layout: https://git-scm.com/docs/gitrepository-layout

A sandbox is not trusted, so nothing of the bundle is used but its objects. Its refs are not
created. Its pack is passed to `git index-pack --strict` instead of fetched, because `git fetch`
checks the objects of a bundle only since git 2.46.
Format: https://git-scm.com/docs/gitformat-bundle
"""

import re
import tarfile
import tempfile
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

from resolver.errors import PolicyViolation, WorkspaceError
from resolver.git.git import HostGit, git_failure, repository_config
from resolver.git.remote import OBJECT_ID
from resolver.git.tree import read_chunks

# Writable for everyone: the container engine unpacks the files as root, and the sandbox's
# unprivileged user has to be able to link and remove them.
_FOLDER_MODE, _FILE_MODE = 0o777, 0o666

_REFS_HEADER = "# pack-refs with: peeled fully-peeled sorted \n"
_SUBFOLDERS = ("refs/heads", "objects/info", "objects/pack")


def git_dir_tar(git: HostGit, folder: Path, base: str, branch: str, name: str) -> Iterator[bytes]:
    """Yield an uncompressed tar of a non-bare git directory, in chunks.

    branch: the branch that HEAD points to, "" for a detached HEAD.
    name: the directory's name in the tar.
    """
    small_files = {"HEAD": f"{base}\n", "config": repository_config(bare=False)}
    if branch:
        small_files["HEAD"] = f"ref: refs/heads/{branch}\n"
        small_files["packed-refs"] = f"{_REFS_HEADER}{base} refs/heads/{branch}\n"
    # The history ends where it ends in the clone; without this file, git would miss the parents.
    shallow = folder / "shallow"
    if shallow.is_file():
        small_files["shallow"] = shallow.read_text("ascii")
    with tempfile.TemporaryDirectory(prefix="outgoing-", dir=folder) as temporary:
        root, tar_file = Path(temporary, name), Path(temporary, f"{name}.tar")
        for subfolder in _SUBFOLDERS:
            (root / subfolder).mkdir(parents=True)
        for file, text in small_files.items():
            (root / file).write_text(text, "utf-8", "surrogateescape")
        # Exactly the history of the base: objects of other branches, or of later commits, must not
        # reach the sandbox. Git copies what is packed already.
        args = ("--revs", "--delta-base-offset", "--quiet", f"{root}/objects/pack/pack")
        git.run("pack-objects", *args, stdin=f"{base}\n".encode())
        with tarfile.open(tar_file, "w") as tar:
            tar.add(root, name, filter=_with_open_mode)
        yield from read_chunks(tar_file)


def _with_open_mode(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.mode = _FOLDER_MODE if member.isdir() else _FILE_MODE
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


MAX_BUNDLE_BYTES = 1 << 30
"""Maximum size of a bundle in bytes."""

_MAX_HEADER_BYTES = 65_536
# https://git-scm.com/docs/git-fsck#_fsck_messages
_FORBIDDEN_NAME = re.compile(r"\bhasDot(?:git|dot)?\b|\bfullPathname\b")
_NEXT_STEP = "nothing was published; run it again, and look at what ran in the sandbox"


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
        _skip_header(file, base, commit)
        # --fix-thin: a bundle has a thin pack, with deltas against objects of the base.
        # --strict: reject malformed objects, such as trees with an entry `.git` or `..`, and links
        # to missing objects. https://git-scm.com/docs/git-index-pack
        args = (
            "index-pack", "--stdin", "--fix-thin", "--strict",
            f"--max-input-size={MAX_BUNDLE_BYTES}",
        )  # fmt: skip
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


def _skip_header(file: FileIO, base: str, commit: str) -> None:
    """Leave `file` at the first byte of the pack.

    Raises WorkspaceError unless the header has one ref, at `commit`, and requires only `base`.
    Version 2 has no capabilities, such as `filter`, with which objects may be missing.
    """
    header, end, _ = file.read(_MAX_HEADER_BYTES).partition(b"\n\n")
    version, *lines = header.decode("ascii", "replace").split("\n")
    if version != "# v2 git bundle" or not end:
        raise _bundle_error("it is not a git bundle")
    ids = [line.partition(" ")[0] for line in lines]
    if ids.count(commit) != 1 or not set(ids) <= {commit, f"-{base}"}:
        raise _bundle_error("it holds something else than the announced commit on the base commit")
    file.seek(len(header) + len(end))


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
