"""Streams a folder of a commit as a tar, from which the container engine builds an image.

It is read from git's objects; nothing is checked out. `.dockerignore` has the same effect as with
the docker command: https://docs.docker.com/build/concepts/context/#dockerignore-files
"""

import io
import tarfile
from collections.abc import Iterator
from typing import Any

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit
from resolver.git.tree import GITLINK, SYMLINK, TreeEntry, read_blobs, read_sizes, read_tree

MOST_BYTES = 1 << 30
"""Maximum size of a context, in bytes of content."""


DOCKERFILE_NAME = ".resolver.Dockerfile"
"""Name of the Dockerfile in the context. The original may be outside the folder, or ignored."""


def context_tar(git: HostGit, commit: str, folder: str, dockerfile: str) -> Iterator[bytes]:
    """Yield a tar of the Dockerfile and the files below `folder` that are not ignored.

    folder: "." for the root. Raises WorkspaceError if the folder or the Dockerfile doesn't exist,
    or the files have more than MOST_BYTES.
    """
    tree = {e.path: e for e in read_tree(git, commit) if e.mode != GITLINK}
    described = tree.get(dockerfile.encode("utf-8", "surrogateescape"))
    prefix = b"" if folder == "." else folder.encode("utf-8", "surrogateescape") + b"/"
    entries = {p.removeprefix(prefix): e for p, e in tree.items() if p.startswith(prefix)}
    if described is None or described.mode == SYMLINK or not entries:
        missing = folder if described else dockerfile
        raise WorkspaceError(f"there is no {missing} to build from", "correct the path")
    entries = _without_ignored(git, entries)
    entries[DOCKERFILE_NAME.encode()] = described
    by_blob: dict[str, list[tuple[bytes, str]]] = {}
    for path, entry in sorted(entries.items()):
        by_blob.setdefault(entry.id, []).append((path, entry.mode))
    sizes = read_sizes(git, by_blob)
    if sum(sizes[blob] * len(places) for blob, places in by_blob.items()) > MOST_BYTES:
        raise WorkspaceError(
            f"the build's context {folder} has more than {MOST_BYTES:,} bytes",
            "leave more out with .dockerignore",
        )
    for blob, content in read_blobs(git, by_blob):
        for path, mode in by_blob[blob]:
            yield _member(path, mode, content)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _without_ignored(git: HostGit, entries: dict[bytes, TreeEntry]) -> dict[bytes, TreeEntry]:
    from docker.utils.build import PatternMatcher

    ignored = entries.get(b".dockerignore")
    if ignored is None or ignored.mode == SYMLINK:
        return entries
    text = dict(read_blobs(git, [ignored.id]))[ignored.id].decode(errors="replace")
    matcher: Any = PatternMatcher(_patterns(text))
    return {
        path: entry
        for path, entry in entries.items()
        if not matcher.matches(path.decode("utf-8", "surrogateescape"))
    }


def _patterns(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _member(path: bytes, mode: str, content: bytes) -> bytes:
    info = tarfile.TarInfo(path.decode("utf-8", "surrogateescape"))
    info.mode = 0o755 if mode == "100755" else 0o644
    if mode == SYMLINK:
        info.type, info.linkname = tarfile.SYMTYPE, content.decode("utf-8", "surrogateescape")
        return info.tobuf(tarfile.PAX_FORMAT)
    info.size = len(content)
    out = io.BytesIO()
    out.write(info.tobuf(tarfile.PAX_FORMAT))
    out.write(content)
    out.write(bytes(-len(content) % tarfile.BLOCKSIZE))
    return out.getvalue()
