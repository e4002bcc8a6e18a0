"""Asks git what was merged of Resolver's changes, and what people did to these lines later.

The repository is read into a temporary partial clone: the commits and folders of the branches since
the oldest of the pull requests, and only those files that the changes touch.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from resolver.config.temporary_directory import temporary_directory
from resolver.errors import WorkspaceError
from resolver.git.git import Credential, HostGit, create_bare_repository
from resolver.git.remote import OBJECT_ID, fetch, list_refs
from resolver.git.tree import decode_path
from resolver.models.outcome import PullRequestFacts
from resolver.outcomes.classify import OBSERVATION_WINDOW, LineEvidence, is_window_over
from resolver.outcomes.patches import (
    LineSet,
    PatchedFile,
    carry_lines,
    find_own_lines,
    is_inverse,
    is_same_change,
    parse_patch,
    share_that_survived,
)

OLDER_HISTORY = timedelta(days=90)
"""How much older than a pull request the history is that is read. The commit that a branch started
from is usually newer."""

MAX_PATCH_BYTES = 20_000_000
"""Maximum size of one patch. A larger change is not compared."""

MAX_LATER_COMMITS = 200
"""Maximum number of later commits to the files of one pull request that are looked at."""

MAX_COMPARED_FILES = 2_000
"""Maximum number of files of one pull request whose later changes are looked at."""

MAX_FETCHED_FILES = 5_000
"""Maximum number of versions of files that are fetched at a time."""

MAX_OWN_COMMITS = 50

_PATCH_OPTIONS = (
    "diff-tree", "-p", "-r", "-U0", "--no-renames", "--no-prefix", "--no-ext-diff",
    "--no-textconv", "--no-color",
)  # fmt: skip
_RAW_OPTIONS = ("diff-tree", "-r", "--raw", "--no-renames", "--no-abbrev", "-z")
_TRAILER = re.compile(rb"^Resolver-Run: \S", re.MULTILINE)
_REVERTED = re.compile(rb"\bThis reverts commit ([0-9a-f]{7,64})\b")
_FILE_MODE = re.compile(rb"10[0-9]{4}")


@dataclass(frozen=True)
class _Merge:
    """A merged pull request in the clone.

    before, after: the base branch without and with the change. fork: the commit that Resolver's own
    commits started from, "" if these are not there. later: the newest commit of the base branch
    within the observation window, "" if it does not matter yet or is unknown.
    """

    facts: PullRequestFacts
    before: str
    after: str
    fork: str = ""
    later: str = ""

    @property
    def ranges(self) -> tuple[tuple[str, str], ...]:
        """The pairs of commits to compare."""
        own = ((self.fork, self.facts.own_head),) if self.fork else ()
        return ((self.before, self.after), *own)


@dataclass(frozen=True)
class _LaterCommit:
    """A commit of the base branch after the merge."""

    id: bytes
    author: bytes
    message: bytes


def needs_git(facts: PullRequestFacts, now: datetime) -> bool:
    """Return True if git can say more about the pull request: it was merged after somebody else
    had pushed to it, or the observation window is over."""
    is_known = bool(OBJECT_ID.fullmatch(facts.merge_commit))
    return is_known and (facts.has_moved or is_window_over(facts, now))


@dataclass(frozen=True)
class MergedLines:
    """Compares the merged pull requests of one repository.

    credential: called for each git command, because a token may expire. own_login: Resolver's.
    """

    url: str
    credential: Callable[[], Credential | None]
    own_login: str

    def measure(self, pulls: Sequence[PullRequestFacts], now: datetime) -> dict[int, LineEvidence]:
        """Return the evidence by number of the pull request.

        A pull request whose commits can't be found has unknown values. Raises WorkspaceError and
        ForgeError if the repository can't be read.
        """
        pulls = [pull for pull in pulls if needs_git(pull, now)]
        if not pulls:
            return {}
        with temporary_directory() as folder:
            clone = self._fetch(folder, pulls)
            own = {pull.merge_commit for pull in pulls}
            merges = [clone.find_merge(pull, now) for pull in pulls]
            clone.fetch_files(merges)
            return {
                pull.number: clone.compare(merge, own, self.own_login)
                if merge
                else LineEvidence(durability="unknown")
                for pull, merge in zip(pulls, merges, strict=True)
            }

    def _fetch(self, folder: Path, pulls: Sequence[PullRequestFacts]) -> "_PartialClone":
        branches = sorted({f"refs/heads/{pull.base_branch}" for pull in pulls})
        listing = list_refs(self.url, branches, self.credential())
        existing = [ref for ref in branches if ref in listing.refs]
        is_sha256 = any(len(pull.merge_commit) == 64 for pull in pulls)
        git = create_bare_repository(folder / "merged.git", sha256=is_sha256)
        clone = _PartialClone(git, self.url, self.credential, listing.supports_filters)
        if existing:
            since = min(pull.created_at for pull in pulls) - OLDER_HISTORY
            clone.fetch_history([f"+{ref}:{ref}" for ref in existing], since)
            clone.fetch_own_commits(pulls, since)
        return clone


@dataclass(frozen=True)
class _PartialClone:
    """The temporary clone. supports_filters: False if it has all files from the start."""

    git: HostGit
    url: str
    credential: Callable[[], Credential | None]
    supports_filters: bool

    def fetch_history(self, refspecs: Sequence[str], since: datetime) -> None:
        """Fetch commits and folders of the refs, back to `since`."""
        options = [f"--shallow-since={int(since.timestamp())}"]
        options += ["--filter=blob:none"] if self.supports_filters else []
        fetch(self.git, self.url, refspecs, options, self.credential())

    def fetch_own_commits(self, pulls: Sequence[PullRequestFacts], since: datetime) -> None:
        """Fetch the commits that Resolver pushed last, where people have pushed others later.

        A commit that was replaced by a force push may be gone.
        """
        refspecs = [
            f"+{pull.own_head}:refs/outcomes/{pull.number}"
            for pull in pulls
            if pull.has_moved and OBJECT_ID.fullmatch(pull.own_head)
        ]
        try:
            if refspecs:
                self.fetch_history(refspecs, since)
        except WorkspaceError:
            for refspec in refspecs if len(refspecs) > 1 else ():
                try:
                    self.fetch_history([refspec], since)
                except WorkspaceError:
                    continue

    def find_merge(self, pull: PullRequestFacts, now: datetime) -> _Merge | None:
        """Return the commits to compare, None if the merge is not on the base branch any more."""
        base, after = f"refs/heads/{pull.base_branch}", pull.merge_commit
        before = self._before_merge(pull)
        if not before or not self._is_ancestor(after, base):
            return None
        fork = self._fork_point(pull, before) if pull.has_moved and pull.own_head else ""
        later = ""
        if is_window_over(pull, now) and pull.ended_at is not None:
            end = int((pull.ended_at + OBSERVATION_WINDOW).timestamp())
            options = ("--first-parent", f"--before={end}", "--max-count=1")
            later = self._text("rev-list", *options, base, "--")
        merge = _Merge(pull, before, after, fork, later)
        is_too_large = len(self._paths_of(merge)) > MAX_COMPARED_FILES
        return replace(merge, later="") if is_too_large else merge

    def _before_merge(self, pull: PullRequestFacts) -> str:
        """Return the commit of the base branch before the merge, "" if it is unknown."""
        commit = pull.merge_commit
        parents = self._text("log", "-1", "--format=%P", commit, "--").split()
        if len(parents) == 1 and pull.commit_count > 1:
            # A rebase puts all commits of the pull request on the branch, a squash one.
            message = self._text("log", "-1", "--format=%B", commit, "--")
            if message.strip() == pull.head_message.strip():
                revision = f"{commit}~{pull.commit_count}"
                return self._text("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
        return parents[0] if parents else ""

    def _fork_point(self, pull: PullRequestFacts, before: str) -> str:
        own = self._text(
            "rev-parse", "--verify", "--quiet", f"refs/outcomes/{pull.number}^{{commit}}"
        )
        if not own:
            return ""
        merge_base = self._text("merge-base", own, before)
        commit = own
        for _ in range(0 if merge_base else MAX_OWN_COMMITS):
            # The history does not reach back to the fork: skip the run's own commits.
            if not _TRAILER.search(self._text("log", "-1", "--format=%B", commit, "--").encode()):
                return commit
            commit = self._text("rev-parse", "--verify", "--quiet", f"{commit}^")
        return merge_base

    def fetch_files(self, merges: Sequence[_Merge | None]) -> None:
        """Fetch the files that the comparisons read."""
        if not self.supports_filters:
            return
        blobs: set[str] = set()
        for merge in merges:
            for start, end in merge.ranges if merge else ():
                blobs |= set(_blobs_in(self.git.run(*_RAW_OPTIONS, start, end)))
            for commit in self._later_commits(merge) if merge else ():
                paths = self._paths_of(merge) if merge else ()
                id = commit.id.decode()
                raw = self.git.run(*_RAW_OPTIONS, f"{id}^1", id, "--", *paths)
                blobs |= set(_blobs_in(raw))
        wanted = sorted(blobs)
        for first in range(0, len(wanted), MAX_FETCHED_FILES):
            batch = wanted[first : first + MAX_FETCHED_FILES]
            fetch(self.git, self.url, batch, [], self.credential())

    def compare(self, merge: _Merge, own: Collection[str], own_login: str) -> LineEvidence:
        """Return what the clone shows. own: merge commits of Resolver's pull requests."""
        merged = self._patch(merge.before, merge.after)
        if merged is None:
            return LineEvidence(durability="unknown" if merge.later else "")
        change = self._patch(merge.fork, merge.facts.own_head) if merge.fork else None
        survived = None if change is None else share_that_survived(change, merged)
        is_unchanged = change is not None and is_same_change(change, merged)
        evidence = LineEvidence(is_unchanged, 1.0 if is_unchanged else survived)
        if not merge.later:
            return evidence
        has_own_commit = not merge.facts.has_moved or change is None
        lines = find_own_lines(merged if has_own_commit else change or (), merged)
        changed, is_reverted = self._follow(merge, merged, lines, own, own_login)
        return LineEvidence(
            evidence.is_unchanged,
            evidence.survived,
            "reverted" if is_reverted else "changed" if changed else "held",
            changed,
        )

    def _follow(
        self,
        merge: _Merge,
        merged: tuple[PatchedFile, ...],
        lines: Mapping[bytes, LineSet],
        own: Collection[str],
        own_login: str,
    ) -> tuple[int, bool]:
        """Return how many of the lines people changed within the window, and if they were
        reverted."""
        tracked, changed = dict(lines), 0
        merged_ids = set(self._text("rev-list", "--max-count=200", merge.after, f"^{merge.before}")
                         .split())  # fmt: skip
        for commit in self._later_commits(merge):
            id = commit.id.decode()
            if _names_revert(commit.message, merged_ids, merge.facts):
                return changed, True
            patch = self._patch(f"{id}^1", id, self._paths_of(merge))
            if patch is None:
                continue
            renames = self._renames(id)
            patch = tuple(file for file in patch if file.path not in renames)
            if is_inverse(patch, merged, tracked):
                return changed, True
            by_person = id not in own and _is_by_person(commit, own_login)
            for file in patch:
                remaining, count = carry_lines(tracked.get(file.path, frozenset()), file.hunks)
                tracked[file.path] = remaining
                changed += count if by_person else 0
            for old, new in renames.items():
                tracked[new] = tracked.pop(old, frozenset())
        return changed, False

    def _later_commits(self, merge: _Merge) -> list[_LaterCommit]:
        """Return the commits of the base branch that touch the files of the merge, oldest first."""
        if not merge.later:
            return []
        output = self.git.run(
            "log", "--first-parent", "--reverse", "-z", "--format=%H%x00%P%x00%an <%ae>%x00%B",
            f"{merge.after}..{merge.later}", "--", *self._paths_of(merge),
        )  # fmt: skip
        fields = output.split(b"\0")
        commits = []
        for start in range(0, len(fields) - 3, 4):
            id, parents, author, message = fields[start : start + 4]
            merged_parent = parents.split()[1:2]
            if merged_parent:
                # Whoever merged it did not write it.
                author = self._author(merged_parent[0]) or author
                message += self._text(
                    "log", "-1", "--format=%B", merged_parent[0].decode(), "--"
                ).encode("utf-8", "surrogateescape")
            commits.append(_LaterCommit(id, author, message))
        return commits[:MAX_LATER_COMMITS]

    def _author(self, commit: bytes) -> bytes:
        text = self._text("log", "-1", "--format=%an <%ae>", commit.decode(), "--")
        return text.encode("utf-8", "surrogateescape")

    def _paths_of(self, merge: _Merge) -> tuple[str, ...]:
        """Return the files of the merge, and their names after later renames without a change."""
        args = ("diff-tree", "-r", "--name-only", "--no-renames", "-z", merge.before, merge.after)
        names = [decode_path(name) for name in self.git.read_objects(*args).split(b"\0") if name]
        if merge.later:
            renames = self.git.read_objects(
                "log", "--first-parent", "--reverse", "--format=", *_RENAME_OPTIONS,
                f"{merge.after}..{merge.later}", "--",
            )  # fmt: skip
            for old, new in _rename_pairs(renames):
                if decode_path(old) in names:
                    names.append(decode_path(new))
        return tuple(dict.fromkeys(names))

    def _renames(self, commit: str) -> dict[bytes, bytes]:
        """Return the files that a commit renamed without a change: new names by old ones."""
        args = ("diff-tree", "-r", *_RENAME_OPTIONS, f"{commit}^1", commit)
        return dict(_rename_pairs(self.git.run(*args)))

    def _patch(
        self, start: str, end: str, paths: Sequence[str] = ()
    ) -> tuple[PatchedFile, ...] | None:
        """Return the patch between two commits, None if it is too large."""
        quoting = (("core.quotePath", "false"),)
        result = self.git.attempt(
            *_PATCH_OPTIONS, start, end, "--", *paths, settings=quoting, limit=MAX_PATCH_BYTES
        )
        return None if result.status != 0 or result.truncated else parse_patch(result.stdout)

    def _is_ancestor(self, commit: str, tip: str) -> bool:
        return self.git.attempt("merge-base", "--is-ancestor", commit, tip).status == 0

    def _text(self, *args: str) -> str:
        """Return the output of git, "" if the command fails because a commit is missing."""
        result = self.git.attempt(*args)
        if result.status != 0:
            return ""
        return result.stdout.decode("utf-8", "surrogateescape").strip()


_RENAME_OPTIONS = ("--name-status", "--diff-filter=R", "-M100%", "-z")


def _rename_pairs(output: bytes) -> Iterator[tuple[bytes, bytes]]:
    fields = iter(field for field in output.split(b"\0") if field)
    for status in fields:
        if status.strip().startswith(b"R"):
            yield next(fields, b""), next(fields, b"")


def _blobs_in(raw: bytes) -> Iterator[str]:
    """Yield the ids of the regular files in the output of `diff-tree --raw -z`."""
    for row in raw.split(b"\0"):
        fields = row.removeprefix(b":").split(b" ")
        if len(fields) == 5:
            for mode, id in zip(fields[:2], fields[2:4], strict=True):
                if _FILE_MODE.fullmatch(mode):
                    yield id.decode()


def _names_revert(message: bytes, ids: Collection[str], facts: PullRequestFacts) -> bool:
    """Return True if the message of a commit says that it reverts the pull request.

    GitHub's button makes a pull request from the branch `revert-N-...` whose title is
    `Revert "TITLE"`.
    """
    reverted = [match[1].decode() for match in _REVERTED.finditer(message)]
    if any(id.startswith(prefix) for prefix in reverted for id in ids):
        return True
    if re.search(rb"/revert-%d-" % facts.number, message):
        return True
    title = facts.title.strip().encode("utf-8", "surrogatepass")
    return bool(title) and b'Revert "' + title + b'"' in message.splitlines()


def _is_by_person(commit: _LaterCommit, own_login: str) -> bool:
    name = commit.author.decode("utf-8", "replace").rpartition(" <")[0].casefold()
    own_names = {own_login.casefold(), own_login.casefold().removesuffix("[bot]")}
    return (
        b"[bot]" not in commit.author
        and name not in own_names
        and not _TRAILER.search(commit.message)
    )
