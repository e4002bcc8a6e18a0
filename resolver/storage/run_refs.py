"""Archives the log of a run in the repository that it worked on, as a commit under
`refs/resolver/runs/ISSUE/RUN`. A change that is not public is stored in the same commit.

The ref is outside of refs/heads and refs/tags, so no branch contains the commit and no ordinary
clone fetches it. Anybody who may push can have written it: everything that is read back is checked
like any other file from outside.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from resolver.config.temporary_directory import temporary_directory
from resolver.errors import LogError
from resolver.git.git import (
    Credential,
    HostGit,
    create_bare_repository,
    fetch_arguments,
    git_failure,
)
from resolver.git.remote import OrphanCommit, check_url, write_orphans
from resolver.github.events.quota_ledger import RUN_ID
from resolver.storage.earlier_runs import (
    BUNDLE,
    CHANGE,
    EVENTS,
    MAX_CHANGE_BYTES,
    MAX_OUTCOME_BYTES,
    OUTCOME,
    EarlierRun,
)

RUNS = "refs/resolver/runs"

_RUN = re.compile(RUN_ID)

KEPT_RUNS = 3
"""Number of runs of an issue whose logs are kept; older ones are removed."""

MAX_LOG_BYTES = 64_000_000
"""Maximum size in bytes of an event log that is archived or restored."""

GIT_TIMEOUT_SECONDS = 120.0
"""Timeout of one git command in seconds. It is short because a cancelled job has little time
left."""


def archive_log(
    folder: Path, url: str, credential: Credential | None, issue: int, run: str
) -> None:
    """Push log, outcome and unpublished change of a run's output `folder`.

    The files were redacted when they were written. A second call for the same run replaces the
    first. Raises WorkspaceError or LogError.
    """
    commit = log_commit(folder, issue, run)
    archived_runs = _list_archived_runs(url, credential, issue)
    with temporary_directory() as temporary:
        git = create_bare_repository(temporary / "log.git")
        [log_commit_id] = write_orphans(git, [commit])
        _push(git, url, credential, f"+{log_commit_id}:{commit.ref}")
        if obsolete_refs := obsolete_logs(issue, run, archived_runs):
            _push(git, url, credential, *(f":{ref}" for ref in obsolete_refs))


def log_commit(folder: Path, issue: int, run: str) -> OrphanCommit:
    """Return the commit that archives log, outcome and unpublished change of an output `folder`.

    Raises LogError if the log can't be read or is too large.
    """
    ref = f"{runs_of_issue(issue)}{run}"
    return OrphanCommit(ref, f"Log of run {run}", _archive_files(folder))


def runs_of_issue(issue: int) -> str:
    """Return the prefix of the refs of an issue's archived logs."""
    return f"{RUNS}/{issue}/"


def obsolete_logs(issue: int, run: str, archived_runs: Iterable[str]) -> tuple[str, ...]:
    """Return the refs of the logs that are not kept any more once that of `run` is archived.

    archived_runs: ids of the runs of the issue whose logs are archived.
    """
    runs = sorted({*(other for other in archived_runs if _RUN.fullmatch(other)), run})
    return tuple(f"{runs_of_issue(issue)}{other}" for other in runs[:-KEPT_RUNS] if other != run)


@dataclass(frozen=True)
class RunRefs:
    """The archived runs of one repository. Implements `EarlierRuns`.

    folder: gets the files of each run that is fetched, in a folder of its own.
    """

    url: str
    credential: Credential | None
    folder: Path

    def runs_before(self, issue: int, run: str) -> Iterator[EarlierRun]:
        """Implement `EarlierRuns.runs_before`.

        Raises WorkspaceError if a log can't be fetched, and LogError if it is too large or is not
        a log.
        """
        archived_runs = _list_archived_runs(self.url, self.credential, issue)
        # Ids of runs begin with their time, so their order is the order of the runs.
        for earlier in sorted(archived_runs, reverse=True):
            if earlier < run:
                folder = self.folder / str(issue) / earlier
                yield _fetch_run(self.url, self.credential, issue, earlier, folder)


def _fetch_run(
    url: str, credential: Credential | None, issue: int, run: str, folder: Path
) -> EarlierRun:
    with temporary_directory() as temporary:
        git = create_bare_repository(temporary / "log.git")
        refspec = f"{RUNS}/{issue}/{run}:refs/resolver/log"
        arguments = fetch_arguments(check_url(url), [refspec], "--depth=1")
        result = git.attempt(*arguments, credential=credential, timeout=GIT_TIMEOUT_SECONDS)
        if result.status != 0:
            raise git_failure(arguments, result, f"fetching the log of run {run}")
        blobs = _list_blobs(git, run)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        earlier = EarlierRun(run, folder / EVENTS, folder / OUTCOME)
        if EVENTS not in blobs:
            raise LogError(f"the stored log of run {run} is empty")
        earlier.log.write_bytes(_read_blob(git, blobs[EVENTS], MAX_LOG_BYTES, run))
        if OUTCOME in blobs:
            earlier.outcome.write_bytes(_read_blob(git, blobs[OUTCOME], MAX_OUTCOME_BYTES, run))
        if CHANGE in blobs and BUNDLE in blobs:
            for name in (BUNDLE, CHANGE):
                (folder / name).write_bytes(_read_blob(git, blobs[name], MAX_CHANGE_BYTES, run))
        return earlier


def _list_archived_runs(url: str, credential: Credential | None, issue: int) -> list[str]:
    """Return the ids of the archived runs."""
    prefix = runs_of_issue(issue)
    arguments = ("ls-remote", "--", check_url(url), f"{prefix}*")
    result = HostGit().attempt(
        *arguments, credential=credential, limit=10_000_000, timeout=GIT_TIMEOUT_SECONDS
    )
    if result.status != 0:
        raise git_failure(arguments, result, "looking for the logs of earlier runs")
    lines = [line.partition("\t") for line in result.stdout.decode("utf-8", "replace").splitlines()]
    runs = [name.removeprefix(prefix) for _, _, name in lines if name.startswith(prefix)]
    return [run for run in runs if _RUN.fullmatch(run)]


def _archive_files(folder: Path) -> dict[str, bytes]:
    """Return the files to archive. Git compresses them."""
    log = folder / EVENTS
    try:
        if log.stat().st_size > MAX_LOG_BYTES:
            raise LogError(f"the log has more than {MAX_LOG_BYTES:,} bytes, so it was not stored")
        files = {EVENTS: log.read_bytes(), OUTCOME: (folder / OUTCOME).read_bytes()}
    except OSError as error:
        raise LogError(f"{error.filename} can't be read: {error.strerror}") from error
    return {**files, **_change_files(folder)}


def _change_files(folder: Path) -> dict[str, bytes]:
    """Return the files of the unpublished change, if there is one and it is not too large."""
    bundle, change = folder / BUNDLE, folder / CHANGE
    if not bundle.is_file() or not change.is_file() or bundle.stat().st_size > MAX_CHANGE_BYTES:
        return {}
    return {BUNDLE: bundle.read_bytes(), CHANGE: change.read_bytes()}


def _push(git: HostGit, url: str, credential: Credential | None, *refs: str) -> None:
    arguments = ("push", "--quiet", "--no-verify", "--", check_url(url), *refs)
    result = git.attempt(*arguments, credential=credential, timeout=GIT_TIMEOUT_SECONDS)
    if result.status != 0:
        raise git_failure(arguments, result, f"storing the log in {url}")


def _list_blobs(git: HostGit, run: str) -> dict[str, str]:
    """Return the files of the fetched commit, as a mapping from name to blob id."""
    listing = git.attempt("ls-tree", "-z", "refs/resolver/log", limit=100_000)
    if listing.status != 0 or listing.truncated:
        raise LogError(f"the stored log of run {run} was not written by Resolver")
    blobs = {}
    for record in listing.stdout.decode("utf-8", "replace").split("\0"):
        meta, _, name = record.partition("\t")
        if meta.startswith("100644 blob "):
            blobs[name] = meta.split(" ")[2]
    return blobs


def _read_blob(git: HostGit, blob: str, max_bytes: int, run: str) -> bytes:
    result = git.attempt("cat-file", "blob", blob, limit=max_bytes)
    if result.truncated:
        raise LogError(f"the log of run {run} is larger than {max_bytes:,} bytes")
    if result.status != 0:
        raise git_failure(("cat-file",), result, f"reading the log of run {run}")
    return result.stdout
