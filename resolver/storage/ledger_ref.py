"""Stores the quota ledger in the repository itself, as a commit without parents under
`refs/resolver/ledger`. No branch contains the commit and no ordinary clone fetches it.

It is changed by compare-and-swap: a push takes effect only if the ref still has the value that was
read, so that two runs on two machines never lose each other's entries. Jobs of GitHub Actions have
no server and no storage in common except the repository, which is why the ledger is there.
"""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import random

from resolver.config.temporary_directory import temporary_directory
from resolver.errors import WorkspaceError
from resolver.events.stream import Clock, utc_now
from resolver.git.git import (
    Credential,
    GitResult,
    HostGit,
    create_bare_repository,
    fetch_arguments,
    git_failure,
)
from resolver.git.remote import OrphanCommit, check_url, write_orphans
from resolver.github.events.quota_ledger import (
    MAX_LEDGER_BYTES,
    Answer,
    Change,
    LedgerVersion,
    QuotaLedger,
    read_ledger,
    serialize_ledger,
)

logger = logging.getLogger("resolver.storage")

REF = "refs/resolver/ledger"
FILE = "ledger.jsonl"

GIT_TIMEOUT_SECONDS = 30.0
"""Timeout of one git command in seconds."""

RETRY_SECONDS = 120.0
"""Seconds for which a change is retried while other runs push first."""

MAX_SERVER_ERRORS = 3
"""Maximum number of attempts if the server fails."""

_REF_MISSING = re.compile(r"(?:couldn't|could not) find remote ref", re.IGNORECASE)
_NEEDS_SHA256 = re.compile(r"mismatched algorithms|unsupported object format|sha256", re.IGNORECASE)
# Messages of git and of servers for a push that lost the race, which is worth another attempt, and
# for one that is not allowed, which is not.
_LOST_RACE = re.compile(
    r"\[rejected\]|stale info|fetch first|non-fast-forward|cannot lock ref|failed to update ref"
    r"|incorrect old value|already exists|failed to lock"
)
_REFUSED = re.compile(
    r"returned error: 4\d\d|HTTP 4\d\d|Authentication failed|hook declined|protected|denied"
)


@dataclass(frozen=True)
class AccompanyingPush:
    """The refs that are pushed together with the ledger, even if the ledger is refused.

    commits: they replace what their refs point to. obsolete: refs that are removed, at the first
    attempt only.
    """

    commits: tuple[OrphanCommit, ...] = ()
    obsolete: tuple[str, ...] = ()


@dataclass(frozen=True)
class LedgerRef:
    """The quota ledger of one repository.

    credential: called for each git command, because a token may expire. Methods raise
    WorkspaceError if the ledger can't be reached or written, and ForgeError if there is no token.
    """

    url: str
    credential: Callable[[], Credential | None]
    now: Clock = utc_now
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random
    clock: Callable[[], float] = time.monotonic

    def read(self) -> QuotaLedger:
        """Return the current ledger."""
        with temporary_directory() as folder:
            _, version = self._fetch_ledger(folder)
        return version.ledger

    def change(self, change: Change[Answer]) -> Answer:
        """Change the ledger, with retries until no other run has pushed first, and return the
        answer."""
        return self.change_from(None, change)[0]

    def change_from(
        self,
        known: LedgerVersion | None,
        change: Change[Answer],
        accompanying: AccompanyingPush = AccompanyingPush(),
    ) -> tuple[Answer, LedgerVersion]:
        """Change the ledger as `change` does. Return the answer and the new ledger.

        known: the ledger as it was last seen, None if it was not. It is used without reading, and
        the push fails if another run has changed it since; only then is it fetched.
        accompanying: pushed as well if the ledger changes; on return, all of its commits are there.
        """
        deadline, pause, server_errors = self.clock() + RETRY_SECONDS, 0.2, 0
        with temporary_directory() as folder:
            while True:
                git, version = self._open_known(folder, known) or self._fetch_ledger(folder)
                ledger, answer = change(version.ledger)
                if ledger is None and known is None:
                    return answer, version
                # `known` may be out of date, so only a freshly read ledger can decide that nothing
                # is to be changed.
                known = None
                if ledger is None:
                    continue
                result = self._push(git, version, ledger, accompanying)
                # Removing a ref that is gone already makes git push nothing at all.
                accompanying = replace(accompanying, obsolete=())
                if isinstance(result, str):
                    return answer, LedgerVersion(ledger, result, pushed=True)
                if not _LOST_RACE.search(result.what):
                    server_errors += 1
                if (
                    server_errors >= MAX_SERVER_ERRORS
                    or _REFUSED.search(result.what)
                    or self.clock() > deadline
                ):
                    raise result
                # Jitter, so that runs that collided do not collide again.
                self.sleep(pause * (0.5 + self.chance()))
                pause = min(pause * 1.5, 1.5)

    def _open_known(
        self, folder: Path, known: LedgerVersion | None
    ) -> tuple[HostGit, LedgerVersion] | None:
        """Return an empty repository and the known ledger; None if the ledger must be fetched
        first."""
        if known is None or known.ledger.damaged or not known.ledger.readable:
            return None
        sha256 = known.is_sha256 or len(known.tip) == 64
        return create_bare_repository(
            folder / ("sha256.git" if sha256 else "sha1.git"), sha256=sha256
        ), known

    def _fetch_ledger(self, folder: Path) -> tuple[HostGit, LedgerVersion]:
        """Fetch the ledger into a temporary repository."""
        git, result = self._fetch_ref(folder / "sha1.git", sha256=False)
        if result.status != 0 and _NEEDS_SHA256.search(result.stderr):
            git, result = self._fetch_ref(folder / "sha256.git", sha256=True)
        if result.status != 0:
            if _REF_MISSING.search(result.stderr):
                return git, LedgerVersion(QuotaLedger())
            raise git_failure(("fetch",), result, "reading the quota ledger")
        tip = git.text("rev-parse", "--verify", REF)
        content = git.attempt(
            "cat-file", "blob", f"{REF}:{FILE}", limit=MAX_LEDGER_BYTES, timeout=GIT_TIMEOUT_SECONDS
        )
        if content.status != 0 or content.truncated:
            return git, LedgerVersion(QuotaLedger(readable=False), tip)
        return git, LedgerVersion(read_ledger(content.stdout, self.now()), tip)

    def _fetch_ref(self, folder: Path, *, sha256: bool) -> tuple[HostGit, GitResult]:
        """Fetch the ref. sha256: True for a repository with SHA-256 object ids."""
        git = (
            HostGit(git_dir=folder)
            if folder.exists()
            else create_bare_repository(folder, sha256=sha256)
        )
        arguments = fetch_arguments(check_url(self.url), [f"+{REF}:{REF}"], "--depth=1")
        return git, git.attempt(
            *arguments, credential=self.credential(), timeout=GIT_TIMEOUT_SECONDS
        )

    def _push(
        self,
        git: HostGit,
        replaced: LedgerVersion,
        ledger: QuotaLedger,
        accompanying: AccompanyingPush,
    ) -> WorkspaceError | str:
        """Push the ledger in place of `replaced`. Return the new commit, or the push's error."""
        data = serialize_ledger(ledger, self.now())
        # A commit without parents: no history accumulates, and the fetch above always gets one
        # object of each kind. Because the new commit does not descend from the old one, the push is
        # never a fast-forward.
        ledger_commit = OrphanCommit(REF, "Ledger of runs", {FILE: data})
        commit, *other_ids = write_orphans(git, [ledger_commit, *accompanying.commits])
        refs = [f"{commit}:{REF}"]  # a leading "+" would force the push, lease or not
        if replaced.tip and (replaced.ledger.damaged or not replaced.ledger.readable):
            logger.warning("invalid content of the quota ledger is replaced: %s", replaced.tip)
        refs += [
            f"+{id}:{other.ref}" for id, other in zip(other_ids, accompanying.commits, strict=True)
        ]
        refs += [f":{ref}" for ref in accompanying.obsolete]
        # The compare-and-swap: the server updates the ref only if its value is still
        # `replaced.tip`; an empty value means that the ref must not exist. See
        # `--force-with-lease=<refname>:<expect>` in https://git-scm.com/docs/git-push
        arguments = (
            "push", "--porcelain", "--no-verify", f"--force-with-lease={REF}:{replaced.tip}", "--",
            check_url(self.url), *refs,
        )  # fmt: skip
        result = git.attempt(
            *arguments, credential=self.credential(), limit=100_000, timeout=GIT_TIMEOUT_SECONDS
        )
        if result.status == 0:
            return commit
        combined = GitResult(
            result.status, b"", result.stdout.decode("utf-8", "replace") + result.stderr
        )
        return git_failure(arguments, combined, "writing the quota ledger")
