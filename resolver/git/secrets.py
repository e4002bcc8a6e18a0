"""Finds Resolver's own secrets in a change, and removes them from the patch that is kept.

It searches the files and not only the diff, in which binary files are compressed.
"""

import re
from typing import Protocol

from resolver.git.tree import TreeChange, growth, quote, read_blobs, read_changes
from resolver.git.workspace import Workspace
from resolver.models.run import FileChange, Patch

_BINARY = re.compile(rb"^GIT binary patch\n(?:.+\n)+\n(?:(?:.+\n)+\n)?", re.MULTILINE)
_ADDED = re.compile(rb"^\+.*$", re.MULTILINE)


class SecretMatcher(Protocol):
    """Recognizes the secrets of a run."""

    def holds_secret(self, text: str) -> bool: ...

    def redact_text(self, text: str) -> str: ...


def withhold_secrets(
    workspace: Workspace, patch: Patch, redactor: SecretMatcher, max_bytes: int
) -> tuple[Patch, tuple[str, ...]]:
    """Return the patch without secrets in its diff and file names, and the names of leaking files.

    A leaking file is one that the change adds a secret to. max_bytes: if the files grow by more,
    their content is not searched; binary content is then left out of the diff as well. A change of
    that size can't be published.
    """
    changes = read_changes(workspace.git, patch.base, patch.tree)
    too_large = growth(workspace.git, changes) > max_bytes
    leaking = {c.path for c in changes if redactor.holds_secret(quote(c.path))}
    if not too_large:
        leaking |= _bringing_in(workspace, patch, changes, redactor)
    diff = patch.diff
    if leaking or too_large:
        diff = _BINARY.sub(b"Binary content left out\n", diff)
    if redactor.holds_secret(_text(diff)):
        diff = redactor.redact_text(_text(diff)).encode("utf-8", "surrogateescape")
    files = tuple(_renamed(file, redactor) for file in patch.files)
    names = tuple(redactor.redact_text(quote(path)) for path in sorted(leaking))
    return patch.model_copy(update={"diff": diff, "files": files}), names


def _bringing_in(
    workspace: Workspace, patch: Patch, changes: tuple[TreeChange, ...], redactor: SecretMatcher
) -> set[bytes]:
    """Return the paths of the files that the change adds a secret to."""
    blobs = {b for c in changes for b in (c.old_blob, c.new_blob) if b is not None}
    # NUL bytes are removed, so that UTF-16 text can be searched like ASCII.
    holding = {
        blob
        for blob, data in read_blobs(workspace.git, blobs)
        if redactor.holds_secret(_text(data.replace(b"\0", b"")))
    }
    # A secret may be a plain word that was in the file before, such as the password of a test
    # database. So a file that had a secret counts only if some line added by the change has one.
    added = redactor.holds_secret(_text(b"\n".join(_ADDED.findall(patch.diff))))
    return {
        c.path for c in changes if c.new_blob in holding and (added or c.old_blob not in holding)
    }


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _renamed(file: FileChange, redactor: SecretMatcher) -> FileChange:
    if not redactor.holds_secret(file.path):
        return file
    return file.model_copy(update={"path": redactor.redact_text(file.path)})
