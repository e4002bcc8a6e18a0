"""Reads a commit of the host's clone as data, from which GitHub's API creates the same commit."""

from resolver.errors import WorkspaceError
from resolver.git.clone import check_commit
from resolver.git.git import HostGit
from resolver.git.tree import quote, read_changes, read_tree
from resolver.models.repository import LocalCommit, NewEntry


def read_local_commit(git: HostGit, commit: str) -> LocalCommit:
    """Return a commit as data: message, parents, changed entries and new blobs.

    Raises WorkspaceError for a path that is not valid UTF-8, which JSON can't represent.
    """
    raw = git.run("cat-file", "commit", check_commit(commit))
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
            # A file that became a folder, or a folder that became a file, is replaced by the new
            # entry. Deleting it as well would delete the new entry.
            if not _is_replaced(change.path, written):
                entries.append(NewEntry(path=_decode_path(change.path), mode=change.old_mode))
            continue
        entries.append(
            NewEntry(path=_decode_path(change.path), mode=change.new_mode, id=change.new_id)
        )
        if change.new_blob is not None:
            blobs[change.new_blob] = None
    existing_ids = (
        {entry.id for parent in parents for entry in read_tree(git, parent)} if blobs else set()
    )
    return LocalCommit(
        id=commit,
        message=message.decode("utf-8", "replace"),
        tree=tree,
        parents=parents,
        base_tree=git.text("rev-parse", f"{parents[0]}^{{tree}}"),
        entries=tuple(entries),
        blobs=tuple(blob for blob in blobs if blob not in existing_ids),
    )


def _is_replaced(path: bytes, written: set[bytes]) -> bool:
    """Return True if an entry is written above or below the deleted `path`."""
    parts = path.split(b"/")
    parent_paths = {b"/".join(parts[:length]) for length in range(1, len(parts))}
    return bool(parent_paths & written) or any(other.startswith(path + b"/") for other in written)


def _decode_path(path: bytes) -> str:
    try:
        return path.decode()
    except UnicodeDecodeError:
        raise WorkspaceError(
            f"the path {quote(path)} is not UTF-8, and GitHub's API can't make a commit with it",
            "rename it, or set signed_commits to false",
        ) from None
