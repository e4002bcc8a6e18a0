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
from typing import TypeVar

from resolver.config.temporary_directory import temporary_directory
from resolver.errors import WorkspaceError
from resolver.events.stream import Clock, utc_now
from resolver.git.git import (
    Credential,
    GitResult,
    HostGit,
    create_bare_repository,
    failure,
    fetch_arguments,
)
from resolver.git.orphan_commits import OrphanCommit, write_orphans
from resolver.git.remote import check_url
from resolver.github.events.quota_ledger import (
    MAX_LEDGER_BYTES,
    KeptLedger,
    QuotaLedger,
    read_ledger,
    serialize_ledger,
)

logger = logging.getLogger("resolver.runs.quotas")

REF = "refs/resolver/ledger"
DAMAGED = "refs/resolver/ledger-damaged"
"""Ref that keeps a ledger with invalid lines, before a valid one replaces it."""

FILE = "ledger.jsonl"

SECONDS = 30.0
"""Timeout of one git command in seconds."""

PATIENCE = 120.0
"""Seconds for which a change is retried while other runs keep pushing first."""

TROUBLES = 3
"""Maximum number of attempts if the server fails."""

_NOT_THERE = re.compile(r"(?:couldn't|could not) find remote ref", re.IGNORECASE)
_WIDE = re.compile(r"mismatched algorithms|unsupported object format|sha256", re.IGNORECASE)
# Messages of git and of servers for a push that lost the race, which is worth another attempt, and
# for one that is not allowed, which is not.
_OTHERS_FIRST = re.compile(
    r"\[rejected\]|stale info|fetch first|non-fast-forward|cannot lock ref|failed to update ref"
    r"|incorrect old value|already exists|failed to lock"
)
_REFUSED = re.compile(
    r"returned error: 4\d\d|HTTP 4\d\d|Authentication failed|hook declined|protected|denied"
)

Answer = TypeVar("Answer")
Change = Callable[[QuotaLedger], tuple[QuotaLedger | None, Answer]]
"""Returns the new ledger (None to leave it unchanged) and an answer for the caller. It may be
called more than once, with the newer ledger, if other runs have pushed first."""


@dataclass(frozen=True)
class AccompanyingPush:
    """What is pushed together with the ledger, whether or not the ledger is accepted.

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
            _, kept = self._fetched(folder)
        return kept.ledger

    def tip(self) -> str:
        """Return the object id of the ref, "" if there is none. This is cheaper than reading the
        ledger."""
        args = ("ls-remote", "--", check_url(self.url), REF)
        done = HostGit().attempt(*args, credential=self.credential(), limit=10_000, timeout=SECONDS)
        if done.status != 0:
            raise failure(args, done, "looking for the quota ledger")
        lines = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
        return next((each[0] for each in lines if each[1:] == [REF]), "")

    def change(self, change: Change[Answer]) -> Answer:
        """Change the ledger, with retries until no other run has pushed first, and return the
        answer."""
        return self.change_from(None, change)[0]

    def change_from(
        self,
        known: KeptLedger | None,
        change: Change[Answer],
        more: AccompanyingPush = AccompanyingPush(),
    ) -> tuple[Answer, KeptLedger]:
        """Change the ledger as `change` does. Return the answer and the new ledger.

        known: the ledger as it was last seen, None if it was not. It is used without reading, and
        the push fails if another run has changed it since; only then is it fetched.
        more: pushed as well if the ledger changes; all of its commits are there on return then.
        """
        end, pause, troubles = self.clock() + PATIENCE, 0.2, 0
        with temporary_directory() as folder:
            while True:
                git, kept = self._known(folder, known) or self._fetched(folder)
                ledger, answer = change(kept.ledger)
                if ledger is None and known is None:
                    return answer, kept
                # `known` may be out of date, so only a freshly read ledger can decide that nothing
                # is to be changed.
                known = None
                if ledger is None:
                    continue
                pushed = self._pushed(git, kept, ledger, more)
                # Removing a ref that is gone already makes git push nothing at all.
                more = replace(more, obsolete=())
                if isinstance(pushed, str):
                    return answer, KeptLedger(ledger, pushed, pushed=True)
                if not _OTHERS_FIRST.search(pushed.what):
                    troubles += 1
                if troubles >= TROUBLES or _REFUSED.search(pushed.what) or self.clock() > end:
                    raise pushed
                # Jitter, so that runs that collided do not collide again.
                self.sleep(pause * (0.5 + self.chance()))
                pause = min(pause * 1.5, 1.5)

    def _known(self, folder: Path, known: KeptLedger | None) -> tuple[HostGit, KeptLedger] | None:
        """Return an empty repository and the known ledger; None if the ledger must be fetched
        first."""
        if known is None or known.ledger.damaged or not known.ledger.readable:
            return None
        wide = known.is_sha256 or len(known.tip) == 64
        return create_bare_repository(
            folder / ("sha256.git" if wide else "sha1.git"), sha256=wide
        ), known

    def _fetched(self, folder: Path) -> tuple[HostGit, KeptLedger]:
        """Fetch the ledger into a temporary repository."""
        git, done = self._fetch(folder / "sha1.git", wide=False)
        if done.status != 0 and _WIDE.search(done.stderr):
            git, done = self._fetch(folder / "sha256.git", wide=True)
        if done.status != 0:
            if _NOT_THERE.search(done.stderr):
                return git, KeptLedger(QuotaLedger())
            raise failure(("fetch",), done, "reading the quota ledger")
        tip = git.text("rev-parse", "--verify", REF)
        found = git.attempt(
            "cat-file", "blob", f"{REF}:{FILE}", limit=MAX_LEDGER_BYTES, timeout=SECONDS
        )
        if found.status != 0 or found.truncated:
            return git, KeptLedger(QuotaLedger(readable=False), tip)
        return git, KeptLedger(read_ledger(found.stdout, self.now()), tip)

    def _fetch(self, folder: Path, *, wide: bool) -> tuple[HostGit, GitResult]:
        """Fetch the ref. wide: True for a repository with SHA-256 object ids."""
        git = (
            HostGit(git_dir=folder)
            if folder.exists()
            else create_bare_repository(folder, sha256=wide)
        )
        args = fetch_arguments(check_url(self.url), [f"+{REF}:{REF}"], "--depth=1")
        return git, git.attempt(*args, credential=self.credential(), timeout=SECONDS)

    def _pushed(
        self, git: HostGit, kept: KeptLedger, ledger: QuotaLedger, more: AccompanyingPush
    ) -> WorkspaceError | str:
        """Push the ledger in place of `kept`. Return the new commit, or the error of the push."""
        data = serialize_ledger(ledger, self.now())
        # A commit without parents: no history accumulates, and the fetch above always gets one
        # object of each kind. Because the new commit does not descend from the old one, the push is
        # never a fast-forward.
        made = OrphanCommit(REF, "Ledger of runs", {FILE: data})
        commit, *others = write_orphans(git, [made, *more.commits])
        refs = [f"{commit}:{REF}"]  # a leading "+" would force the push, lease or not
        if kept.tip and (kept.ledger.damaged or not kept.ledger.readable):
            logger.warning("a ref that is not a quota ledger was kept as %s", DAMAGED)
            refs.append(f"+{kept.tip}:{DAMAGED}")
        refs += [f"+{id}:{each.ref}" for id, each in zip(others, more.commits, strict=True)]
        refs += [f":{ref}" for ref in more.obsolete]
        # The compare-and-swap: the server updates the ref only if its value is still `kept.tip`; an
        # empty value means that the ref must not exist. See `--force-with-lease=<refname>:<expect>`
        # in https://git-scm.com/docs/git-push
        args = (
            "push", "--porcelain", "--no-verify", f"--force-with-lease={REF}:{kept.tip}", "--",
            check_url(self.url), *refs,
        )  # fmt: skip
        done = git.attempt(*args, credential=self.credential(), limit=100_000, timeout=SECONDS)
        if done.status == 0:
            return commit
        said = GitResult(done.status, b"", done.stdout.decode("utf-8", "replace") + done.stderr)
        return failure(args, said, "writing the quota ledger")
