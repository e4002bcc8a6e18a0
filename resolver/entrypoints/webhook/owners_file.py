"""Reads the settings of owners again when their file changes, without a restart of the server."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resolver.config.settings import Settings
from resolver.entrypoints.webhook.owner_settings import (
    OwnerSettings,
    choose_settings,
    read_owner_settings,
)
from resolver.errors import UsageError

logger = logging.getLogger("resolver.entrypoints.webhook")

MIN_AGE_SECONDS = 2.0
"""How long a file has to be unchanged before it is read. An editor empties a file before it writes
it, and half a file can be valid: an owner that is missing in it would get the server's key."""

LearnSecret = Callable[[str], None]

_Version = tuple[int, int, int]
"""What differs between two versions of a file: its inode, size, and time of change in ns."""


@dataclass(frozen=True)
class _Reading:
    """The content of the file. loaded: the complete settings of each owner."""

    version: _Version | None
    owners: OwnerSettings = field(default_factory=OwnerSettings)
    loaded: Mapping[str, Settings] = field(default_factory=dict)


class OwnersFile:
    """The settings of owners in a file, as it is now. Thread-safe.

    If something in a changed file is wrong, the settings before the change stay, and the log says
    so once. Active runs keep the settings with which they started.

    settings: those of the server, which name the file. options, environment: their sources.
    learn_secret: is called with each secret in the file before anything can use it. clock: seconds
    since 1970. Raises UsageError if the file can't be used.
    """

    def __init__(
        self,
        settings: Settings,
        options: Mapping[str, Any],
        environment: Mapping[str, str],
        learn_secret: LearnSecret,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._options, self._environment = options, environment
        self._learn_secret, self._clock = learn_secret, clock
        self._server_settings, self._path = settings, settings.server.owners_file
        self._lock = threading.Lock()
        self._reading = self._read(_version_of(self._path))

    def current(self) -> OwnerSettings:
        """Return the settings that the file has."""
        self._refresh()
        return self._reading.owners

    def settings_for(self, repository: str) -> Settings:
        """Return the settings of a repository's owner, or else those of the server."""
        self._refresh()
        return choose_settings(self._server_settings, self._reading.loaded, repository)

    def _refresh(self) -> None:
        """Read the file if it has changed."""
        version = _version_of(self._path)
        if version == self._reading.version or not self._is_complete(version):
            return
        with self._lock:
            before = self._reading
            if version == before.version:
                return  # another thread has read it
            try:
                self._reading = self._read(version)
            except UsageError as error:
                self._reading = _Reading(version, before.owners, before.loaded)
                logger.error(
                    "the changed settings of owners are not used, and those before the change stay:"
                    " %s; %s",
                    error.what,
                    error.next_step,
                )
            else:
                logger.info("the changed settings of owners are used for runs that start now")

    def _is_complete(self, version: _Version | None) -> bool:
        """Return False for a file that may still be written."""
        return version is None or not 0 <= self._clock() - version[2] / 1e9 < MIN_AGE_SECONDS

    def _read(self, version: _Version | None) -> _Reading:
        owners = read_owner_settings(self._path)
        loaded = owners.load_all(self._options, self._environment)
        for settings in loaded.values():
            for secret in settings.secrets:
                self._learn_secret(secret)
        return _Reading(version, owners, loaded)


def _version_of(path: str) -> _Version | None:
    """Return the version of the file; None if there is none."""
    if not path:
        return None
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
