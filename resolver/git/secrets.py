"""Our own secrets in a change: which files bring one in, and the patch as it may be kept.

Looks at the files themselves: in a diff a binary file is compressed.
"""

import re
from typing import Protocol

from resolver.git.tree import TreeChange, growth, quote, read_blobs, read_changes
from resolver.git.workspace import Workspace
from resolver.models.run import FileChange, Patch

_BINARY = re.compile(rb"^GIT binary patch\n(?:.+\n)+\n(?:(?:.+\n)+\n)?", re.MULTILINE)
_ADDED = re.compile(rb"^\+.*$", re.MULTILINE)


class SecretMatcher(Protocol):
    """Knows the secrets."""

    def holds_secret(self, text: str) -> bool: ...

    def redact_text(self, text: str) -> str: ...


def withhold_secrets(
    workspace: Workspace, patch: Patch, redactor: SecretMatcher, max_bytes: int
) -> tuple[Patch, tuple[str, ...]]:
    """The patch without secrets in diff and file names, and the files that bring one in.

    max_bytes: where files grow by more, they are not looked into; their binary contents are then
        left out of the diff as well. Nothing of that size may be published.
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
    blobs = {b for c in changes for b in (c.old_blob, c.new_blob) if b is not None}
    # Without NUL bytes, UTF-16 reads like ASCII.
    holding = {
        blob
        for blob, data in read_blobs(workspace.git, blobs)
        if redactor.holds_secret(_text(data.replace(b"\0", b"")))
    }
    # A value as plain as a test database's password may have been in the file before.
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
