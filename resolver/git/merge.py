"""Two commits of the host's clone brought together by git's own merge: objects in, objects out.
Nothing is checked out, no file's own merge driver runs, and what can't be merged is named.

Source: https://git-scm.com/docs/git-merge-tree (as of git 2.39)
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resolver.errors import WorkspaceError
from resolver.git.clone import check_commit
from resolver.git.git import HostGit, failure
from resolver.git.tree import GITLINK, read_blobs, read_tree
from resolver.models.run import Kept

MARKERS = (b"<<<<<<<", b"|||||||", b">>>>>>>")
"""What the lines begin with that git puts around two versions it can't bring together."""

BETWEEN = b"======="
"""The line that git puts between them."""

MOST_NOTES = 200
"""Words of git about one merge that are kept."""

# Without a name and a moment of its own, the same merge is the same commit wherever it is made.
_NOBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Resolver"), ("EMAIL", "resolver@localhost"), ("DATE", "@0 +0000"))
}
_MERGE = ("merge-tree", "--write-tree", "-z", "--name-only")


@dataclass(frozen=True)
class MergeResult:
    """What a merge gives. tree: with conflict markers where files are in conflict. conflicts: their
    paths, as git keeps them. notes: what git says of each, one line."""

    tree: str
    conflicts: tuple[bytes, ...] = ()
    notes: tuple[str, ...] = ()


def merge(git: HostGit, ours: str, theirs: str) -> MergeResult:
    """The merge of two commits, as git makes it. Raises WorkspaceError when they have no history in
    common. Markers name the two by these ids."""
    args = (*_MERGE, check_commit(ours), check_commit(theirs))
    done = git.attempt(*args)
    if done.status not in (0, 1):
        raise failure(args, done, f"merging {theirs[:12]} into {ours[:12]}")
    fields = done.stdout.split(b"\0")
    tree = check_commit(fields[0].decode("ascii", "replace").strip())
    if done.status == 0:
        return MergeResult(tree)
    end = fields.index(b"", 1)
    notes = tuple(_notes(fields[end + 1 :]))[:MOST_NOTES]
    return MergeResult(tree, tuple(dict.fromkeys(fields[1:end])), notes)


def _notes(fields: list[bytes]) -> Iterator[str]:
    """The messages about conflicts. A record is a count, so many paths, a kind, and the words."""
    at = 0
    while at < len(fields) and fields[at].isdigit():
        kind = at + 1 + int(fields[at])
        if kind + 1 >= len(fields):
            return
        if fields[kind].startswith(b"CONFLICT"):
            yield " ".join(fields[kind + 1].decode("utf-8", "replace").split())
        at = kind + 2


def replay_commits(git: HostGit, base: str, tree: str, onto: str) -> MergeResult:
    """The change from `base` to `tree`, made on top of the commit `onto`.

    As git's rebase does it: a merge in which `base` is where the two parted, whatever their history
    says.
    """
    root = _commit(git, f"{check_commit(base)}^{{tree}}")
    left = _commit(git, f"{check_commit(onto)}^{{tree}}", root)
    return merge(git, left, _commit(git, check_commit(tree), root))


def unfinished(git: HostGit, merged: MergeResult, ours: str, theirs: str) -> str:
    """A commit of the merge as it is, markers included, for somebody to resolve them on top of.

    Its parents are the two; nobody ever publishes it. The same merge gives the same commit.
    """
    return _commit(git, merged.tree, ours, theirs)


def _commit(git: HostGit, tree: str, *parents: str) -> str:
    given = [part for parent in parents for part in ("-p", check_commit(parent))]
    found = git.text("rev-parse", "--verify", tree)
    args = ("commit-tree", "--no-gpg-sign", *given, "-m", "merge", found)
    return git.run(*args, environment=_NOBODY).decode().strip()


def is_ancestor(git: HostGit, earlier: str, later: str) -> bool:
    """Whether `later` holds `earlier`, or is it. False also where the clone does not know."""
    given = (check_commit(earlier), check_commit(later))
    return git.attempt("merge-base", "--is-ancestor", *given).status == 0


def merge_base(git: HostGit, one: str, other: str) -> str | None:
    """The commit where the histories of two parted; None where the clone knows of none."""
    found = git.attempt("merge-base", check_commit(one), check_commit(other))
    return found.stdout.decode().strip() if found.status == 0 else None


def unresolved(
    git: HostGit, merged: MergeResult, tree: str, ours: str, theirs: str
) -> tuple[bytes, ...]:
    """Paths of `tree` in which a conflict of the merge is still as git left it: a line that is a
    marker, or a file that git put beside its place."""
    names = (ours.encode(), theirs.encode())
    suffixes = tuple(b"~" + name for name in names)
    entries = {e.path: e.id for e in read_tree(git, tree) if e.mode != GITLINK}
    before = {e.path: e.id for e in read_tree(git, merged.tree) if e.mode != GITLINK}
    left = {path for path in entries if any(part.endswith(suffixes) for part in path.split(b"/"))}
    known = _were_there(git, (ours, theirs), merged.conflicts)
    anywhere = frozenset[bytes]().union(*known.values())
    contents: dict[str, list[bytes]] = {}
    for path, blob in entries.items():
        if path in merged.conflicts or before.get(path) != blob:
            contents.setdefault(blob, []).append(path)
    for blob, data in read_blobs(git, contents):
        for line in _markers(data):
            named = any(name in line for name in names)
            left |= {
                path
                for path in contents[blob]
                if named or (path in merged.conflicts and line not in known.get(path, anywhere))
            }
    return tuple(sorted(left))


def _were_there(
    git: HostGit, commits: Iterable[str], paths: tuple[bytes, ...]
) -> dict[bytes, set[bytes]]:
    """What looks like a marker and was in these files before, by path: it may stay there."""
    found: dict[bytes, set[bytes]] = {}
    for commit in commits:
        entries = [e for e in read_tree(git, commit) if e.path in paths and e.mode != GITLINK]
        markers = {id: set(_markers(data)) for id, data in read_blobs(git, {e.id for e in entries})}
        for entry in entries:
            found.setdefault(entry.path, set()).update(markers[entry.id])
    return found


def _markers(data: bytes) -> Iterator[bytes]:
    for line in data.splitlines():
        is_marker = line.startswith(MARKERS) and line[7:8] in (b"", b" ")
        if is_marker or line == BETWEEN:
            yield line.rstrip()


@dataclass(frozen=True)
class SettledFile:
    """How the conflict of a path has ended. kept: whose version is there. untouched: it is as git
    left it."""

    path: bytes
    kept: Kept
    untouched: bool


def settled_conflicts(
    git: HostGit, merged: MergeResult, tree: str, ours: str, theirs: str
) -> tuple[SettledFile, ...]:
    """How each conflict of the merge has ended in `tree`. A path that neither side has, and git did
    not keep, is none."""
    now, left, own, other = (
        {e.path: (e.mode, e.id) for e in read_tree(git, each)}
        for each in (tree, merged.tree, ours, theirs)
    )
    found = []
    for path in merged.conflicts:
        entry = now.get(path)
        if entry is None and not any(path in side for side in (left, own, other)):
            continue
        kept: Kept = "merged"
        if entry is None:
            kept = "deleted"
        elif entry == own.get(path):
            kept = "ours"
        elif entry == other.get(path):
            kept = "theirs"
        found.append(SettledFile(path, kept, entry == left.get(path)))
    return tuple(found)


def taken_over(git: HostGit, merged: MergeResult, tree: str, theirs: str) -> frozenset[bytes]:
    """Paths in conflict whose every bit in `tree` is what `theirs` has there, or hasn't: nothing in
    them is of whoever resolved the merge."""
    there = {e.path: (e.mode, e.id) for e in read_tree(git, theirs)}
    now = {e.path: (e.mode, e.id) for e in read_tree(git, tree)}
    return frozenset(p for p in merged.conflicts if there.get(p) == now.get(p))


def format_patch(git: HostGit, commit: str, limit: int) -> bytes | None:
    """The commit as `git am` takes it; None when that has more than `limit` bytes."""
    args = (
        "format-patch", "--stdout", "--no-signature", "--binary", "--full-index", "--no-renames",
        "--no-ext-diff", "--no-textconv", "--no-color", "--no-attach", "-1", check_commit(commit),
    )  # fmt: skip
    done = git.attempt(*args, limit=limit)
    if done.truncated:
        return None
    if done.status != 0:
        raise WorkspaceError(f"the change can't be shown: {done.stderr.strip()[-500:]}")
    return done.stdout
