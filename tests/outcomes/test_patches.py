"""Lines of patches: what survives a merge, and where lines go in later changes."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.outcomes.patches import (
    Hunk,
    PatchedFile,
    carry_lines,
    find_own_lines,
    is_inverse,
    is_same_change,
    parse_patch,
    share_that_survived,
)

texts = st.lists(st.sampled_from([b"a", b"b", b"c", b"d = 1", b"", b"}"]), max_size=12)


def diff(old: list[bytes], new: list[bytes], path: bytes = b"f.py") -> tuple[PatchedFile, ...]:
    """The patch without context, as git makes it."""
    hunks = [
        Hunk(
            a + 1 if a < b else a,
            c + 1 if c < d else c,
            tuple(old[a:b]),
            tuple(new[c:d]),
        )
        for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if tag != "equal"
    ]
    return (PatchedFile(path, tuple(hunks)),) if hunks else ()


def as_git(files: tuple[PatchedFile, ...]) -> bytes:
    lines = []
    for file in files:
        lines += [b"diff --git %b %b" % (file.path, file.path), b"--- " + file.path]
        lines.append(b"+++ " + file.path)
        for hunk in file.hunks:
            sizes = (hunk.old_start, len(hunk.removed), hunk.new_start, len(hunk.added))
            lines.append(b"@@ -%d,%d +%d,%d @@ def f():" % sizes)
            lines += [b"-" + line for line in hunk.removed] + [b"+" + line for line in hunk.added]
    return b"\n".join(lines) + b"\n"


@given(texts, texts)
def test_a_patch_is_read_as_it_was_made(old: list[bytes], new: list[bytes]) -> None:
    files = diff(old, new)
    assert parse_patch(as_git(files)) == files


def test_lines_that_look_like_headers_are_lines() -> None:
    files = diff([b"- a/x", b"-- b"], [b"++ b/x", b"@@ -1,2 +3,4 @@", b"diff --git a b"])
    assert parse_patch(as_git(files)) == files


@given(st.binary(max_size=300))
def test_anything_is_read_without_an_error(data: bytes) -> None:
    parse_patch(data)


def test_a_removed_file_has_its_name_and_a_binary_file_no_hunks() -> None:
    patch = (
        b"diff --git x.py x.py\ndeleted file mode 100644\n--- x.py\n+++ /dev/null\n"
        b"@@ -1 +0,0 @@\n-gone\n\\ No newline at end of file\n"
        b"diff --git p.png p.png\nBinary files p.png and p.png differ\n"
    )
    assert parse_patch(patch) == (PatchedFile(b"x.py", (Hunk(1, 0, (b"gone",), ()),)),)


@given(texts, texts, texts)
def test_a_share_is_between_none_and_all(a: list[bytes], b: list[bytes], c: list[bytes]) -> None:
    share = share_that_survived(diff(a, b), diff(a, c))
    assert share is None or 0 <= share <= 1
    own = share_that_survived(diff(a, b), diff(a, b))
    assert own in (None, 1.0)


@given(st.permutations([b"a", b"b", b"c"]))
def test_the_order_of_files_does_not_matter(paths: list[bytes]) -> None:
    own = tuple(PatchedFile(path, (Hunk(0, 1, (), (path, b"x")),)) for path in paths)
    merged = diff([], [b"a", b"x"], b"other")
    assert share_that_survived(own, merged) == pytest.approx(2 / 6)
    assert is_same_change(own, tuple(reversed(own)))


def test_moved_lines_survive_and_blank_lines_do_not_count() -> None:
    own = diff([], [b"one", b"", b"two  "])
    assert share_that_survived(own, diff([], [b"two"], b"moved.py")) == 0.5
    assert share_that_survived(diff([b"x", b"y"], [b"y"]), diff([b"x", b"y"], [b"y"])) == 1.0
    assert share_that_survived((), own) is None


@given(texts, texts)
def test_lines_are_followed_to_where_they_are(old: list[bytes], new: list[bytes]) -> None:
    files = diff(old, new)
    hunks = files[0].hunks if files else ()
    numbers = frozenset(range(1, len(old) + 1))
    remaining, changed = carry_lines(numbers, hunks)
    assert len(remaining) + changed == len(old)
    assert changed == sum(len(hunk.removed) for hunk in hunks)
    kept = set(numbers) - {
        n for h in hunks for n in range(h.old_start, h.old_start + len(h.removed)) if h.removed
    }
    assert [new[n - 1] for n in sorted(remaining)] == [old[n - 1] for n in sorted(kept)]


def test_own_lines_are_those_that_resolver_added() -> None:
    merged = diff([b"x"], [b"x", b"ours", b"theirs", b"ours"])
    assert find_own_lines(diff([], [b"ours"]), merged) == {b"f.py": frozenset({2})}


@given(texts, texts)
def test_the_way_back_is_an_inverse(old: list[bytes], new: list[bytes]) -> None:
    merged = diff(old, new)
    lines = find_own_lines(merged, merged)
    has_lines = any(line.strip() for file in merged for hunk in file.hunks for line in hunk.added)
    back = tuple(
        PatchedFile(
            file.path,
            tuple(Hunk(h.new_start, h.old_start, h.added, h.removed) for h in file.hunks),
        )
        for file in merged
    )
    if has_lines:
        assert is_inverse(back, merged, lines)
    assert not is_inverse((), merged, lines)


def test_a_rewritten_line_is_no_inverse() -> None:
    merged = diff([b"x"], [b"x", b"ours"])
    lines = find_own_lines(merged, merged)
    assert not is_inverse(diff([b"x", b"ours"], [b"x", b"better"]), merged, lines)
    assert is_inverse(diff([b"x", b"ours"], [b"x"]), merged, lines)
