"""Changes of a repository as git objects alone: what judges of trees need, in one process of git.

A test that shares a repository with others can't disturb them: a change only adds objects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from resolver.git.git import HostGit, create_bare_repository
from resolver.git.tree import read_patch
from resolver.git.workspace import DIFF_LIMIT, Workspace
from resolver.models.run import Patch


@dataclass(frozen=True)
class Link:
    """A symlink. target: where it points to."""

    target: str


@dataclass(frozen=True)
class Entry:
    """An entry with another mode than an ordinary file. data: None for a submodule."""

    mode: str
    data: bytes | None = b"x\n"


Content = str | bytes | Link | Entry | None
Changes = Mapping[str, Content] | Mapping[str | bytes, Content]
"""The new content of files by path; None deletes a file or folder."""

COMMIT = "1" * 40
"""The commit of a submodule."""


def write_base(folder: Path, files: Changes) -> Workspace:
    """Create a bare repository with one commit on `main`."""
    git = create_bare_repository(folder)
    base = git.run("fast-import", "--quiet", stdin=_stream("refs/heads/main", (), files))
    return Workspace(folder, str(folder), base.decode().strip(), "main")


def patch_of(workspace: Workspace, changes: Changes, limit: int = DIFF_LIMIT) -> Patch:
    """Return the change of the repository's base, as if it had come from a sandbox."""
    tree = workspace.tree(commit_of(workspace.git, changes, workspace.base))
    return read_patch(workspace.git, workspace.base, tree, limit)


def commit_of(git: HostGit, changes: Changes, *parents: str) -> str:
    """Commit changes of the first parent, to no branch."""
    stream = _stream("refs/scratch", parents, changes)
    return git.run("fast-import", "--quiet", "--force", stdin=stream).decode().strip()


def _stream(ref: str, parents: Sequence[str], changes: Changes) -> bytes:
    lines = [b"commit %s\nmark :1\ncommitter A <a@b> 0 +0000\ndata 0\n\n" % ref.encode()]
    lines += [f"{'merge' if n else 'from'} {p}\n".encode() for n, p in enumerate(parents)]
    for path, change in changes.items():
        raw = path.encode() if isinstance(path, str) else path
        name = b'"%s"' % b"".join(b"\\%03o" % byte for byte in raw)
        if change is None:
            lines.append(b"D %s\n" % name)
            continue
        mode, data = "100644", change
        if isinstance(change, Link):
            mode, data = "120000", change.target
        elif isinstance(change, Entry):
            mode, data = change.mode, change.data
        if data is None:
            lines.append(b"M 160000 %s %s\n" % (COMMIT.encode(), name))
            continue
        content = data.encode() if isinstance(data, str) else data
        assert isinstance(content, bytes)
        lines.append(
            b"M %s inline %s\ndata %d\n%b\n" % (mode.encode(), name, len(content), content)
        )
    return b"".join([*lines, b"\nget-mark :1\n"])
