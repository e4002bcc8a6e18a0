"""Merges two commits of the host's clone with git's own merge machinery, without a checkout.

`git merge-tree --write-tree` reads objects and writes objects: it needs no index and no working
tree, so no hook, filter or merge driver of the repository runs. Its exit code is 0 for a clean
merge and 1 for conflicts. In both cases it prints the id of a tree, which contains conflict markers
if there are conflicts.

Source: https://git-scm.com/docs/git-merge-tree (as of git 2.39)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from resolver.errors import WorkspaceError
from resolver.git.clone import check_commit
from resolver.git.git import HostGit, git_failure
from resolver.git.tree import quote, read_tree
from resolver.models.run import ConflictResolution, ResolvedConflict
from resolver.security.invisible_text import with_invisible_shown

_SIDE_MARKER = r"^(<{7,}|\|{7,}|>{7,})"
_MARKER = _SIDE_MARKER + r"( |[[:space:]]*$)|^={7}[[:space:]]*$"
"""Extended regular expressions of git for the lines that it writes around and between the versions
of a conflict."""

MAX_NOTES = 200
"""Maximum number of git's messages about one merge that are kept."""

# A commit's id depends on its author, committer and dates. With fixed ones, the same merge has the
# same id wherever and whenever it is made.
_FIXED_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Resolver"), ("EMAIL", "resolver@localhost"), ("DATE", "@0 +0000"))
}
_MERGE_COMMAND = ("merge-tree", "--write-tree", "-z", "--name-only")


@dataclass(frozen=True)
class MergeResult:
    """The result of a merge.

    tree: id of the merged tree. Files in conflict contain conflict markers.
    conflicts: paths of the files in conflict, as raw bytes.
    notes: git's messages about the conflicts, one line each.
    """

    tree: str
    conflicts: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()


def merge(git: HostGit, ours: str, theirs: str) -> MergeResult:
    """Merge two commits and return the result.

    Conflict markers name the two sides by these ids. Raises WorkspaceError if the commits have no
    common history.
    """
    args = (*_MERGE_COMMAND, check_commit(ours), check_commit(theirs))
    result = git.attempt(*args)
    if result.status not in (0, 1):
        raise git_failure(args, result, f"merging {theirs[:12]} into {ours[:12]}")
    # With -z and --name-only: the tree, the paths in conflict, an empty field, the messages.
    fields = result.stdout.split(b"\0")
    tree = check_commit(fields[0].decode("ascii", "replace").strip())
    if result.status == 0:
        return MergeResult(tree)
    paths_end = fields.index(b"", 1)
    notes = tuple(_notes(fields[paths_end + 1 :]))[:MAX_NOTES]
    return MergeResult(tree, tuple(dict.fromkeys(fields[1:paths_end])), notes)


def _notes(fields: list[bytes]) -> Iterator[str]:
    """Yield the messages about conflicts.

    A record consists of a number, that many paths, a type such as "CONFLICT (contents)", and the
    message. Informational records such as "Auto-merging" are skipped.
    """
    position = 0
    while position < len(fields) and fields[position].isdigit():
        type_position = position + 1 + int(fields[position])
        if type_position + 1 >= len(fields):
            return
        if fields[type_position].startswith(b"CONFLICT"):
            yield " ".join(fields[type_position + 1].decode("utf-8", "replace").split())
        position = type_position + 2


def replay_commits(git: HostGit, base: str, tree: str, onto: str) -> MergeResult:
    """Apply the change from `base` to `tree` on top of the commit `onto`.

    As in a rebase, this is a three-way merge with `base` as the merge base, whatever the history of
    the commits says.
    """
    # git 2.39 has no `merge-tree --merge-base`; merge-tree computes the merge base from the
    # history. Three commits with an artificial history make it find the right one: a root with the
    # tree of `base`, and the two sides as its children. No ref ever points to them.
    root = _commit(git, f"{check_commit(base)}^{{tree}}")
    our_commit = _commit(git, f"{check_commit(onto)}^{{tree}}", root)
    return merge(git, our_commit, _commit(git, check_commit(tree), root))


def commit_unfinished_merge(git: HostGit, merged: MergeResult, ours: str, theirs: str) -> str:
    """Return a commit of the merge including its conflict markers, for somebody to resolve them.

    Its parents are the two merged commits. It is never published. The same merge gives the same
    commit.
    """
    return _commit(git, merged.tree, ours, theirs)


def _commit(git: HostGit, tree: str, *parents: str) -> str:
    """Return the id of a commit of the tree with the given parents and a fixed author and date."""
    parent_options = [part for parent in parents for part in ("-p", check_commit(parent))]
    tree_id = git.text("rev-parse", "--verify", tree)
    args = ("commit-tree", "--no-gpg-sign", *parent_options, "-m", "merge", tree_id)
    return git.run(*args, environment=_FIXED_IDENTITY).decode().strip()


def is_ancestor(git: HostGit, earlier: str, later: str) -> bool:
    """Return True if `earlier` is `later` or an ancestor of it.

    Also returns False if the clone doesn't have enough history to tell.
    """
    commits = (check_commit(earlier), check_commit(later))
    return git.attempt("merge-base", "--is-ancestor", *commits).status == 0


def find_unresolved_paths(
    git: HostGit, merged: MergeResult, tree: str, ours: str, theirs: str
) -> tuple[bytes, ...]:
    """Return the paths of `tree` with a conflict of the merge that is still as git left it.

    These are files with a conflict marker, and files that git wrote under another name because
    their own was taken, such as `name~<commit>`. A marker that names one of the two commits is
    always left from this merge. Any other, such as `=======`, may be regular content (a heading in
    a README): it counts only in a file in conflict. Files that had a marker before count neither
    way.
    """
    suffixes = (b"~" + ours.encode(), b"~" + theirs.encode())
    renamed = {
        path
        for path in _entries(git, tree)
        if any(part.endswith(suffixes) for part in path.split(b"/"))
    }

    def find_new(marker: str) -> set[bytes]:
        found, *before = (_find_lines(git, marker, version) for version in (tree, ours, theirs))
        return found.difference(*before)

    named = find_new(f"{_SIDE_MARKER} ({ours}|{theirs})")
    in_conflict = find_new(_MARKER) & set(merged.conflicts)
    return tuple(sorted(renamed | named | in_conflict))


def _find_lines(git: HostGit, pattern: str, tree: str) -> set[bytes]:
    """Return the paths of the files of `tree` in which a line matches."""
    args = ("grep", "-z", "--files-with-matches", "--text", "-E", "-e", pattern, tree)
    result = git.attempt(*args)
    if result.status not in (0, 1):
        raise git_failure(args, result)
    prefix = tree.encode() + b":"
    return {name.removeprefix(prefix) for name in result.stdout.split(b"\0") if name}


def _entries(git: HostGit, tree: str) -> dict[bytes, tuple[str, str]]:
    """Return the mode and the id of each file of a tree by path."""
    return {entry.path: (entry.mode, entry.id) for entry in read_tree(git, tree)}


def find_conflict_resolutions(
    git: HostGit, merged: MergeResult, tree: str, ours: str, theirs: str
) -> tuple[ResolvedConflict, ...]:
    """Return how each conflict of the merge was resolved in `tree`.

    A path that is in neither side, nor in the merged tree, nor in `tree` is left out.
    """
    entries, in_merge, in_ours, in_theirs = (
        _entries(git, version) for version in (tree, merged.tree, ours, theirs)
    )
    files = []
    for path in merged.conflicts:
        entry = entries.get(path)
        kept: ConflictResolution = "merged"
        if entry is None:
            kept = "deleted"
        elif entry == in_ours.get(path):
            kept = "ours"
        elif entry == in_theirs.get(path):
            kept = "theirs"
        if any(path in version for version in (entries, in_merge, in_ours, in_theirs)):
            name, untouched = with_invisible_shown(quote(path)), entry == in_merge.get(path)
            files.append(ResolvedConflict(path=name, kept=kept, untouched=untouched))
    return tuple(files)


def find_paths_as_theirs(
    git: HostGit, merged: MergeResult, tree: str, theirs: str
) -> frozenset[bytes]:
    """Return the paths in conflict at which `tree` has exactly what `theirs` has.

    That includes paths that neither has. Nothing at these paths was written by whoever resolved the
    conflicts.
    """
    entries, in_theirs = _entries(git, tree), _entries(git, theirs)
    return frozenset(path for path in merged.conflicts if in_theirs.get(path) == entries.get(path))


def format_patch(git: HostGit, commit: str, limit: int) -> bytes | None:
    """Return the commit as a patch for `git am`, None if it has more than `limit` bytes."""
    args = (
        "format-patch", "--stdout", "--no-signature", "--binary", "--full-index", "--no-renames",
        "--no-ext-diff", "--no-textconv", "--no-color", "--no-attach", "-1", check_commit(commit),
    )  # fmt: skip
    result = git.attempt(*args, limit=limit)
    if result.truncated:
        return None
    if result.status != 0:
        raise WorkspaceError(f"the change can't be shown: {result.stderr.strip()[-500:]}")
    return result.stdout
