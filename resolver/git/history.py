"""Fetches commits with a bounded part of their history, and deepens it up to a merge base.

The history ends at an ordinary shallow boundary: https://git-scm.com/docs/shallow. The host's clone
is never a partial clone: no object of a fetched commit is missing, so no git command that works in
the clone has to access the network.
"""

from collections.abc import Sequence
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


@dataclass(frozen=True)
class Tip:
    """A commit to fetch, and the ref to fetch it to.

    ref: the ref to write in the clone.
    commit: id of the commit. It is fetched by its id, which every server allows that has version 2
        of git's protocol: the branch may move at any moment.
    levels: number of levels of the commit graph that are fetched, 0 for all.
    """

    ref: str
    commit: str
    levels: int


def fetch_tips(git: HostGit, remote: Remote, tips: Sequence[Tip]) -> None:
    """Fetch the tips, each with as much history as the one with the most. Raises WorkspaceError if
    a fetch fails."""
    levels = 0 if any(tip.levels == 0 for tip in tips) else max(tip.levels for tip in tips)
    options = [f"--depth={levels}"] if levels else []
    if remote.cache is not None:
        commits = {tip.ref: tip.commit for tip in tips}
        if remote.cache.fetch(git, remote.url, commits, options, remote.credential):
            return
    _fetch(git, remote, tips, options)


def fetch_pull_request(
    git: HostGit,
    remote: Remote,
    head: Tip,
    base: Tip,
    others: Sequence[Tip],
    *,
    for_merge: bool = False,
) -> str | None:
    """Fetch the head of a pull request, the tip of its base, and other tips.

    for_merge: fetch all commits of both sides since their merge base, so that git merges them as it
    would with all of their history.

    Returns the merge base of head and base, or None if they have no common history. Raises
    WorkspaceError if a fetch fails.
    """
    tips = [*others, base, head]
    fetch_tips(git, remote, tips)
    merge_base = _find_merge_base(git, base, head, for_merge=for_merge)
    for options in _DEEPEN_OPTIONS:
        if merge_base is None and _read_shallow(git):
            _fetch(git, remote, tips, options)
            merge_base = _find_merge_base(git, base, head, for_merge=for_merge)
    return merge_base


def fetch_successor(git: HostGit, remote: Remote, tip: Tip, start: str) -> None:
    """Fetch the newer tip of a branch, with the history back to the ref `start` if there is one.

    Raises WorkspaceError if a fetch fails.
    """
    is_shallow = bool(_read_shallow(git))
    _fetch(git, remote, [tip], [f"--depth={tip.levels}"] if is_shallow else [])
    if is_shallow and git.attempt("merge-base", "--is-ancestor", start, tip.ref).status != 0:
        # It has moved further, or was rewritten.
        _fetch(git, remote, [tip], _DEEPEN_OPTIONS[0])


def _find_merge_base(git: HostGit, base: Tip, head: Tip, *, for_merge: bool) -> str | None:
    """Return the merge base of base and head, None if the history is too short to show it.

    for_merge: it is also too short if a commit since the merge base is missing. Two branches that
    were merged into each other may have several merge bases, which git merges first; that takes
    older history, up to the merge base of the merge bases, and so on.
    """
    result = git.attempt("merge-base", "--all", base.commit, head.commit)
    merge_bases = result.stdout.decode().split() if result.status == 0 else []
    shallow = _read_shallow(git) if for_merge else set()
    if not merge_bases or (shallow and len(merge_bases) > 1):
        return None
    since = ("rev-list", head.commit, base.commit, f"^{merge_bases[0]}")
    return None if shallow & set(git.text(*since).split()) else merge_bases[0]


def _read_shallow(git: HostGit) -> set[str]:
    """Return the ids of the commits at the shallow boundary."""
    path = git.git_dir / "shallow" if git.git_dir else None
    return set(path.read_text("ascii").split()) if path and path.is_file() else set()


def _fetch(git: HostGit, remote: Remote, tips: Sequence[Tip], options: Sequence[str]) -> None:
    refspecs = [f"+{tip.commit}:{tip.ref}" for tip in tips]
    fetch(git, remote.url, refspecs, options, remote.credential)
