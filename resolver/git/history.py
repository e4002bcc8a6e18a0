"""Fetches a commit with its recent history, and only as much of it as is worth its bytes.

`git fetch --depth=50` counts levels of the commit graph: where branches are merged, 50 levels hold
thousands of commits. What is fetched here is counted in first-parent commits. The commit graph is
read first, without trees and files; then exactly the commits that were chosen are fetched, whole.
The boundary of the chosen history is git's ordinary shallow boundary:
https://git-scm.com/docs/shallow

The clone itself is never a partial one. Nothing of a chosen commit is missing, so no git command in
it ever has a reason to go to the network.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from resolver.config.temporary_directory import temporary_directory
from resolver.git.clone_cache import CloneCache
from resolver.git.git import Credential, HostGit, new_bare
from resolver.git.remote import fetch

LEVELS = 25
"""Levels of the commit graph that are read at once. More of them bring more side branches, most of
which end up unused; fewer take more requests."""

MOST_ROUNDS = 4
MOST_MERGED = 2
"""Commits of side branches that are fetched, for each first-parent commit."""

MOST_OF_PULL = 300
"""Commits of a pull request that are fetched."""

MOST_GROWTH = 1.25
"""Where a server can't leave out trees, history is fetched while the clone has not grown by more
than this since it held one commit: the next step is larger than those before it."""

_DEEPER = (["--deepen=500"], ["--unshallow"])
"""What is read of the commit graph when it is too shallow to show where two branches parted."""


@dataclass(frozen=True)
class Remote:
    """Where commits are fetched from. filters: whether the server can leave out trees and files.
    cache: where commits are looked for before they are fetched from there."""

    url: str
    credential: Credential | None = None
    filters: bool = False
    cache: CloneCache | None = None


@dataclass(frozen=True)
class Tip:
    """A commit that is fetched to the ref `ref`. name: the server's ref that holds it, or its id.

    commits: first-parent commits of history, 0 for all.
    """

    ref: str
    commit: str
    name: str
    commits: int


@dataclass
class Selection:
    """Commits to fetch. whole: commits whose parents are fetched, too. boundary: the commits where
    the history ends."""

    whole: set[str] = field(default_factory=set)
    boundary: set[str] = field(default_factory=set)

    def close(self, graph: HostGit, tips: Sequence[str]) -> None:
        """Let every parent that is not whole be at the boundary, and every tip be somewhere."""
        self.whole -= read_shallow(graph)
        listing = "".join(f"{commit}\n" for commit in sorted(self.whole)).encode()
        args = ("rev-list", "--no-walk=unsorted", "--parents", "--stdin")
        rows = graph.text(*args, stdin=listing).split("\n") if self.whole else []
        parents = {parent for row in rows for parent in row.split()[1:]}
        self.boundary = (parents | self.boundary | set(tips)) - self.whole


def fetch_tips(git: HostGit, remote: Remote, tips: Sequence[Tip]) -> None:
    """Fetch the tips, each with its history. Raises WorkspaceError."""
    if any(tip.commits == 0 for tip in tips):
        _fetch_by_name(git, remote, tips, [])
    elif all(tip.commits == 1 for tip in tips):
        _fetch_by_name(git, remote, tips, ["--depth=1"])
    elif remote.filters:
        with remote_graph(remote, tips) as graph:
            fetch_selected(git, remote, tips, select(graph, tips))
    else:
        _fetch_in_steps(git, remote, tips)


def fetch_pull_request(
    git: HostGit, remote: Remote, head: Tip, base: Tip, others: Sequence[Tip]
) -> str | None:
    """Fetch the head of a pull request with its own commits, the tip of its base, and other tips.

    Returns the commit where head and base parted, None when they have no common history. Raises
    WorkspaceError.
    """
    tips = [*others, base, head]
    if not remote.filters or any(tip.commits == 0 for tip in tips):
        fetch_tips(git, remote, tips)
        return _find_merge_base(git, remote, base, head, tips)
    with remote_graph(remote, tips) as graph:
        parted = _find_merge_base(graph, remote, base, head, tips, "--filter=tree:0")
        selection = select(graph, tips)
        if parted is not None:
            own = ("rev-list", f"--max-count={MOST_OF_PULL}", f"{parted}..{head.commit}")
            selection.whole |= set(graph.text(*own).split())
            selection.boundary.add(parted)
            selection.close(graph, [tip.commit for tip in tips])
        fetch_selected(git, remote, tips, selection)
        return parted


def fetch_successor(git: HostGit, remote: Remote, tip: Tip, start: str) -> None:
    """Fetch the tip of a branch so that its history reaches back to the ref `start`, where it does.

    A plain fetch into a shallow clone would bring all history behind each branch that was merged
    meanwhile and began before the clone's boundary. Raises WorkspaceError.
    """
    if read_shallow(git) and not _missing(git, {tip.commit}):
        git.run("update-ref", "--no-deref", tip.ref, tip.commit)
        return
    if read_shallow(git) and remote.filters:
        with remote_graph(remote, [tip]) as graph:
            chain = first_parents(graph, tip.commit, tip.commits)
            missing = _missing(git, set(chain))
            # As far as the first commit that is here.
            count = next((n for n, each in enumerate(chain, 1) if each not in missing), len(chain))
            tip = replace(tip, commits=count)
            fetch_selected(git, remote, [tip], select(graph, [tip]))
        if git.attempt("merge-base", "--is-ancestor", start, tip.ref).status == 0:
            return
    _fetch_by_name(git, remote, [tip], [])


def _find_merge_base(
    git: HostGit, remote: Remote, base: Tip, head: Tip, tips: Sequence[Tip], *options: str
) -> str | None:
    def find() -> str | None:
        found = git.attempt("merge-base", base.commit, head.commit)
        return found.stdout.decode().strip() if found.status == 0 else None

    parted = find()
    for deeper in _DEEPER:
        if parted is None and git.text("rev-parse", "--is-shallow-repository") == "true":
            _fetch_by_name(git, remote, tips, [*deeper, *options])
            parted = find()
    return parted


@contextmanager
def remote_graph(remote: Remote, tips: Sequence[Tip]) -> Iterator[HostGit]:
    """Git in a temporary repository with the newest commits behind the tips, without their trees.

    Such a repository is a partial clone, which git would complete over the network: it is used to
    list commits, and removed.
    """
    with temporary_directory() as folder:
        graph = new_bare(folder / "graph.git", wide=len(tips[0].commit) == 64)
        wanted = {tip.ref: tip.commit for tip in tips}
        for _ in range(MOST_ROUNDS):
            specs = [f"+{commit}:{ref}" for ref, commit in wanted.items()]
            options = [f"--depth={LEVELS}", "--filter=tree:0"]
            fetch(graph, remote.url, specs, options, remote.credential)
            shallow = read_shallow(graph)
            chains = {tip.ref: first_parents(graph, tip.commit, tip.commits) for tip in tips}
            wanted = {
                f"{tip.ref}-behind": chains[tip.ref][-1]
                for tip in tips
                if len(chains[tip.ref]) < tip.commits and chains[tip.ref][-1] in shallow
            }
            if not wanted:
                break
        yield graph


def select(graph: HostGit, tips: Sequence[Tip]) -> Selection:
    """The commits to fetch for the tips: their first-parent commits, and the newest commits that
    those merged, as far back in time as the oldest of them. graph: git where the commits are."""
    whole: set[str] = set()
    ends: set[str] = set()
    merged: set[str] = set()
    for tip in tips:
        chain = first_parents(graph, tip.commit, tip.commits)
        is_cut = len(chain) == tip.commits
        whole |= set(chain[:-1] if is_cut else chain)
        ends |= set(chain[-1:] if is_cut else ())
        if tip.commits > 1:
            oldest = graph.text("rev-list", "--no-walk", "--timestamp", chain[-1]).split()[0]
            count = len(chain) * (1 + MOST_MERGED)
            bounds = (f"--max-age={oldest}", f"--max-count={count}")
            merged |= set(graph.text("rev-list", *bounds, tip.commit).split())
    selection = Selection(whole | (merged - ends))
    selection.close(graph, [tip.commit for tip in tips])
    return selection


def fetch_selected(git: HostGit, remote: Remote, tips: Sequence[Tip], selection: Selection) -> None:
    """Fetch the selected commits, whole, and set the clone's shallow boundary accordingly."""
    missing = _missing(git, selection.whole | selection.boundary)
    if remote.cache is not None:
        remote.cache.fetch(git, remote.url, missing)
        missing = _missing(git, missing)
    by_ref = {tip.ref: tip.commit for tip in tips}
    wants = [f"+{commit}:{ref}" for ref, commit in by_ref.items() if commit in missing]
    wants += sorted(missing - set(by_ref.values()))
    if wants:
        # Depth 1 makes each of them a boundary; those that are not one are taken out below.
        fetch(git, remote.url, wants, ["--depth=1"], remote.credential)
    for ref, commit in by_ref.items():
        git.run("update-ref", "--no-deref", ref, commit)
    _write_shallow(git, read_shallow(git) - selection.whole)
    if remote.cache is not None and wants:
        remote.cache.keep(git, remote.url)


def first_parents(git: HostGit, commit: str, count: int) -> list[str]:
    """Ids of the newest first-parent commits that are there, newest first."""
    return git.text("rev-list", "--first-parent", f"--max-count={count}", commit).split()


def read_shallow(git: HostGit) -> set[str]:
    """Ids of the commits at the shallow boundary."""
    path = _shallow_file(git)
    return set(path.read_text("ascii").split()) if path.is_file() else set()


def _write_shallow(git: HostGit, commits: set[str]) -> None:
    path = _shallow_file(git)
    if not commits:
        path.unlink(missing_ok=True)
        return
    new = path.with_name("shallow.new")
    new.write_text("".join(f"{commit}\n" for commit in sorted(commits)), "ascii")
    new.replace(path)


def _shallow_file(git: HostGit) -> Path:
    path = git.text("rev-parse", "--path-format=absolute", "--git-path", "shallow")
    return Path(path)


def _missing(git: HostGit, commits: set[str]) -> set[str]:
    listing = "".join(f"{commit}\n" for commit in sorted(commits)).encode()
    found = git.text("cat-file", "--batch-check=%(objectname)", stdin=listing).splitlines()
    return {line.split()[0] for line in found if line.endswith(" missing")}


def _fetch_by_name(
    git: HostGit, remote: Remote, tips: Sequence[Tip], options: Sequence[str]
) -> None:
    # By its ref where that holds the commit: not every server gives commits by their ids.
    specs = [f"+{tip.name}:{tip.ref}" for tip in tips]
    fetch(git, remote.url, specs, options, remote.credential)


def _fetch_in_steps(git: HostGit, remote: Remote, tips: Sequence[Tip]) -> None:
    """Fetch one commit of each tip, then deepen for as long as it stays cheap."""
    _fetch_by_name(git, remote, tips, ["--depth=1"])
    most = _size(git) * MOST_GROWTH
    depth, wanted = 1, max(tip.commits for tip in tips)
    while read_shallow(git) and depth < wanted and _size(git) <= most:
        more = min(2 * depth, wanted - depth)
        _fetch_by_name(git, remote, tips, [f"--deepen={more}"])
        depth += more


def _size(git: HostGit) -> int:
    """KiB of objects."""
    counts = _counts(git.text("count-objects", "-v"))
    return counts["size"] + counts["size-pack"]


def _counts(text: str) -> Mapping[str, int]:
    rows = (line.split(": ", 1) for line in text.splitlines())
    return {name: int(value) for name, value in rows if value.isdigit()}
