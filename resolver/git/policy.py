"""Decides whether a change may be published.

The policy compares trees in the host's own clone. It never parses the text of a diff, because a
diff can be ambiguous or truncated. A change that it rejects is kept with the run's output; it is
only not published.

Resolver's own secrets are searched for in the files and not only in the diff, in which binary files
are compressed. They are removed from the patch that is kept.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from itertools import takewhile

from resolver.errors import PolicyViolation
from resolver.git.deceptive_text import find_deceptive_text
from resolver.git.tree import (
    GITLINK,
    SYMLINK,
    TreeChange,
    decode_path,
    escaping_symlinks,
    growth,
    quote,
    read_blobs,
    read_changes,
    resolve_symlink,
)
from resolver.git.workspace import Workspace
from resolver.models.path_globs import compile_path_pattern, matches_path
from resolver.models.run import FileChange, Patch
from resolver.security.formats import find_credentials
from resolver.security.redaction import Redactor

_MAX_NAMED_PATHS = 10
"""Maximum number of paths that one sentence of a message names."""

# Formats that are too common in tests and documentation to be evidence of a leaked credential.
_IGNORED_FORMATS = frozenset(
    {"Authorization header", "API key header", "password in a URL", "JSON web token"}
)

# Characters that HFS+ ignores when it compares names. There, `.git<U+200C>hub` is `.github`. Git
# protects `.git` against the same trick (`core.protectHFS`, https://git-scm.com/docs/git-config).
_IGNORED_CHARACTERS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")

MAX_PATCH_BYTES = 10_000_000
MAX_PATCH_FILES = 300


def enforce_policy(
    workspace: Workspace,
    patch: Patch,
    protected_paths: Iterable[str],
    taken_from_base: Collection[bytes] = (),
    max_bytes: int = MAX_PATCH_BYTES,
    max_files: int = MAX_PATCH_FILES,
) -> None:
    """Raise a PolicyViolation that names all problems of the patch, if there are any.

    protected_paths: globs, matched without regard to case. `**` stands for any number of folders,
        `*` and `?` stay within a name.
    max_bytes: limit of the length of the diff, and of the growth of the files.
    max_files: limit of the number of changed files.
    taken_from_base: paths at which a merge conflict was resolved by taking the file of the base
    branch as it is. People with write access have put these files there, so they may be protected,
    or submodules.
    """
    changes = read_changes(workspace.git, patch.base, patch.tree)
    too_large = [*_size_problems(workspace, patch, changes, max_bytes, max_files)]
    own_changes = tuple(change for change in changes if change.path not in taken_from_base)
    protection_problems = [*_protection_problems(workspace, patch, protected_paths, own_changes)]
    problems = [
        *too_large,
        *protection_problems,
        *(() if too_large else _bidi_problems(workspace, own_changes)),
        *_submodule_problems(own_changes),
        *_symlink_problems(workspace, patch, changes),
        # The files of a change that is too large are not read.
        *(() if too_large else _credential_problems(workspace, changes)),
    ]
    if problems:
        raise PolicyViolation(
            "; ".join(problems),
            "the patch is kept with the run's output: review it, and apply manually what is right",
            settings_decide=len(problems) == len(protection_problems),
        )


def is_protected(path: str, globs: Iterable[str]) -> bool:
    """Return True if a change of the file would not be published."""
    return any(_Glob(text).matches(path.encode()) for text in globs)


def _size_problems(
    workspace: Workspace,
    patch: Patch,
    changes: tuple[TreeChange, ...],
    max_bytes: int,
    max_files: int,
) -> Iterator[str]:
    if len(changes) > max_files:
        yield f"it touches {len(changes)} files, more than the limit of {max_files}"
    size = max(len(patch.diff), growth(workspace.git, changes))
    if size > max_bytes:
        yield f"it has {size} bytes or more, above the limit of {max_bytes}"


def _protection_problems(
    workspace: Workspace,
    patch: Patch,
    protected_paths: Iterable[str],
    changes: tuple[TreeChange, ...],
) -> Iterator[str]:
    globs = [_Glob(text) for text in protected_paths]
    paths = {change.path for change in changes if any(glob.covers(change) for glob in globs)}
    paths |= _changed_through_symlinks(workspace, patch, globs, changes)
    if paths:
        yield f"it changes protected files: {_quote_paths(paths)}"


def _changed_through_symlinks(
    workspace: Workspace, patch: Patch, globs: list["_Glob"], changes: tuple[TreeChange, ...]
) -> set[bytes]:
    """Return the changed paths that affect a protected path through a symlink of the base.

    If the base has a symlink `.github -> config`, a change of `config/workflows/ci.yml` changes a
    protected file without naming it. So does a change that makes a protected symlink point to
    another place.
    """
    old_links = workspace.symlinks(patch.base)
    protected_links = [
        link for link in old_links if any(g.matches(link) or g.is_below(link) for g in globs)
    ]
    if not protected_links:
        return set()
    new_links = workspace.symlinks(patch.tree)
    targets = [
        target
        for link in protected_links
        if (target := resolve_symlink(old_links, link)) is not None
    ]
    paths = {c.path for c in changes for p in targets if c.path == p or c.path.startswith(p + b"/")}
    return paths | {
        link
        for link in protected_links
        if resolve_symlink(old_links, link) != resolve_symlink(new_links, link)
    }


def _bidi_problems(workspace: Workspace, changes: tuple[TreeChange, ...]) -> Iterator[str]:
    """Yield a problem if the change adds characters to code that show it in another order."""
    found = find_deceptive_text(workspace.git, changes)
    places = [str(place) for place in found if place.is_bidi_control and place.is_code]
    if places:
        yield f"it adds bidirectional control characters to code: {_shorten(places)}"


def _submodule_problems(changes: tuple[TreeChange, ...]) -> Iterator[str]:
    added = {c.path for c in changes if c.new_mode == GITLINK and c.old_mode != GITLINK}
    changed = {c.path for c in changes if GITLINK in (c.old_mode, c.new_mode)} - added
    if added:
        yield (
            f"it contains another git repository, whose files would be missing: "
            f"{_quote_paths(added)}"
        )
    if changed:
        yield f"it changes submodules: {_quote_paths(changed)}"


def _symlink_problems(
    workspace: Workspace, patch: Patch, changes: tuple[TreeChange, ...]
) -> Iterator[str]:
    """Yield a problem if the change adds symlinks that lead out of the repository.

    All symlinks of both trees are resolved: a new symlink can make one that is unchanged lead
    outside.
    """
    if not any(SYMLINK in (c.old_mode, c.new_mode) for c in changes):
        return
    escaping_before = escaping_symlinks(workspace.symlinks(patch.base))
    links = {
        link for link, _ in escaping_symlinks(workspace.symlinks(patch.tree)) - escaping_before
    }
    if links:
        yield f"it has symlinks that point outside the repository: {_quote_paths(links)}"


def _credential_problems(workspace: Workspace, changes: tuple[TreeChange, ...]) -> Iterator[str]:
    """Yield a problem if the change adds credentials, in a file's content or name.

    A credential that some changed file had before is not counted: the change only moves it.
    """
    old_blobs = {c.old_blob for c in changes if c.old_blob is not None}
    paths: dict[str, list[bytes]] = {}
    for change in changes:
        if change.new_blob is not None and change.new_blob not in old_blobs:
            paths.setdefault(change.new_blob, []).append(change.path)
    credentials = {
        blob: tuple(_credentials_in(data))
        for blob, data in read_blobs(workspace.git, {*old_blobs, *paths})
    }
    old_values = {value for blob in old_blobs for _, value, _ in credentials[blob]}
    places = [
        f"{name} in {quote(path)} line {line}"
        for blob in sorted(paths)
        for name, value, line in credentials[blob]
        if value not in old_values
        for path in paths[blob]
    ]
    if any(True for change in changes if change.new_blob for _ in _credentials_in(change.path)):
        places.append("the name of a file")
    if places:
        yield f"it adds what looks like a credential: {_shorten(places)}"


def _credentials_in(data: bytes) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the value and the line number of each credential in `data`.

    NUL bytes are removed first, so that UTF-16 text can be searched like ASCII.
    """
    text = data.replace(b"\0", b"").decode("latin-1")
    for match in find_credentials(text):
        value = text[match.start : match.end]
        # Example values in the documentation of vendors contain this word.
        if match.name not in _IGNORED_FORMATS and "EXAMPLE" not in value:
            yield match.name, value, text.count("\n", 0, match.start) + 1


class _Glob:
    """One protected glob. Names are compared in the folded form of `_folded`.

    A path is matched name by name, in time linear in its length: the change chooses it.
    """

    def __init__(self, text: str) -> None:
        # Brackets are part of a name here, as in `[id].tsx`.
        names = (_folded(name).replace("[", "[[]") for name in text.strip("/").split("/"))
        self._pattern = compile_path_pattern(tuple(names))
        self._head = list(takewhile(lambda pattern: pattern is not None, self._pattern))

    def matches(self, path: bytes) -> bool:
        """Return True if the glob matches `path`."""
        return matches_path(self._pattern, _folded(decode_path(path)).split("/"))

    def is_below(self, path: bytes) -> bool:
        """Return True if a match of the glob could be below `path`, if `path` were a folder."""
        names = _folded(decode_path(path)).split("/")
        return len(names) <= len(self._head) and all(
            pattern is not None and pattern.match(name)
            for pattern, name in zip(self._head, names, strict=False)
        )

    def covers(self, change: TreeChange) -> bool:
        """Return True if the change touches a match of the glob, or puts a link on the path to one.

        A symlink or submodule at `.github` replaces everything below it.
        """
        is_link = bool({SYMLINK, GITLINK} & {change.old_mode, change.new_mode})
        return self.matches(change.path) or (is_link and self.is_below(change.path))


def _folded(text: str) -> str:
    """Return `text` in a form in which names that a file system may confuse are equal.

    Ignored characters are removed, and the rest is normalized (NFC) and case-folded.
    """
    return unicodedata.normalize("NFC", _IGNORED_CHARACTERS.sub("", text)).casefold()


def _quote_paths(paths: Iterable[bytes]) -> str:
    return _shorten([quote(path) for path in sorted(paths)])


def _shorten(items: list[str]) -> str:
    rest_note = (
        f" and {len(items) - _MAX_NAMED_PATHS} more" if len(items) > _MAX_NAMED_PATHS else ""
    )
    return ", ".join(items[:_MAX_NAMED_PATHS]) + rest_note


_BINARY_PATCH = re.compile(rb"^GIT binary patch\n(?:.+\n)+\n(?:(?:.+\n)+\n)?", re.MULTILINE)
_ADDED_LINE = re.compile(rb"^\+.*$", re.MULTILINE)
_FILE_HEADER = re.compile(rb"^(index .*\n--- .*\n)\+\+\+ .*$", re.MULTILINE)
"""The names of a file above its hunks, in which no line begins with `index`."""


def withhold_secrets(
    workspace: Workspace, patch: Patch, redactor: Redactor, max_bytes: int
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
        leaking |= _files_adding_secrets(workspace, patch, changes, redactor)
    diff = patch.diff
    if leaking or too_large:
        diff = _BINARY_PATCH.sub(b"Binary content left out\n", diff)
    if redactor.holds_secret(_as_text(diff)):
        diff = redactor.redact_text(_as_text(diff)).encode("utf-8", "surrogateescape")
    files = tuple(_redact_path(file, redactor) for file in patch.files)
    names = tuple(redactor.redact_text(quote(path)) for path in sorted(leaking))
    return patch.model_copy(update={"diff": diff, "files": files}), names


def _files_adding_secrets(
    workspace: Workspace, patch: Patch, changes: tuple[TreeChange, ...], redactor: Redactor
) -> set[bytes]:
    """Return the paths of the files that the change adds a secret to."""
    blobs = {b for c in changes for b in (c.old_blob, c.new_blob) if b is not None}
    blobs_with_secret = {
        blob
        for blob, data in read_blobs(workspace.git, blobs)
        if redactor.holds_secret(_as_text(data))
    }
    # A secret may be a plain word that was in the file before, such as the password of a test
    # database. So a file that had a secret counts only if some line added by the change has one.
    added_lines = _ADDED_LINE.findall(_FILE_HEADER.sub(rb"\1", patch.diff))
    is_secret_added = redactor.holds_secret(_as_text(b"\n".join(added_lines)))
    return {
        c.path
        for c in changes
        if c.new_blob in blobs_with_secret
        and (is_secret_added or c.old_blob not in blobs_with_secret)
    }


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _redact_path(file: FileChange, redactor: Redactor) -> FileChange:
    if not redactor.holds_secret(file.path):
        return file
    return file.model_copy(update={"path": redactor.redact_text(file.path)})
