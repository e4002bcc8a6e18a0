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
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from resolver.errors import WorkspaceError
from resolver.git.git import Credential, HostGit, create_bare_repository
from resolver.git.remote import fetch

MAX_CACHED_CLONES = 50
"""Maximum number of cached clones."""
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
                cached = HostGit(git_dir=path) if path.is_dir() else create_bare_repository(path)
                names = [f"+{commit}:refs/cached/{n}" for n, commit in enumerate(tips.values())]
                fetch(cached, url, names, options, credential)
                os.utime(path)
                commits = [f"+{commit}:{ref}" for ref, commit in tips.items()]
                fetch(git, str(path), commits, options, None)
                self.remove(tuple(self._clones_over_limits()))
                return True
        except (WorkspaceError, OSError) as error:
            logger.warning("the cached clone of %s was not used: %s", url, error)
            return False

    def older_than(self, moment: datetime) -> tuple[Path, ...]:
        """Return the clones last used before `moment`."""
        return tuple(
            path for path, last_used, _ in self._list_clones() if last_used < moment.timestamp()
        )

    def remove(self, clones: Collection[Path]) -> None:
        """Delete cached clones. A run that is reading one fetches from the network instead."""
        for path in clones:
            shutil.rmtree(path, ignore_errors=True)

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

    def _list_clones(self) -> list[tuple[Path, float, int]]:
        """Return path, time of last use, and size in bytes of each cached clone, newest first."""
        clones = []
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            if path.is_dir():
                size = sum(entry.lstat().st_size for entry in path.rglob("*"))
                clones.append((path, path.stat().st_mtime, size))
        return sorted(clones, key=lambda clone: -clone[1])

    def _clones_over_limits(self) -> Iterator[Path]:
        """Yield the clones that exceed the limits, never the newest one."""
        total = 0
        for number, (path, _, size) in enumerate(self._list_clones()):
            total += size
            if number and (number >= MAX_CACHED_CLONES or total > MAX_CACHE_BYTES):
                yield path


def remove_cached_clones(folder: Path, now: datetime, days: float) -> Iterator[str]:
    """Remove the cached clones that were not used for `days`, and yield their names."""
    cache = CloneCache(folder)
    for path in cache.older_than(datetime.fromtimestamp(now.timestamp() - days * 86_400, UTC)):
        cache.remove([path])
        yield path.name
