"""Determines which git commands write to the working tree, and which paths they name."""

from collections.abc import Sequence

from resolver.security.shell.places import WrittenPaths

_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_ALWAYS = frozenset({"am", "revert", "merge", "rebase", "cherry-pick", "pull", "bisect"})
_LOOKS = frozenset({"-n", "--dry-run", "--cached", "--check", "--stat", "--numstat", "--summary"})
_KEPT = frozenset({"list", "show", "drop", "clear", "create", "store"})
_NEW = frozenset({"-b", "-B", "-c", "-C", "--create", "--orphan", "--force-create"})


def git_writes(args: Sequence[str]) -> WrittenPaths:
    """Return what `git` with these arguments writes to the working tree. A commit writes nothing:
    it only records what is there."""
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in _VALUED else 1
    if at >= len(args):
        return WrittenPaths()
    name, rest = args[at], args[at + 1 :]
    behind = rest.index("--") if "--" in rest else None
    named = tuple(w for w in rest if not w.startswith("-")) if behind is None else ()
    paths = tuple(rest[behind + 1 :]) if behind is not None else named
    match name:
        case "mv" | "rm" if _LOOKS.isdisjoint(rest):
            return WrittenPaths(paths)
        case "restore":
            staged = not {"--staged", "-S"}.isdisjoint(rest)
            only = staged and {"--worktree", "-W"}.isdisjoint(rest)
            return WrittenPaths() if only else WrittenPaths(paths)
        case "checkout" if behind is not None:
            return WrittenPaths(paths)
        case "checkout" | "switch":
            return WrittenPaths(unknown=_NEW.isdisjoint(rest) and bool(rest))
        case "reset":
            return WrittenPaths(unknown=not {"--hard", "--merge", "--keep"}.isdisjoint(rest))
        case "stash":
            return WrittenPaths(unknown=not rest or rest[0] not in _KEPT)
        case "clean" | "apply":
            return WrittenPaths(unknown=_LOOKS.isdisjoint(rest))
        case "submodule":
            return WrittenPaths(unknown="update" in rest)
        case _:
            return WrittenPaths(unknown=name in _ALWAYS)
