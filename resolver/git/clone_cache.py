"""A cache of bare repositories on the host, so that objects of earlier runs are not fetched again.

There is one for each URL. A run fetches from the server into it, with its own token, and then from
it what the server has just given. The cache only saves bytes: which commits a run may have is
decided by the server.
"""

import fcntl
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resolver.errors import WorkspaceError
from resolver.git.git import Credential, HostGit, create_bare_repository
from resolver.git.remote import fetch

MAX_CACHE_BYTES = 20 << 30
"""Maximum size of the whole folder. The least recently used clones are removed first."""

CLONES_FOLDER = "clones"
"""Name of the folder within the host's cache folder."""

logger = logging.getLogger("resolver.git")


@dataclass(frozen=True)
class CloneCache:
    """The cached clones in `folder`, to which only the host has access."""

    folder: Path

    def fetch(
        self,
        git: HostGit,
        url: str,
        tips: Mapping[str, str],
        options: Sequence[str],
        credential: Credential | None,
    ) -> bool:
        """Fetch commits from the server into the cache, and from there into the clone.

        tips: the ids of the commits by the refs of the clone.
        options: of git, for the depth.

        Returns False if that fails, whatever the reason, or if another process uses the cached
        clone of this address at the moment.
        """
        path = self.folder / f"{hashlib.sha256(url.encode()).hexdigest()}.git"
        try:
            with self._lock(path.with_suffix(".lock")) as has_lock:
                if not has_lock:
                    return False
                try:
                    is_new = not path.is_dir()
                    cached = create_bare_repository(path) if is_new else HostGit(git_dir=path)
                    names = [f"+{commit}:refs/cached/{n}" for n, commit in enumerate(tips.values())]
                    fetch(cached, url, names, options, credential)
                    os.utime(path)
                    commits = [f"+{commit}:{ref}" for ref, commit in tips.items()]
                    fetch(git, str(path), commits, options, None)
                except WorkspaceError as error:
                    if not error.cause:
                        # It may be damaged. The lock is still held: no other run is using it.
                        shutil.rmtree(path, ignore_errors=True)
                    raise
                for old in list(self._clones_over_limit()):
                    # A run that is reading it fetches from the network instead.
                    shutil.rmtree(old, ignore_errors=True)
                return True
        except (WorkspaceError, OSError) as error:
            logger.warning("the cached clone of %s was not used: %s", url, error)
            return False

    @contextmanager
    def _lock(self, path: Path) -> Iterator[bool]:
        """Yield True if this process holds the lock of a clone, False if another process does."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(path, "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    def _clones_over_limit(self) -> Iterator[Path]:
        """Yield the clones that exceed the limit, the least recently used first to go; never the
        newest one."""
        total = 0
        clones = [path for path in self.folder.iterdir() if path.is_dir()]
        newest_first = sorted(clones, key=lambda path: path.stat().st_mtime, reverse=True)
        for path in newest_first:
            total += sum(entry.lstat().st_size for entry in path.rglob("*"))
            if path != newest_first[0] and total > MAX_CACHE_BYTES:
                yield path
