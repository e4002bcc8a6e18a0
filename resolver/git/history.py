"""Fetches commits with a bounded part of their history, and deepens it up to a merge base.

The history ends at an ordinary shallow boundary: https://git-scm.com/docs/shallow. The host's clone
is never a partial clone: no object of a fetched commit is missing, so no git command that works in
the clone has to access the network.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from resolver.git.clone_cache import CloneCache
from resolver.git.git import Credential, HostGit
from resolver.git.remote import fetch

HISTORY_LEVELS = 20
"""Levels of the commit graph that a run has, as `git clone --depth` counts them."""

NEWER_LEVELS = 50
"""Levels of the commit graph that are fetched of a branch that has moved on."""

_DEEPEN_OPTIONS = (["--deepen=500"], ["--unshallow"])
"""Fetch options tried in turn if the history is too short for the merge base of two commits."""


@dataclass(frozen=True)
class Remote:
    """A repository to fetch from.

    cache: clones of earlier runs, through which the first commits are fetched.
    """

    url: str
    credential: Credential | None = None
    cache: CloneCache | None = None


def fetch_commits(
    git: HostGit, remote: Remote, commits: Mapping[str, str], depth: int = HISTORY_LEVELS
) -> None:
    """Fetch commits to refs of the clone. Raises WorkspaceError if that fails.

    commits: their ids by ref. They are fetched by id, which every server allows that has version 2
        of git's protocol: a branch may move at any moment.
    depth: number of levels of the commit graph, 0 for all.
    """
    options = [f"--depth={depth}"] if depth else []
    if remote.cache is not None and remote.cache.fetch(
        git, remote.url, commits, options, remote.credential
    ):
        return
    _fetch(git, remote, commits, options)


def fetch_with_merge_base(
    git: HostGit,
    remote: Remote,
    commits: Mapping[str, str],
    base: str,
    head: str,
    depth: int = HISTORY_LEVELS,
    *,
    for_merge: bool = False,
) -> str | None:
    """Fetch commits, two of which are the head of a pull request and the tip of its base.

    for_merge: fetch all commits of both sides since their merge base, so that git merges them as it
    would with all of their history.

    Returns the merge base of head and base, or None if they have no common history. Raises
    WorkspaceError if a fetch fails.
    """
    fetch_commits(git, remote, commits, depth)
    merge_base = _find_merge_base(git, base, head, for_merge=for_merge)
    for options in _DEEPEN_OPTIONS:
        if merge_base is None and _read_shallow(git):
            _fetch(git, remote, commits, options)
            merge_base = _find_merge_base(git, base, head, for_merge=for_merge)
    return merge_base


def fetch_successor(git: HostGit, remote: Remote, ref: str, commit: str, start: str) -> None:
    """Fetch the newer tip of a branch, with the history back to the ref `start` if there is one.

    Raises WorkspaceError if a fetch fails.
    """
    is_shallow = bool(_read_shallow(git))
    _fetch(git, remote, {ref: commit}, [f"--depth={NEWER_LEVELS}"] if is_shallow else [])
    if is_shallow and git.attempt("merge-base", "--is-ancestor", start, ref).status != 0:
        # It has moved further, or was rewritten.
        _fetch(git, remote, {ref: commit}, _DEEPEN_OPTIONS[0])


def _find_merge_base(git: HostGit, base: str, head: str, *, for_merge: bool) -> str | None:
    """Return the merge base of base and head, None if the history is too short to show it.

    for_merge: it is also too short if a commit since the merge base is missing. Two branches that
    were merged into each other may have several merge bases, which git merges first; that takes
    older history, up to the merge base of the merge bases, and so on.
    """
    result = git.attempt("merge-base", "--all", base, head)
    merge_bases = result.stdout.decode().split() if result.status == 0 else []
    shallow = _read_shallow(git) if for_merge else set()
    if not merge_bases or (shallow and len(merge_bases) > 1):
        return None
    since = ("rev-list", head, base, f"^{merge_bases[0]}")
    return None if shallow & set(git.text(*since).split()) else merge_bases[0]


def _read_shallow(git: HostGit) -> set[str]:
    """Return the ids of the commits at the shallow boundary."""
    path = git.git_dir / "shallow" if git.git_dir else None
    return set(path.read_text("ascii").split()) if path and path.is_file() else set()


def _fetch(
    git: HostGit, remote: Remote, commits: Mapping[str, str], options: Sequence[str]
) -> None:
    refspecs = [f"+{commit}:{ref}" for ref, commit in commits.items()]
    fetch(git, remote.url, refspecs, options, remote.credential)
