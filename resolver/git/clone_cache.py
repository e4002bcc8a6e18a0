"""A cache of clones on the host, so that commits of earlier runs are not fetched again.

It has one bare repository per URL, which each newer clone replaces as a whole. So its size is that
of one clone, and concurrent runs don't interfere with each other. The cache is only a source of
objects: which commits a run may have is decided by what the server shows to the run's own token.
"""

import fcntl
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from resolver.errors import WorkspaceError
from resolver.git.git import HostGit, create_bare_repository
from resolver.git.remote import fetch

MAX_CACHED_CLONES = 50
"""Maximum number of cached clones."""
MAX_CACHE_BYTES = 20 << 30
"""Maximum size of the whole folder. The least recently used clones are removed first."""

CLONES_FOLDER = "clones"
"""Name of the folder within the host's cache folder."""

_CACHED_PREFIX = "refs/resolver/cached"

logger = logging.getLogger("resolver.git")


@dataclass(frozen=True)
class CloneCache:
    """The cached clones in `folder`, to which only the host has access."""

    folder: Path

    def fetch(self, git: HostGit, url: str, commits: Collection[str]) -> None:
        """Fetch those commits that the cache has into the clone, each as a shallow boundary.

        url: where the caller found these commits with its own credential. An unusable cache is
        treated as an empty one.
        """
        cached = self._path(url)
        if not cached.is_dir():
            return
        try:
            listing = "".join(f"{commit}\n" for commit in commits).encode()
            args = ("cat-file", "--batch-check=%(objectname)")
            objects = HostGit(git_dir=cached).text(*args, stdin=listing).splitlines()
            cached_commits = [line for line in objects if not line.endswith(" missing")]
            # With refs, git tells the server that it has these commits, so that the server sends
            # only what differs: https://git-scm.com/docs/gitprotocol-v2#_fetch ("have" lines)
            refspecs = [f"+{commit}:{_CACHED_PREFIX}/{commit}" for commit in cached_commits]
            if refspecs:
                fetch(git, str(cached), refspecs, ["--depth=1"], None)
                os.utime(cached)
        except (WorkspaceError, OSError) as error:
            logger.warning("the cached clone of %s was not used: %s", url, error)

    def keep(self, git: HostGit, url: str) -> None:
        """Replace the cached clone of the URL with this clone.

        Does nothing if another process writes to the cache at the moment.
        """
        clone = Path(git.text("rev-parse", "--absolute-git-dir"))
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._lock() as has_lock:
                if has_lock:
                    self._replace(clone, self._path(url), is_sha256=_uses_sha256(git))
                    self.remove(tuple(self._clones_over_limits()))
        except (WorkspaceError, OSError) as error:
            logger.warning("the clone of %s was not cached: %s", url, error)

    def older_than(self, moment: datetime) -> tuple[Path, ...]:
        """Return the clones last used before `moment`, and leftovers of killed runs before that."""
        return tuple(
            path for path, last_used, _ in self._list_clones() if last_used < moment.timestamp()
        )

    def remove(self, clones: Collection[Path]) -> None:
        """Delete cached clones. A run that is reading one fetches from the network instead."""
        for path in clones:
            shutil.rmtree(path, ignore_errors=True)

    def _path(self, url: str) -> Path:
        return self.folder / f"{hashlib.sha256(url.encode()).hexdigest()}.git"

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        """Yield True if this process holds the cache's lock, False if another process does."""
        with open(self.folder / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True

    def _replace(self, clone: Path, cached: Path, *, is_sha256: bool) -> None:
        """Copy the objects of the clone to a new repository and replace the cached one with that.

        A reader never sees a half-copied repository; for a moment between two renames, it sees
        none.
        """
        with tempfile.TemporaryDirectory(prefix="new-", dir=self.folder) as temporary:
            new, old = Path(temporary) / "new.git", Path(temporary) / "old.git"
            create_bare_repository(new, sha256=is_sha256)
            shutil.copytree(
                clone / "objects", new / "objects", dirs_exist_ok=True, copy_function=_link_or_copy
            )
            if (clone / "shallow").is_file():
                shutil.copyfile(clone / "shallow", new / "shallow")
            if cached.is_dir():
                cached.rename(old)
            new.rename(cached)

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


def _uses_sha256(git: HostGit) -> bool:
    return git.text("rev-parse", "--show-object-format") == "sha256"


def _link_or_copy(source: str, target: str) -> str:
    """Make a hard link, or a copy where links are not possible.

    Hard links are safe because git never modifies an object file.
    """
    try:
        os.link(source, target)
        return target
    except OSError:
        return shutil.copy2(source, target)
