"""Stores the quota ledger in the repository itself, as a commit without parents under
`refs/resolver/ledger`. No branch contains the commit and no ordinary clone fetches it.

It is changed by compare-and-swap: a push takes effect only if the ref still has the value that was
read, so that two runs on two machines never lose each other's entries. Jobs of GitHub Actions have
no server and no storage in common except the repository, which is why the ledger is there.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
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
"""How long a change is tried again while other runs push first, or the server fails."""

_REF_MISSING = re.compile(r"(?:couldn't|could not) find remote ref", re.IGNORECASE)
# Messages of git and of servers for a push that lost the race.
_LOST_RACE = re.compile(
    r"\[rejected\]|stale info|fetch first|non-fast-forward|cannot lock ref|failed to update ref"
    r"|incorrect old value|already exists|failed to lock"
)


@dataclass(frozen=True)
class LedgerRef:
    """The quota ledger of one repository.

    credential: called for each git command, because a token may expire. Methods raise
    WorkspaceError if the ledger can't be reached or written, and ForgeError if there is no token.
    """

    url: str
    credential: Callable[[], Credential | None]
    now: Clock = utc_now
    retries: RetryPolicy = RETRIES

    def read(self) -> QuotaLedger:
        """Return the current ledger."""
        with temporary_directory() as folder:
            return self._fetch(create_bare_repository(folder / "ledger.git"))[0]

    def change(self, change: Change[Answer]) -> Answer:
        """Change the ledger, with retries until no other run has pushed first, and return the
        answer."""

        def attempt() -> Answer:
            with temporary_directory() as folder:
                return self._change_once(folder, change)

        return self.retries.call(attempt, _wait_after, _log_wait)

    def _change_once(self, folder: Path, change: Change[Answer]) -> Answer:
        git = create_bare_repository(folder / "ledger.git")
        ledger, tip = self._fetch(git)
        changed, answer = change(ledger)
        if changed is not None:
            if ledger.damaged or not ledger.readable:
                logger.warning("invalid content of the quota ledger is replaced: %s", tip)
            self._push(git, tip, changed)
        return answer

    def _fetch(self, git: HostGit) -> tuple[QuotaLedger, str]:
        """Fetch the ledger and return it with its commit, "" if there is none."""
        arguments = fetch_arguments(check_url(self.url), [f"+{REF}:{REF}"], "--depth=1")
        result = git.attempt(*arguments, credential=self.credential(), timeout=GIT_TIMEOUT_SECONDS)
        if result.status != 0:
            if _REF_MISSING.search(result.stderr):
                return QuotaLedger(), ""
            raise git_failure(arguments, result, "reading the quota ledger")
        tip = git.text("rev-parse", "--verify", REF)
        content = git.attempt(
            "cat-file", "blob", f"{REF}:{FILE}", limit=MAX_LEDGER_BYTES, timeout=GIT_TIMEOUT_SECONDS
        )
        if content.status != 0 or content.truncated:
            return QuotaLedger(readable=False), tip
        return read_ledger(content.stdout, self.now()), tip

    def _push(self, git: HostGit, replaced: str, ledger: QuotaLedger) -> None:
        """Push the ledger in place of the commit `replaced`. Raises WorkspaceError."""
        data = serialize_ledger(ledger, self.now())
        # A commit without parents: no history accumulates, and the fetch above always gets one
        # object of each kind. Because the new commit does not descend from the old one, the push is
        # never a fast-forward.
        [commit] = write_orphans(git, [OrphanCommit(REF, "Ledger of runs", {FILE: data})])
        # The compare-and-swap: the server updates the ref only if its value is still `replaced`; an
        # empty value means that the ref must not exist. A leading "+" would force the push, lease
        # or not. See `--force-with-lease=<refname>:<expect>` in https://git-scm.com/docs/git-push
        arguments = (
            "push", "--porcelain", "--no-verify", f"--force-with-lease={REF}:{replaced}", "--",
            check_url(self.url), f"{commit}:{REF}",
        )  # fmt: skip
        result = git.attempt(
            *arguments, credential=self.credential(), limit=100_000, timeout=GIT_TIMEOUT_SECONDS
        )
        if result.status != 0:
            text = result.stdout.decode("utf-8", "replace") + result.stderr
            failed = GitResult(result.status, b"", text)
            raise git_failure(arguments, failed, "writing the quota ledger")


def _wait_after(error: ResolverError) -> float | None:
    """Return the seconds to wait before the next attempt, None if it can't help."""
    may_pass = error.cause in OUTAGES or _LOST_RACE.search(error.what) is not None
    # Jitter, so that runs that collided do not collide again.
    return random() if may_pass else None  # noqa: S311 - not a secret


def _log_wait(error: ResolverError, wait: float) -> None:
    logger.debug("%s; trying again in %.1f seconds", error.what, wait)
