"""Keeps the results of checks at base commits, so that later runs don't execute them again.

A change can't influence what is stored: only executions at a base commit are written, and the key
is made of the repository, the commit's tree, the environment and the command.
"""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from resolver.models.verification import CheckExecution, ProjectCheck

FORMAT = 3
"""Version of the stored form and of the way in which checks are executed; a part of the key."""

MAX_FILES = 500
"""Number of results that are kept; the oldest are removed first."""


def execution_key(environment: str, tree: str, check: ProjectCheck, repetition: int = 0) -> str:
    """Return the digest of everything that decides the result of an execution.

    environment: identifies the repository, the image with its set-up, and the sandbox's limits.
    """
    parts: dict[str, object] = {
        "format": FORMAT,
        "environment": environment,
        "tree": tree,
        "command": check.command,
        "variables": check.environment,
        "report": check.report,
        "report_format": check.report_format,
        "timeout": check.timeout_seconds,
        "repetition": repetition,
    }
    if check.files:
        parts["files"] = check.files
    if check.services:
        parts["services"] = [service.model_dump() for service in check.services]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def digest_of(parts: Mapping[str, object]) -> str:
    """Return the digest of named values that describe an environment."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class BaseResults:
    """Results of checks at base commits, one file each in `folder`.

    A result that can't be read or written is only executed again.
    """

    folder: Path

    def find(self, key: str) -> CheckExecution | None:
        """Return the stored result, None if there is none."""
        try:
            return CheckExecution.model_validate_json(self._file(key).read_bytes())
        except (OSError, ValidationError):
            return None

    def store(self, key: str, execution: CheckExecution) -> None:
        """Store a complete result. One that was ended at its time limit is not stored."""
        if execution.exit_code is None or not execution.report_complete:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile("wb", dir=self.folder, delete=False) as file:
                file.write(execution.model_dump_json().encode())
            Path(file.name).replace(self._file(key))
            self._remove_oldest()

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _remove_oldest(self) -> None:
        files = sorted(self.folder.glob("*.json"), key=lambda f: f.stat().st_mtime)
        for file in files[:-MAX_FILES]:
            file.unlink(missing_ok=True)
