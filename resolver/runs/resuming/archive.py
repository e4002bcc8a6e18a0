"""Archives the log of a run in the repository that it worked on, as a commit under
`refs/resolver/runs/ISSUE/RUN`. A change that is not public is stored in the same commit.

The ref is outside of refs/heads and refs/tags, so no branch contains the commit and no ordinary
clone fetches it. Anybody who may push can have written it: everything that is read back is checked
like any other file from outside.
"""

import gzip
import logging
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from resolver.config.temporary_directory import temporary_directory
from resolver.errors import LogError
from resolver.git.git import Credential, HostGit, create_bare_repository, failure, fetch_arguments
from resolver.git.orphan_commits import OrphanCommit, write_orphans
from resolver.git.remote import OBJECT_ID, check_url
from resolver.runs.output import BUNDLE, CHANGE, EVENTS, MAX_CHANGE_BYTES, OUTCOME
from resolver.runs.resuming.continuation import MOST_OUTCOME, EarlierRun

logger = logging.getLogger("resolver.runs.resuming.archive")

RUNS = "refs/resolver/runs"

KEPT = 3
"""Number of runs of an issue whose logs are kept; older ones are removed."""

MOST_LOG = 64_000_000
"""Maximum size in bytes of an event log that is archived or restored."""

MOST_STORED = 16_000_000
"""Maximum size in bytes of the compressed log."""

PLAIN = 100_000
"""Maximum size in bytes of a log that is stored uncompressed, so that a person can read it with
`git show`."""

SECONDS = 120.0
"""Timeout of one git command in seconds. It is short because a cancelled job has little time
left."""


_RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


def archive_log(
    folder: Path, url: str, credential: Credential | None, issue: int, run: str
) -> None:
    """Push log, outcome and unpublished change of a run's output `folder`.

    The files were redacted when they were written. A second call for the same run replaces the
    first. Raises WorkspaceError or LogError.
    """
    commit = log_commit(folder, issue, run)
    known, wide = _listed(url, credential, issue)
    with temporary_directory() as scratch:
        git = create_bare_repository(scratch / "log.git", sha256=wide)
        [made] = write_orphans(git, [commit])
        _push(git, url, credential, f"+{made}:{commit.ref}")
        if old := obsolete_logs(issue, run, known):
            _push(git, url, credential, *(f":{ref}" for ref in old))


def log_commit(folder: Path, issue: int, run: str) -> OrphanCommit:
    """Return the commit that archives log, outcome and unpublished change of an output `folder`.

    Raises LogError if the log can't be read or is too large.
    """
    ref = f"{runs_of_issue(issue)}{_checked(run)}"
    return OrphanCommit(ref, f"Log of run {run}", _files(folder))


def runs_of_issue(issue: int) -> str:
    """Return the prefix of the refs of an issue's archived logs."""
    return f"{RUNS}/{issue}/"


def obsolete_logs(issue: int, run: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the refs of the logs that are not kept any more once that of `run` is archived.

    known: ids of the runs of the issue whose logs are archived.
    """
    runs = sorted({*(each for each in known if _RUN.fullmatch(each)), run})
    return tuple(f"{runs_of_issue(issue)}{each}" for each in runs[:-KEPT] if each != run)


def fetch_last(
    url: str, credential: Credential | None, issue: int, folder: Path, before: str = ""
) -> EarlierRun | None:
    """Fetch the newest archived log of an issue into `folder`; None if there is none.

    before: id of a run; this run and later ones are left out. Raises WorkspaceError if the log
    can't be fetched, LogError if it is too large or is no log.
    """
    return next(fetch_newest_first(url, credential, issue, folder, before), None)


def fetch_newest_first(
    url: str, credential: Credential | None, issue: int, folder: Path, before: str = ""
) -> Iterator[EarlierRun]:
    """Yield the archived logs of an issue, newest first.

    Each is fetched when it is requested, into its own folder below `folder`. Raises the errors of
    `fetch_last`.
    """
    known, wide = _listed(url, credential, issue)
    # Ids of runs begin with their time, so their order is the order of the runs.
    for run in sorted(known, reverse=True):
        if not before or run < before:
            yield _fetched(url, credential, issue, run, folder / run, wide)


def _fetched(
    url: str, credential: Credential | None, issue: int, run: str, folder: Path, wide: bool
) -> EarlierRun:
    with temporary_directory() as scratch:
        git = create_bare_repository(scratch / "log.git", sha256=wide)
        spec = f"{RUNS}/{issue}/{run}:refs/resolver/log"
        args = fetch_arguments(check_url(url), [spec], "--depth=1")
        done = git.attempt(*args, credential=credential, timeout=SECONDS)
        if done.status != 0:
            raise failure(args, done, f"fetching the log of run {run}")
        blobs = _blobs(git, run)
        folder.mkdir(parents=True, exist_ok=True)
        earlier = EarlierRun(run, folder / EVENTS, folder / OUTCOME)
        earlier.log.write_bytes(_log(git, blobs, run))
        if OUTCOME in blobs:
            earlier.outcome.write_bytes(_read(git, blobs[OUTCOME], MOST_OUTCOME, run))
        if CHANGE in blobs and BUNDLE in blobs:
            for name in (BUNDLE, CHANGE):
                (folder / name).write_bytes(_read(git, blobs[name], MAX_CHANGE_BYTES, run))
        return earlier


def _checked(run: str) -> str:
    if not _RUN.fullmatch(run):
        raise LogError(f"{run!r} is not a run id")
    return run


def _listed(url: str, credential: Credential | None, issue: int) -> tuple[list[str], bool]:
    """Return the ids of the archived runs, and whether the repository's object ids are SHA-256."""
    prefix = runs_of_issue(issue)
    args = ("ls-remote", "--", check_url(url), "HEAD", f"{prefix}*")
    done = HostGit().attempt(*args, credential=credential, limit=10_000_000, timeout=SECONDS)
    if done.status != 0:
        raise failure(args, done, "looking for the logs of earlier runs")
    lines = [line.partition("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
    refs = {name: id for id, _, name in lines if OBJECT_ID.fullmatch(id)}
    runs = [name.removeprefix(prefix) for name in refs if name.startswith(prefix)]
    return [run for run in runs if _RUN.fullmatch(run)], any(len(id) == 64 for id in refs.values())


def _files(folder: Path) -> dict[str, bytes]:
    log = folder / EVENTS
    try:
        if log.stat().st_size > MOST_LOG:
            raise LogError(f"the log has more than {MOST_LOG:,} bytes, so it was not stored")
        data = log.read_bytes()
        files = {OUTCOME: (folder / OUTCOME).read_bytes(), **_change(folder)}
    except OSError as error:
        raise LogError(f"{error.filename} can't be read: {error.strerror}") from error
    if len(data) <= PLAIN:
        return {**files, EVENTS: data}
    packed = gzip.compress(data, mtime=0)
    if len(packed) > MOST_STORED:
        raise LogError(f"the log has more than {MOST_STORED:,} bytes, so it was not stored")
    return {**files, f"{EVENTS}.gz": packed}


def _change(folder: Path) -> dict[str, bytes]:
    """Return the files of the unpublished change, if there is one and it is not too large."""
    bundle, change = folder / BUNDLE, folder / CHANGE
    if not bundle.is_file() or not change.is_file() or bundle.stat().st_size > MAX_CHANGE_BYTES:
        return {}
    return {BUNDLE: bundle.read_bytes(), CHANGE: change.read_bytes()}


def _push(git: HostGit, url: str, credential: Credential | None, *refs: str) -> None:
    args = ("push", "--quiet", "--no-verify", "--", check_url(url), *refs)
    done = git.attempt(*args, credential=credential, timeout=SECONDS)
    if done.status != 0:
        raise failure(args, done, f"storing the log in {url}")


def _blobs(git: HostGit, run: str) -> dict[str, str]:
    """Return the files of the fetched commit, as a mapping from name to blob id."""
    found = git.attempt("ls-tree", "-z", "refs/resolver/log", limit=100_000)
    if found.status != 0 or found.truncated:
        raise LogError(f"the stored log of run {run} was not written by Resolver")
    blobs = {}
    for record in found.stdout.decode("utf-8", "replace").split("\0"):
        meta, _, name = record.partition("\t")
        if meta.startswith("100644 blob "):
            blobs[name] = meta.split(" ")[2]
    return blobs


def _log(git: HostGit, blobs: dict[str, str], run: str) -> bytes:
    if EVENTS in blobs:
        return _read(git, blobs[EVENTS], MOST_LOG, run)
    if f"{EVENTS}.gz" not in blobs:
        raise LogError(f"the stored log of run {run} is empty")
    packed = _read(git, blobs[f"{EVENTS}.gz"], MOST_STORED, run)
    try:
        # Limited decompression: a small archive may expand to any size. 31 selects the gzip format,
        # see https://docs.python.org/3/library/zlib.html#zlib.decompress
        data = zlib.decompressobj(wbits=31).decompress(packed, MOST_LOG + 1)
    except zlib.error as error:
        raise LogError(f"the log of run {run} can't be unpacked: {error}") from None
    if len(data) > MOST_LOG:
        raise LogError(f"the log of run {run} has more than {MOST_LOG:,} bytes")
    return data


def _read(git: HostGit, blob: str, most: int, run: str) -> bytes:
    found = git.attempt("cat-file", "blob", blob, limit=most)
    if found.truncated:
        raise LogError(f"the log of run {run} is larger than {most:,} bytes")
    if found.status != 0:
        raise failure(("cat-file",), found, f"reading the log of run {run}")
    return found.stdout
