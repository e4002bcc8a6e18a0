"""The ledger's place: a commit without parents under `refs/resolver/ledger` of the repository
itself, which no branch leads to and no clone fetches.

It is changed by compare-and-swap: a push takes effect only where the ref still is what was read, so
that two runs on two machines never lose each other's entries.
"""

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
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
    failure,
    fetching,
    new_bare,
)
from resolver.git.remote import check_url
from resolver.github.events.quota_ledger import (
    MOST_BYTES,
    KeptLedger,
    QuotaLedger,
    read_ledger,
    serialize_ledger,
)

logger = logging.getLogger("resolver.runs.quotas")

REF = "refs/resolver/ledger"
DAMAGED = "refs/resolver/ledger-damaged"
"""Where a ledger is put that has lines which are no entries, before it is written anew."""

FILE = "ledger.jsonl"

SECONDS = 30.0
"""One git command may take so long."""

PATIENCE = 120.0
"""Seconds for which a change is tried while others keep coming first."""

TROUBLES = 3
"""Attempts when the server fails."""

_NOT_THERE = re.compile(r"(?:couldn't|could not) find remote ref", re.IGNORECASE)
_WIDE = re.compile(r"mismatched algorithms|unsupported object format|sha256", re.IGNORECASE)
_OTHERS_FIRST = re.compile(
    r"\[rejected\]|stale info|fetch first|non-fast-forward|cannot lock ref|failed to update ref"
    r"|incorrect old value|already exists|failed to lock"
)
_REFUSED = re.compile(
    r"returned error: 4\d\d|HTTP 4\d\d|Authentication failed|hook declined|protected|denied"
)

Answer = TypeVar("Answer")
Change = Callable[[QuotaLedger], tuple[QuotaLedger | None, Answer]]
"""From the ledger to what it is to be (None: as it is), and what comes of it. May be asked again,
with what the ledger has become in between."""


@dataclass(frozen=True)
class LedgerRef:
    """One repository's. Errors are WorkspaceError: it can't be reached, or not be written; and
    ForgeError where there is no token.

    credential: asked for each time, because a token may end.
    """

    url: str
    credential: Callable[[], Credential | None]
    now: Clock = utc_now
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random
    clock: Callable[[], float] = time.monotonic

    def read(self) -> QuotaLedger:
        """As it is now."""
        with temporary_directory() as folder:
            _, kept = self._fetched(folder)
        return kept.ledger

    def tip(self) -> str:
        """What the ref names now, "" for nothing: cheaper to ask than what is in it."""
        args = ("ls-remote", "--", check_url(self.url), REF)
        done = HostGit().attempt(*args, credential=self.credential(), limit=10_000, timeout=SECONDS)
        if done.status != 0:
            raise failure(args, done, "looking for the ledger of runs")
        lines = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
        return next((each[0] for each in lines if each[1:] == [REF]), "")

    def change(self, change: Change[Answer]) -> Answer:
        """Change it, over and over until nobody else has come first."""
        return self.change_from(None, change)[0]

    def change_from(
        self, known: KeptLedger | None, change: Change[Answer]
    ) -> tuple[Answer, KeptLedger]:
        """The same; and the ledger as it then is. known: as this run has last kept it: it is read
        anew only where others have changed it since."""
        end, pause, troubles = self.clock() + PATIENCE, 0.2, 0
        with temporary_directory() as folder:
            while True:
                git, kept = self._known(folder, known) or self._fetched(folder)
                ledger, answer = change(kept.ledger)
                if ledger is None and known is None:
                    return answer, kept
                # That nothing is to be done is decided on what was read, not on what is remembered.
                known = None
                if ledger is None:
                    continue
                pushed = self._pushed(git, kept, ledger)
                if isinstance(pushed, str):
                    return answer, KeptLedger(ledger, pushed)
                if not _OTHERS_FIRST.search(pushed.what):
                    troubles += 1
                if troubles >= TROUBLES or _REFUSED.search(pushed.what) or self.clock() > end:
                    raise pushed
                self.sleep(pause * (0.5 + self.chance()))
                pause = min(pause * 1.5, 1.5)

    def _known(self, folder: Path, known: KeptLedger | None) -> tuple[HostGit, KeptLedger] | None:
        """A repository to write a ledger in that is known; None where it is to be read first."""
        if known is None or not known.tip or known.ledger.damaged or not known.ledger.readable:
            return None
        wide = len(known.tip) == 64
        return new_bare(folder / ("sha256.git" if wide else "sha1.git"), wide=wide), known

    def _fetched(self, folder: Path) -> tuple[HostGit, KeptLedger]:
        """The ledger, in a repository of ours."""
        git, done = self._fetch(folder / "sha1.git", wide=False)
        if done.status != 0 and _WIDE.search(done.stderr):
            git, done = self._fetch(folder / "sha256.git", wide=True)
        if done.status != 0:
            if _NOT_THERE.search(done.stderr):
                return git, KeptLedger(QuotaLedger())
            raise failure(("fetch",), done, "reading the ledger of runs")
        tip = git.text("rev-parse", "--verify", REF)
        found = git.attempt("cat-file", "blob", f"{REF}:{FILE}", limit=MOST_BYTES, timeout=SECONDS)
        if found.status != 0 or found.truncated:
            return git, KeptLedger(QuotaLedger(readable=False), tip)
        return git, KeptLedger(read_ledger(found.stdout, self.now()), tip)

    def _fetch(self, folder: Path, *, wide: bool) -> tuple[HostGit, GitResult]:
        git = HostGit(git_dir=folder) if folder.exists() else new_bare(folder, wide=wide)
        args = fetching(check_url(self.url), [f"+{REF}:{REF}"], "--depth=1")
        return git, git.attempt(*args, credential=self.credential(), timeout=SECONDS)

    def _pushed(self, git: HostGit, kept: KeptLedger, ledger: QuotaLedger) -> WorkspaceError | str:
        """Put it where the other was; the commit that has it, or the error where that is not there
        any more, or it can't be done."""
        data = serialize_ledger(ledger, self.now())
        blob = git.text("hash-object", "-w", "--stdin", stdin=data)
        tree = git.text("mktree", stdin=f"100644 blob {blob}\t{FILE}\n".encode())
        commit = git.text("commit-tree", "--no-gpg-sign", "-m", "Ledger of runs", tree)
        refs = [f"{commit}:{REF}"]  # a plus would push past the lease
        if kept.tip and (kept.ledger.damaged or not kept.ledger.readable):
            logger.warning("what is no entry of the ledger of runs is kept as %s", DAMAGED)
            refs.append(f"+{kept.tip}:{DAMAGED}")
        args = (
            "push", "--porcelain", "--no-verify", f"--force-with-lease={REF}:{kept.tip}", "--",
            check_url(self.url), *refs,
        )  # fmt: skip
        done = git.attempt(*args, credential=self.credential(), limit=100_000, timeout=SECONDS)
        if done.status == 0:
            return commit
        said = GitResult(done.status, b"", done.stdout.decode("utf-8", "replace") + done.stderr)
        return failure(args, said, "writing the ledger of runs")
