"""A commit of the host's clone as parts, for a forge that makes the same commit itself."""

from collections.abc import Iterator

from resolver.errors import WorkspaceError
from resolver.git.clone import check_commit
from resolver.git.git import HostGit
from resolver.git.tree import quote, read_blobs, read_changes, read_tree
from resolver.models.commits import MadeCommit, NewEntry

_MOST_COMMITS = 20


def made_commits(git: HostGit, commit: str) -> tuple[MadeCommit, ...]:
    """The commit, and those behind it that were made here and never fetched; oldest first.

    Raises WorkspaceError for a path that is not UTF-8: JSON can't carry it.
    """
    args = ("rev-list", "--topo-order", "--reverse", f"--max-count={_MOST_COMMITS}")
    found = git.text(*args, check_commit(commit), "--not", "--all").split()
    return tuple(_made(git, each) for each in found)


def _made(git: HostGit, commit: str) -> MadeCommit:
    raw = git.run("cat-file", "commit", commit)
    head, _, message = raw.partition(b"\n\n")
    fields = [line.split(" ", 1) for line in head.decode("utf-8", "replace").splitlines()]
    parents = tuple(rest[0] for name, *rest in fields if name == "parent")
    tree = next(rest[0] for name, *rest in fields if name == "tree")
    changes = read_changes(git, parents[0], tree)
    written = {change.path for change in changes if change.status != "deleted"}
    entries = []
    blobs: dict[str, None] = {}
    for change in changes:
        if change.status == "deleted":
            # a file that became a folder, or the other way, is replaced by what is written there
            if not _is_replaced(change.path, written):
                entries.append(NewEntry(path=_text(change.path), mode=change.old_mode))
            continue
        entries.append(NewEntry(path=_text(change.path), mode=change.new_mode, id=change.new_id))
        if change.new_blob is not None:
            blobs[change.new_blob] = None
    known = {entry.id for parent in parents for entry in read_tree(git, parent)} if blobs else set()
    return MadeCommit(
        id=commit,
        message=message.decode("utf-8", "replace"),
        tree=tree,
        parents=parents,
        base_tree=git.text("rev-parse", f"{parents[0]}^{{tree}}"),
        entries=tuple(entries),
        blobs=tuple(blob for blob in blobs if blob not in known),
    )


def contents(git: HostGit, commit: MadeCommit) -> Iterator[tuple[str, bytes]]:
    """The commit's new blobs, each with its content; few at a time are held in memory."""
    return read_blobs(git, commit.blobs)


def _is_replaced(path: bytes, written: set[bytes]) -> bool:
    parts = path.split(b"/")
    above = {b"/".join(parts[:length]) for length in range(1, len(parts))}
    return bool(above & written) or any(other.startswith(path + b"/") for other in written)


def _text(path: bytes) -> str:
    try:
        return path.decode()
    except UnicodeDecodeError:
        raise WorkspaceError(
            f"the path {quote(path)} is not UTF-8, and GitHub's API can't make a commit with it",
            "rename it, or set signed_commits to false",
        ) from None
