"""Fetches commits with a bounded part of their history.

`git fetch --depth=50` counts levels of the commit graph: in a repository with many merged branches,
50 levels hold thousands of commits. Here, history is measured in first-parent commits. The commit
graph is read first, into a temporary partial clone without trees and files. Commits are selected
from it, and one fetch then brings exactly these, with all their files. The selected history ends at
an ordinary shallow boundary: https://git-scm.com/docs/shallow

The host's clone is never a partial clone. No object of a fetched commit is missing, so no git
command that works in the clone has to access the network.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from resolver.config.temporary_directory import temporary_directory
from resolver.git.clone_cache import CloneCache
from resolver.git.git import Credential, HostGit, create_bare_repository
from resolver.git.remote import LinearHistory, fetch

LEVELS_PER_REQUEST = 25
"""Levels of the commit graph that one request reads.

A larger number brings more side branches, most of which are not selected; a smaller one takes more
requests.
"""

MAX_GRAPH_REQUESTS = 4
"""Maximum number of requests that read the commit graph."""
MAX_MERGED_PER_COMMIT = 2
"""Maximum number of commits of side branches per first-parent commit."""

MAX_PULL_REQUEST_COMMITS = 300
"""Maximum number of a pull request's own commits that are fetched."""

MAX_GROWTH = 1.25
"""Growth limit for fetching history from a server that can't leave out trees.

The clone is deepened while its size is at most this multiple of its size with one commit. The limit
is low because each step is larger than the ones before it.
"""

_DEEPEN_OPTIONS = (["--deepen=500"], ["--unshallow"])
"""Fetch options tried in turn if the graph is too shallow to show the merge base of two commits."""


@dataclass(frozen=True)
class Remote:
    """A repository to fetch from.

    supports_filters: True if the server supports shallow and filtered fetches.
    cache: clones of earlier runs, in which commits are looked up before the server is asked.
    """

    url: str
    credential: Credential | None = None
    supports_filters: bool = False
    cache: CloneCache | None = None


@dataclass(frozen=True)
class Tip:
    """A commit to fetch, and the ref to fetch it to.

    ref: the ref to write in the clone.
    commit: id of the commit.
    name: the ref of the server that points to the commit, or the commit's id.
    commits: number of first-parent commits of history, 0 for all.
    """

    ref: str
    commit: str
    name: str
    commits: int


@dataclass(frozen=True)
class CommitGraph:
    """Commits whose history can be listed.

    git: in a repository that has them.
    chains: the newest first-parent commits of each tip, by its ref; see `first_parents`.
    """

    git: HostGit
    chains: Mapping[str, Mapping[str, int]]


@dataclass
class Selection:
    """The commits to fetch.

    interior: commits whose parents are fetched too.
    boundary: commits where the history ends.
    """

    interior: set[str] = field(default_factory=set)
    boundary: set[str] = field(default_factory=set)

    def close(self, graph: HostGit, tips: Sequence[str]) -> None:
        """Complete the boundary: then every parent and tip is in `interior` or in `boundary`."""
        # The graph doesn't contain the parents of its shallow commits, so they can't be selected.
        self.interior -= read_shallow(graph)
        listing = "".join(f"{commit}\n" for commit in sorted(self.interior)).encode()
        args = ("rev-list", "--no-walk=unsorted", "--parents", "--stdin")
        rows = graph.text(*args, stdin=listing).split("\n") if self.interior else []
        parents = {parent for row in rows for parent in row.split()[1:]}
        self.boundary = (parents | self.boundary | set(tips)) - self.interior


def fetch_tips(git: HostGit, remote: Remote, tips: Sequence[Tip]) -> None:
    """Fetch the tips, each with its history. Raises WorkspaceError if a fetch fails."""
    if any(tip.commits == 0 for tip in tips):
        _fetch_by_name(git, remote, tips, [])
    elif all(tip.commits == 1 for tip in tips):
        _fetch_by_name(git, remote, tips, ["--depth=1"])
    elif remote.supports_filters:
        with remote_graph(remote, tips) as graph:
            fetch_selected(git, remote, tips, select_commits(graph, tips))
    else:
        _fetch_in_steps(git, remote, tips)


def fetch_pull_request(
    git: HostGit,
    remote: Remote,
    head: Tip,
    base: Tip,
    others: Sequence[Tip],
    *,
    for_merge: bool = False,
) -> str | None:
    """Fetch the head of a pull request with its own commits, the tip of its base, and other tips.

    for_merge: fetch all commits of both sides since their merge base, so that git merges them as it
    would with all of their history.

    Returns the merge base of head and base, or None if they have no common history. Raises
    WorkspaceError if a fetch fails.
    """
    tips = [*others, base, head]
    if not remote.supports_filters or any(tip.commits == 0 for tip in tips):
        fetch_tips(git, remote, [replace(tip, commits=0) for tip in tips] if for_merge else tips)
        return _find_merge_base(git, remote, base, head, tips)
    with remote_graph(remote, tips) as graph:
        shallow = read_shallow(graph.git)
        merge_base = _find_merge_base(
            graph.git, remote, base, head, tips, "--filter=tree:0", for_merge=for_merge
        )
        if read_shallow(graph.git) != shallow:
            graph = CommitGraph(graph.git, _read_chains(graph.git, tips))
        selection = select_commits(graph, tips)
        if merge_base is not None:
            sides = [head.commit, base.commit] if for_merge else [head.commit]
            limit_option = () if for_merge else (f"--max-count={MAX_PULL_REQUEST_COMMITS}",)
            commits = graph.git.text("rev-list", *limit_option, *sides, f"^{merge_base}")
            selection.interior |= set(commits.split())
            selection.boundary.add(merge_base)
            selection.close(graph.git, [tip.commit for tip in tips])
        fetch_selected(git, remote, tips, selection)
    # Two branches that were merged into each other may have several merge bases, which git merges
    # first. That takes older history, up to the merge base of the merge bases, and so on.
    if for_merge and read_shallow(git) and _merge_bases(git, base, head) != [merge_base]:
        _fetch_by_name(git, remote, tips, ["--unshallow"])
    return merge_base


def fetch_successor(git: HostGit, remote: Remote, tip: Tip, start: str) -> None:
    """Fetch the newer tip of a branch, with the history back to the ref `start` if there is one.

    A plain fetch into a shallow clone would bring the whole history of each branch that was merged
    in between and that began before the clone's shallow boundary. Raises WorkspaceError if a fetch
    fails.
    """
    if read_shallow(git) and not _missing_commits(git, {tip.commit}):
        git.run("update-ref", "--no-deref", tip.ref, tip.commit)
        return
    if read_shallow(git) and remote.supports_filters:
        with remote_graph(remote, [tip]) as graph:
            chain = graph.chains[tip.ref]
            missing = _missing_commits(git, set(chain))
            # Count up to the newest first-parent commit that the clone has already.
            count = next(
                (n for n, commit in enumerate(chain, 1) if commit not in missing), len(chain)
            )
            tip = replace(tip, commits=count)
            newer_graph = CommitGraph(graph.git, {tip.ref: dict(list(chain.items())[:count])})
            fetch_selected(git, remote, [tip], select_commits(newer_graph, [tip]))
        if git.attempt("merge-base", "--is-ancestor", start, tip.ref).status == 0:
            return
    _fetch_by_name(git, remote, [tip], [])


def _find_merge_base(
    git: HostGit,
    remote: Remote,
    base: Tip,
    head: Tip,
    tips: Sequence[Tip],
    *options: str,
    for_merge: bool = False,
) -> str | None:
    """Return the merge base of base and head, deepening a shallow history if it shows none.

    options: further options of the fetches that deepen it. for_merge: deepen it also if a commit
    since the merge base is missing.
    """

    def find() -> str | None:
        merge_bases = _merge_bases(git, base, head)
        if not merge_bases or not for_merge:
            return merge_bases[0] if merge_bases else None
        commits_since = git.text(
            "rev-list", head.commit, base.commit, *(f"^{commit}" for commit in merge_bases)
        )
        return None if read_shallow(git) & set(commits_since.split()) else merge_bases[0]

    merge_base = find()
    for deepen_options in _DEEPEN_OPTIONS:
        if merge_base is None and read_shallow(git):
            _fetch_by_name(git, remote, tips, [*deepen_options, *options])
            merge_base = find()
    return merge_base


def _merge_bases(git: HostGit, base: Tip, head: Tip) -> list[str]:
    result = git.attempt("merge-base", "--all", base.commit, head.commit)
    return result.stdout.decode().split() if result.status == 0 else []


@contextmanager
def remote_graph(remote: Remote, tips: Sequence[Tip]) -> Iterator[CommitGraph]:
    """Yield the newest commits of the tips, in a temporary repository that has no trees.

    The repository is a partial clone (https://git-scm.com/docs/partial-clone): `--filter=tree:0`
    makes the server leave out all trees and files. Git would fetch them on demand, so the
    repository is used only to list commits, and then deleted.

    The filter is an argument of the fetch command of protocol version 2:
    https://git-scm.com/docs/gitprotocol-v2#_fetch
    """
    with temporary_directory() as folder:
        graph = create_bare_repository(folder / "graph.git", sha256=len(tips[0].commit) == 64)
        requested = {tip.ref: tip.commit for tip in tips}
        # Each round continues behind the oldest first-parent commit of each tip whose history is
        # still too short, so the graph grows along first parents and not along side branches.
        for _ in range(MAX_GRAPH_REQUESTS):
            refspecs = [f"+{commit}:{ref}" for ref, commit in requested.items()]
            options = [f"--depth={LEVELS_PER_REQUEST}", "--filter=tree:0"]
            fetch(graph, remote.url, refspecs, options, remote.credential)
            shallow = read_shallow(graph)
            chains = _read_chains(graph, tips)
            oldest = {ref: list(chain)[-1] for ref, chain in chains.items()}
            requested = {
                f"{tip.ref}-behind": oldest[tip.ref]
                for tip in tips
                if len(chains[tip.ref]) < tip.commits and oldest[tip.ref] in shallow
            }
            if not requested:
                break
        yield CommitGraph(graph, chains)


def select_commits(graph: CommitGraph, tips: Sequence[Tip]) -> Selection:
    """Return the commits to fetch for the tips.

    These are the first-parent commits of each tip and the newest commits merged by them, which are
    at least as new as the oldest selected first-parent commit.
    """
    interior: set[str] = set()
    oldest_commits: set[str] = set()
    merged_commits: set[str] = set()
    for tip in tips:
        chain = graph.chains[tip.ref]
        oldest = list(chain)[-1]
        is_truncated = len(chain) == tip.commits
        interior |= set(chain) - ({oldest} if is_truncated else set())
        oldest_commits |= {oldest} if is_truncated else set()
        if tip.commits > 1:
            count = len(chain) * (1 + MAX_MERGED_PER_COMMIT)
            limits = (f"--max-age={chain[oldest]}", f"--max-count={count}")
            merged_commits |= set(graph.git.text("rev-list", *limits, tip.commit).split())
    selection = Selection(interior | (merged_commits - oldest_commits))
    selection.close(graph.git, [tip.commit for tip in tips])
    return selection


def select_linear(history: LinearHistory, count: int) -> Selection | None:
    """Return the newest `count` commits of a branch, None if they are not all known."""
    commits = history.commits[:count]
    if len(commits) == count:
        return Selection(set(commits[:-1]), {commits[-1]})
    return Selection(set(commits)) if history.has_root else None


def fetch_selected(git: HostGit, remote: Remote, tips: Sequence[Tip], selection: Selection) -> None:
    """Fetch the selected commits with all their files, and set the clone's shallow boundary."""
    missing = _missing_commits(git, selection.interior | selection.boundary)
    if remote.cache is not None:
        remote.cache.fetch(git, remote.url, missing)
        missing = _missing_commits(git, missing)
    commit_by_ref = {tip.ref: tip.commit for tip in tips}
    refspecs = [f"+{commit}:{ref}" for ref, commit in commit_by_ref.items() if commit in missing]
    refspecs += sorted(missing - set(commit_by_ref.values()))
    if refspecs:
        # Every selected commit is requested by its id with depth 1, which makes each one a shallow
        # boundary. Commits whose parents were fetched too are removed from the `shallow` file
        # afterwards, which joins the single commits to a history.
        fetch(git, remote.url, refspecs, ["--depth=1"], remote.credential)
    unchanged = {ref: commit for ref, commit in commit_by_ref.items() if commit not in missing}
    if unchanged:  # the fetch has written the others
        lines = "".join(f"update {ref} {commit}\n" for ref, commit in unchanged.items())
        git.run("update-ref", "--no-deref", "--stdin", stdin=lines.encode())
    _write_shallow(git, read_shallow(git) - selection.interior)
    if remote.cache is not None and refspecs:
        remote.cache.keep(git, remote.url)


def first_parents(git: HostGit, commit: str, count: int) -> dict[str, int]:
    """Return up to `count` first-parent commits from `commit` on, newest first.

    The values are the commits' dates in seconds since 1970.
    """
    args = ("rev-list", "--first-parent", "--timestamp", f"--max-count={count}", commit)
    rows = (line.split() for line in git.text(*args).splitlines())
    return {id: int(date) for date, id in rows}


def _read_chains(git: HostGit, tips: Sequence[Tip]) -> dict[str, dict[str, int]]:
    return {tip.ref: first_parents(git, tip.commit, tip.commits) for tip in tips}


def read_shallow(git: HostGit) -> set[str]:
    """Return the ids of the commits at the shallow boundary."""
    path = _shallow_file(git)
    return set(path.read_text("ascii").split()) if path.is_file() else set()


def _write_shallow(git: HostGit, commits: set[str]) -> None:
    """Write the `shallow` file, which lists the commits that git treats as having no parents."""
    path = _shallow_file(git)
    if not commits:
        path.unlink(missing_ok=True)
        return
    new_file = path.with_name("shallow.new")
    new_file.write_text("".join(f"{commit}\n" for commit in sorted(commits)), "ascii")
    new_file.replace(path)


def _shallow_file(git: HostGit) -> Path:
    if git.git_dir is not None:
        return git.git_dir / "shallow"
    path = git.text("rev-parse", "--path-format=absolute", "--git-path", "shallow")
    return Path(path)


def _missing_commits(git: HostGit, commits: set[str]) -> set[str]:
    """Return those of the commits that the clone doesn't have."""
    listing = "".join(f"{commit}\n" for commit in sorted(commits)).encode()
    rows = git.text("cat-file", "--batch-check=%(objectname)", stdin=listing).splitlines()
    return {line.split()[0] for line in rows if line.endswith(" missing")}


def _fetch_by_name(
    git: HostGit, remote: Remote, tips: Sequence[Tip], options: Sequence[str]
) -> None:
    # A tip is fetched by its ref if the ref points to it: not every server serves commits by id
    # (`uploadpack.allowReachableSHA1InWant`, https://git-scm.com/docs/git-config).
    refspecs = [f"+{tip.name}:{tip.ref}" for tip in tips]
    fetch(git, remote.url, refspecs, options, remote.credential)


def _fetch_in_steps(git: HostGit, remote: Remote, tips: Sequence[Tip]) -> None:
    """Fetch one commit of each tip, then deepen while the clone stays below the growth limit."""
    _fetch_by_name(git, remote, tips, ["--depth=1"])
    max_size = _objects_size(git) * MAX_GROWTH
    depth, max_depth = 1, max(tip.commits for tip in tips)
    while read_shallow(git) and depth < max_depth and _objects_size(git) <= max_size:
        step = min(2 * depth, max_depth - depth)
        _fetch_by_name(git, remote, tips, [f"--deepen={step}"])
        depth += step


def _objects_size(git: HostGit) -> int:
    """Return the size of the objects in KiB."""
    counts = _parse_counts(git.text("count-objects", "-v"))
    return counts["size"] + counts["size-pack"]


def _parse_counts(text: str) -> Mapping[str, int]:
    rows = (line.split(": ", 1) for line in text.splitlines())
    return {name: int(value) for name, value in rows if value.isdigit()}
