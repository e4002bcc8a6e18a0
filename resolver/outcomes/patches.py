"""Compares patches by their lines, and follows lines through later changes of a file.

Commits are compared by content and never by id, because a squash, a rebase and a force push give
the same lines new commits. All functions take patches without context lines (`git diff -U0`).
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")

LineSet = frozenset[int]


@dataclass(frozen=True)
class Hunk:
    """Lines that were replaced. The numbers are those of the first line, counted from 1.

    If nothing was removed or added, the number is that of the line before.
    """

    old_start: int
    new_start: int
    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]


@dataclass(frozen=True)
class PatchedFile:
    """The hunks of one file. path: as git prints it, "" for none."""

    path: bytes
    hunks: tuple[Hunk, ...]


def parse_patch(patch: bytes) -> tuple[PatchedFile, ...]:
    """Return the files of a patch made with `-U0 --no-prefix --no-renames`.

    Binary files have no hunks. What is not a patch is skipped.
    """
    files: list[tuple[bytes, list[Hunk]]] = []
    lines = iter(patch.split(b"\n"))
    old_path = b""
    for line in lines:
        if line.startswith(b"diff --git "):
            files.append((b"", []))
        elif line.startswith(b"--- "):
            old_path = line[4:]
        elif line.startswith(b"+++ ") and files:
            path = old_path if line[4:] == b"/dev/null" else line[4:]
            files[-1] = (path.rstrip(b"\t"), files[-1][1])
        elif files and (match := _HUNK.match(line)):
            files[-1][1].append(_read_hunk(match, lines))
    return tuple(PatchedFile(path, tuple(hunks)) for path, hunks in files if hunks)


def _read_hunk(header: re.Match[bytes], lines: Iterator[bytes]) -> Hunk:
    old_count, new_count = (1 if count is None else int(count) for count in header.group(2, 4))
    removed: list[bytes] = []
    added: list[bytes] = []
    while len(removed) < old_count or len(added) < new_count:
        line = next(lines, None)
        if line is None:
            break
        if line.startswith(b"-"):
            removed.append(line[1:])
        elif line.startswith(b"+"):
            added.append(line[1:])
    return Hunk(int(header[1]), int(header[3]), tuple(removed), tuple(added))


def count_patch_lines(files: Iterable[PatchedFile], *, added: bool) -> "Counter[bytes]":
    """Return how often each line was added, or removed. Blank lines and trailing blanks don't
    count."""
    lines = (
        line.rstrip()
        for file in files
        for hunk in file.hunks
        for line in (hunk.added if added else hunk.removed)
    )
    return Counter(line for line in lines if line)


def is_same_change(one: Sequence[PatchedFile], other: Sequence[PatchedFile]) -> bool:
    """Return True if both patches remove and add the same lines of the same files."""
    return _lines_by_file(one) == _lines_by_file(other)


def _lines_by_file(
    files: Iterable[PatchedFile],
) -> dict[bytes, tuple["Counter[bytes]", "Counter[bytes]"]]:
    return {
        file.path: (count_patch_lines([file], added=False), count_patch_lines([file], added=True))
        for file in files
    }


def share_that_survived(own: Iterable[PatchedFile], merged: Iterable[PatchedFile]) -> float | None:
    """Return the share of the lines added by `own` that `merged` adds, too; None without a line.

    A line counts wherever it was added, because people move code between files. If `own` adds no
    lines, the removed lines are compared.
    """
    own, merged = tuple(own), tuple(merged)
    for added in (True, False):
        own_lines = count_patch_lines(own, added=added)
        if own_lines:
            survived = own_lines & count_patch_lines(merged, added=added)
            return survived.total() / own_lines.total()
    return None


def find_own_lines(
    own: Iterable[PatchedFile], merged: Iterable[PatchedFile]
) -> dict[bytes, LineSet]:
    """Return the numbers of the lines of each merged file that are Resolver's, by path.

    own: Resolver's change. merged: the change as it was merged.
    """
    left = count_patch_lines(own, added=True)
    found: dict[bytes, set[int]] = {}
    for file in merged:
        for hunk in file.hunks:
            for number, line in enumerate(hunk.added, hunk.new_start):
                text = line.rstrip()
                if left[text] > 0:
                    left[text] -= 1
                    found.setdefault(file.path, set()).add(number)
    return {path: frozenset(numbers) for path, numbers in found.items()}


def carry_lines(lines: LineSet, hunks: Sequence[Hunk]) -> tuple[LineSet, int]:
    """Return the numbers that the lines have after a later change, and how many it changed.

    A changed or removed line is not followed any further.
    """
    remaining: list[int] = []
    ordered = sorted(hunks, key=lambda hunk: hunk.old_start)
    index = shift = 0
    for number in sorted(lines):
        while index < len(ordered) and _last_old_line(ordered[index]) < number:
            shift += len(ordered[index].added) - len(ordered[index].removed)
            index += 1
        hunk = ordered[index] if index < len(ordered) else None
        if hunk is None or not hunk.removed or number < hunk.old_start:
            remaining.append(number + shift)
    return frozenset(remaining), len(lines) - len(remaining)


def _last_old_line(hunk: Hunk) -> int:
    return hunk.old_start + len(hunk.removed) - 1 if hunk.removed else hunk.old_start


def is_inverse(
    later: Iterable[PatchedFile],
    merged: Iterable[PatchedFile],
    own_lines: Mapping[bytes, Collection[int]],
) -> bool:
    """Return True if a later change takes the merged change back.

    It does if the hunks of `later` that touch any of the own lines remove all lines that `merged`
    has added, and add nothing else than lines that it has removed, and all of these come back.
    """
    merged, later = tuple(merged), tuple(later)
    touching = [
        PatchedFile(file.path, _hunks_touching(file.hunks, numbers))
        for file in later
        if (numbers := own_lines.get(file.path))
    ]
    removed, added = (count_patch_lines(touching, added=is_added) for is_added in (False, True))
    removed_before = count_patch_lines(merged, added=False)
    return (
        bool(removed)
        and removed == count_patch_lines(merged, added=True)
        and added <= removed_before <= count_patch_lines(later, added=True)
    )


def _hunks_touching(hunks: Iterable[Hunk], numbers: Collection[int]) -> tuple[Hunk, ...]:
    ordered = sorted(numbers)

    def touches(hunk: Hunk) -> bool:
        first = bisect_left(ordered, hunk.old_start)
        return first < len(ordered) and ordered[first] < hunk.old_start + len(hunk.removed)

    return tuple(hunk for hunk in hunks if touches(hunk))
