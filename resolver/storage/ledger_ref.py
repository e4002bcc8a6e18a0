"""Stores the quota ledger in the repository itself, as a commit without parents under
`refs/resolver/ledger`. No branch contains the commit and no ordinary clone fetches it.

It is changed by compare-and-swap: a push takes effect only if the ref still has the value that was
read, so that two runs on two machines never lose each other's entries. Jobs of GitHub Actions have
no server and no storage in common except the repository, which is why the ledger is there.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import random

from resolver.config.retries import RetryPolicy
from resolver.config.temporary_directory import temporary_directory
from resolver.errors import ResolverError
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
from resolver.models.known_failures import OUTAGES

logger = logging.getLogger("resolver.storage")

REF = "refs/resolver/ledger"
FILE = "ledger.jsonl"

GIT_TIMEOUT_SECONDS = 30.0
"""Timeout of one git command in seconds."""

RETRIES = RetryPolicy(seconds=120.0, first_wait_seconds=0.2, max_wait_seconds=1.5)
"""How long a change is tried again while other runs push first, or the server fails, by default."""

_REF_MISSING = re.compile(r"(?:couldn't|could not) find remote ref", re.IGNORECASE)
# Messages of git and of servers for a push that lost the race.
_LOST_RACE = re.compile(
    r"\[rejected\]|stale info|fetch first|non-fast-forward|cannot lock ref|failed to update ref"
    r"|incorrect old value|already exists|failed to lock"
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

    credential: called for each git command, because a token may expire.
    retries: while other runs push first, or the server fails.

    Methods raise WorkspaceError if the ledger can't be reached or written, and ForgeError if there
    is no token.
    """

    url: str
    credential: Callable[[], Credential | None]
    now: Clock = utc_now
    retries: RetryPolicy = RETRIES

    def read(self) -> QuotaLedger:
        """Return the current ledger."""
        with temporary_directory() as folder:
            return self._fetch_ledger(create_bare_repository(folder / "git")).ledger

    def change(
        self,
        change: Change[Answer],
        known: LedgerVersion | None = None,
        accompanying: AccompanyingPush = AccompanyingPush(),
    ) -> tuple[Answer, LedgerVersion]:
        """Change the ledger as `change` does, with retries until no other run has pushed first.
        Return the answer and the new ledger.

        known: the ledger as it was last seen, None if it was not. It is used without reading, and
        the push fails if another run has changed it since; only then is it fetched.
        accompanying: pushed as well if the ledger changes; on return, all of its commits are there.
        """
        is_usable = known and known.ledger.readable and not known.ledger.is_damaged
        # What only the first attempt uses: removing a ref that is gone makes git push nothing.
        first = [(known if is_usable else None, accompanying)]
        later = replace(accompanying, obsolete=())

        def attempt() -> tuple[Answer, LedgerVersion]:
            version, pushes = first.pop() if first else (None, later)
            with temporary_directory() as folder:
                git = create_bare_repository(folder / "git")
                ledger = None
                if version is not None:
                    ledger, answer = change(version.ledger)
                # `known` may be out of date, so only a freshly read ledger can decide that nothing
                # is to be changed.
                if version is None or ledger is None:
                    version = self._fetch_ledger(git)
                    ledger, answer = change(version.ledger)
                if ledger is None:
                    return answer, version
                commit = self._push(git, version, ledger, pushes)
                return answer, LedgerVersion(ledger, commit, pushed=True)

        return self.retries.call(attempt, _wait_after)

    def _fetch_ledger(self, git: HostGit) -> LedgerVersion:
        """Fetch the ledger into a temporary repository."""
        arguments = fetch_arguments(check_url(self.url), [f"+{REF}:{REF}"], "--depth=1")
        result = git.attempt(*arguments, credential=self.credential(), timeout=GIT_TIMEOUT_SECONDS)
        if result.status != 0:
            if _REF_MISSING.search(result.stderr):
                return LedgerVersion(QuotaLedger())
            raise git_failure(arguments, result, "reading the quota ledger")
        tip = git.text("rev-parse", "--verify", REF)
        content = git.attempt(
            "cat-file", "blob", f"{REF}:{FILE}", limit=MAX_LEDGER_BYTES, timeout=GIT_TIMEOUT_SECONDS
        )
        if content.status != 0 or content.truncated:
            return LedgerVersion(QuotaLedger(readable=False), tip)
        return LedgerVersion(read_ledger(content.stdout, self.now()), tip)

    def _push(
        self,
        git: HostGit,
        replaced: LedgerVersion,
        ledger: QuotaLedger,
        accompanying: AccompanyingPush,
    ) -> str:
        """Push the ledger in place of `replaced` and return the new commit. Raises
        WorkspaceError."""
        data = serialize_ledger(ledger, self.now())
        # A commit without parents: no history accumulates, and the fetch above always gets one
        # object of each kind. Because the new commit does not descend from the old one, the push is
        # never a fast-forward.
        ledger_commit = OrphanCommit(REF, "Ledger of runs", {FILE: data})
        commit, *other_ids = write_orphans(git, [ledger_commit, *accompanying.commits])
        refs = [f"{commit}:{REF}"]  # a leading "+" would force the push, lease or not
        if replaced.tip and (replaced.ledger.is_damaged or not replaced.ledger.readable):
            logger.warning("invalid content of the quota ledger is replaced: %s", replaced.tip)
        refs += [
            f"+{id}:{other.ref}" for id, other in zip(other_ids, accompanying.commits, strict=True)
        ]
        refs += [f":{ref}" for ref in accompanying.obsolete]
        # The compare-and-swap: the server updates the ref only if its value is still
        # `replaced.tip`; an empty value means that the ref must not exist. See
        # `--force-with-lease=<refname>:<expect>` in https://git-scm.com/docs/git-push
        arguments = (
            "push", "--porcelain", "--no-verify", f"--force-with-lease={REF}:{replaced.tip or ''}",
            "--", check_url(self.url), *refs,
        )  # fmt: skip
        result = git.attempt(
            *arguments, credential=self.credential(), limit=100_000, timeout=GIT_TIMEOUT_SECONDS
        )
        if result.status == 0:
            return commit
        text = result.stdout.decode("utf-8", "replace") + result.stderr
        failed = GitResult(result.status, b"", text)
        raise git_failure(arguments, failed, "writing the quota ledger")


def _wait_after(error: ResolverError) -> float | None:
    """Return the seconds to wait before the next attempt, None if it can't help."""
    if error.cause in OUTAGES:
        return 0.0
    # Jitter, so that runs that collided do not collide again.
    return random() if _LOST_RACE.search(error.what) else None  # noqa: S311 - not a secret
