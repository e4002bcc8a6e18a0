"""Tests that the editor changes exactly what was requested."""

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from resolver.sandbox.editor import Editor
from resolver.sandbox.wire import MAX_TEXT, ActionFailed

ONE_EDITOR = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _refused(action: object, *given: object) -> str:
    assert callable(action)
    with pytest.raises(ActionFailed) as caught:
        action(*given)
    return str(caught.value)


BYTES: list[tuple[str, bytes, str, str, bytes]] = [
    ("plain", b"a\nb\nc\n", "b", "x", b"a\nx\nc\n"),
    ("no last newline", b"a\nb", "b", "x", b"a\nx"),
    ("last newline taken off", b"a\nb\n", "b\n", "b", b"a\nb"),
    ("crlf", b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", b"x\r\ny\r\nz\r\nc\r\n"),
    ("crlf in one line", b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
    ("crlf given as such", b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
    ("mixed, at the lf", b"a\r\nb\nc\nd\n", "c\nd", "x\ny", b"a\r\nb\nx\ny\n"),
    ("mixed, at the crlf", b"a\r\nb\r\nc\nd\ne\n", "a\nb", "x\ny", b"x\r\ny\r\nc\nd\ne\n"),
    ("lone cr stays", b"a\rb\nc\n", "c", "x", b"a\rb\nx\n"),
    ("bom", "\ufeffa\nb\n".encode(), "a", "ä", "\ufeffä\nb\n".encode()),
    ("latin-1", b"caf\xe9\nb\xff\n", "café", "thé", b"th\xe9\nb\xff\n"),
    ("broken utf-8", b"\xc3\nword\n\x80", "word", "x", b"\xc3\nx\n\x80"),
    ("form feed and u+2028", "a\x0cb\u2028c\x85d\ne\n".encode(), "e", "x",
     "a\x0cb\u2028c\x85d\nx\n".encode()),
    ("tabs and trailing blanks", b"\tif x:  \n\t\ty\n", "x:  \n\t\ty", "z:\n\t\ty",
     b"\tif z:\n\t\ty\n"),
    ("regular expression signs", b"a.*b(\n[c]\\1\n", ".*b(\n[c]\\1", "\\g<0>\\n", b"a\\g<0>\\n\n"),
    ("emptied", b"all\n", "all\n", "", b""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "old", "new", "after"), [row[1:] for row in BYTES], ids=[row[0] for row in BYTES]
)
def test_a_replacement_is_exact_and_undone_exactly(
    editor: Editor, root: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    file = root / "f"
    file.write_bytes(before)
    file.chmod(0o750)
    inode = file.stat().st_ino
    result = editor.str_replace("f", old, new)
    assert file.read_bytes() == after
    assert (result["old_hash"], result["new_hash"]) == (_sha(before), _sha(after))
    assert editor.undo_edit(str(file))["new_hash"] == _sha(before)
    assert file.read_bytes() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o750 and file.stat().st_ino == inode


@ONE_EDITOR
@given(
    st.binary(max_size=80).filter(lambda data: b"\0" not in data),
    st.data(),
    st.text("abc\n\r é", max_size=6),
)
def test_only_the_replaced_part_changes(
    editor: Editor, root: Path, data: bytes, draw: st.DataObject, new: str
) -> None:
    file = root / "f"
    file.write_bytes(data)
    at = draw.draw(st.integers(0, len(data)))
    end = draw.draw(st.integers(at, len(data)))
    try:
        old = data[at:end].decode("utf-8")
        data.decode("utf-8")
    except UnicodeDecodeError:
        old = data[at:end].decode("latin-1")
    try:
        editor.str_replace("f", old, new)
    except ActionFailed:
        assert file.read_bytes() == data
        return
    now = file.read_bytes()
    assume("\n" not in old and not data.startswith(b"\xef\xbb\xbf"))
    assert now.startswith(data[:at]) and now.endswith(data[end:])
    editor.undo_edit("f")
    assert file.read_bytes() == data


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        (b"a\nb\n", 0, "x", b"x\na\nb\n"),
        (b"a\nb\n", 1, "x\ny\n", b"a\nx\ny\nb\n"),
        (b"a\nb\n", 2, "x", b"a\nb\nx\n"),
        (b"a\nb", 2, "x", b"a\nb\nx"),
        (b"a\nb", 2, "x\n", b"a\nb\nx\n"),
        (b"a\nb", 1, "x", b"a\nx\nb"),
        (b"", 0, "x", b"x\n"),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n"),
        (b"\n", 1, "x", b"\nx\n"),
    ],
)
def test_whole_lines_are_inserted(
    editor: Editor, root: Path, before: bytes, line: int, new: str, after: bytes
) -> None:
    (root / "f").write_bytes(before)
    editor.insert("f", line, new)
    assert (root / "f").read_bytes() == after


def test_an_insert_past_the_end_says_how_long_the_file_is(editor: Editor, root: Path) -> None:
    (root / "f").write_text("a\nb\n")
    assert "it has 2 lines" in _refused(editor.insert, "f", 3, "x")


def test_create_makes_folders_and_never_overwrites(editor: Editor, root: Path) -> None:
    result = editor.create("new/deep/f.txt", "one\ntwo")
    assert (root / "new/deep/f.txt").read_bytes() == b"one\ntwo"
    assert result["old_hash"] == "" and result["new_hash"] == _sha(b"one\ntwo")
    assert result["diff"].endswith("@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n")
    assert "already exists" in _refused(editor.create, "new/deep/f.txt", "x")
    editor.undo_edit("new/deep/f.txt")
    assert not (root / "new/deep/f.txt").exists()


def test_undo_reverts_edits_one_by_one(editor: Editor, root: Path) -> None:
    editor.create("f", "0\n")
    for number in range(3):
        editor.str_replace("f", f"{number}", f"{number + 1}")
    for number in (2, 1, 0):
        editor.undo_edit("f")
        assert (root / "f").read_text() == f"{number}\n"
    editor.undo_edit("f")
    assert "No edit" in _refused(editor.undo_edit, "f")


def test_undo_does_not_overwrite_changes_of_others(editor: Editor, root: Path) -> None:
    editor.create("f", "mine\n")
    (root / "f").write_text("theirs\n")
    assert "something else" in _refused(editor.undo_edit, "f")
    assert (root / "f").read_text() == "theirs\n"


def test_an_ambiguous_text_is_refused_with_its_lines(editor: Editor, root: Path) -> None:
    (root / "f").write_text("x = 1\ny\nx = 1\n\nx = 1\n")
    message = _refused(editor.str_replace, "f", "x = 1", "x = 2")
    assert "3 times" in message and "lines 1, 3, 5" in message


def test_overlapping_matches_are_ambiguous(editor: Editor, root: Path) -> None:
    (root / "f").write_text("aaa\n")
    assert "2 times" in _refused(editor.str_replace, "f", "aa", "b")


def test_a_near_miss_is_shown(editor: Editor, root: Path) -> None:
    (root / "f").write_text("def f(a):\n    return a + 1\n\n\ndef g():\n    pass\n")
    message = _refused(editor.str_replace, "f", "def f(a):\n  return a + 1\n", "x")
    assert "white space only" in message and "     2\t    return a + 1" in message
    message = _refused(editor.str_replace, "f", "    retrun a + 1", "x")
    assert "nearest" in message and "     2\t    return a + 1" in message
    assert "No lines in it" in _refused(editor.str_replace, "f", "zzzzzz qqqq", "x")


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("a", "a")])
def test_an_edit_without_effect_is_refused(editor: Editor, root: Path, old: str, new: str) -> None:
    (root / "f").write_text("a\n")
    _refused(editor.str_replace, "f", old, new)


def test_a_character_that_the_encoding_lacks_is_refused(editor: Editor, root: Path) -> None:
    (root / "f").write_bytes(b"caf\xe9\n")
    assert "latin-1" in _refused(editor.str_replace, "f", "café", "€")
    assert (root / "f").read_bytes() == b"caf\xe9\n"


def test_the_scratch_folder_may_be_viewed_not_changed(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "o").write_text("out\n")
    assert "out" in editor.view(str(tmp_path / "scratch" / "o"), None)["output"]
    _refused(editor.insert, str(tmp_path / "scratch" / "o"), 0, "x")


def test_a_link_inside_edits_its_target_and_stays_a_link(editor: Editor, root: Path) -> None:
    (root / "f").write_text("a\n")
    (root / "link").symlink_to("f")
    editor.str_replace("link", "a", "b")
    assert (root / "link").is_symlink() and (root / "f").read_text() == "b\n"


def test_other_files_are_described_and_not_opened(editor: Editor, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "bin").write_bytes(b"\x7fELF\0\0")
    (root / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x05\0\0\0\x07")
    with (root / "huge").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert "not a regular file" in _refused(editor.view, "pipe", None)
    assert "over the" in _refused(editor.view, "huge", None)
    assert "no file" in _refused(editor.view, "missing", None)
    assert "binary" in _refused(editor.str_replace, "bin", "E", "x")
    assert "binary file, 6 bytes" in editor.view("bin", None)["output"]
    assert "PNG image of 5x7 pixels" in editor.view("p.png", None)["output"]
    assert "folder" in _refused(editor.insert, ".", 0, "x")


def test_a_view_has_numbers_and_a_range(editor: Editor, root: Path) -> None:
    (root / "f").write_text("".join(f"l{n}\n" for n in range(1, 21)))
    assert editor.view("f", (3, 4))["output"] == "Lines 3-4 of 20:\n     3\tl3\n     4\tl4"
    assert editor.view("f", (20, -1))["output"] == "Lines 20-20 of 20:\n    20\tl20"
    assert "20 lines" in _refused(editor.view, "f", (21, 22))
    assert "20 lines" in _refused(editor.view, "f", (5, 4))
    assert "20 lines" in _refused(editor.view, "f", (0, 4))
    assert editor.view("f", (19, 99))["output"].endswith("    20\tl20")


def test_a_long_view_is_truncated_and_says_where_to_continue(editor: Editor, root: Path) -> None:
    (root / "f").write_text("x" * 99 + "\n" + "y" * 5000 + "\n" + "z\n" * 50_000)
    shown = editor.view("f", None)["output"]
    assert len(shown) < MAX_TEXT + 200 and "[... 3000 more characters]" in shown
    assert "-50002: give them as view_range.]" in shown


def test_a_folder_is_listed_two_levels_deep(editor: Editor, root: Path) -> None:
    (root / "a/b/c").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "up").symlink_to("..")
    shown = editor.view(".", None)["output"]
    assert shown == f"{root}/\n  a/\n    b/\n  up/\n[1 hidden entries are not shown]"
    for number in range(700):
        (root / f"n{number:03}").touch()
    assert "[203 more entries]" in editor.view(".", None)["output"]


@pytest.mark.parametrize("lines", [10, 60_000])
def test_the_diff_of_a_small_edit_is_small_and_applies(
    editor: Editor, root: Path, lines: int
) -> None:
    (root / "f").write_text("".join(f"value_{n} = {n}\n" for n in range(lines)))
    result = editor.str_replace("f", "value_5 = 5\n", "value_5 = -1\nmore\n")
    assert result["diff"] == (
        "--- a/f\n+++ b/f\n@@ -3,7 +3,8 @@\n value_2 = 2\n value_3 = 3\n value_4 = 4\n"
        "-value_5 = 5\n+value_5 = -1\n+more\n value_6 = 6\n value_7 = 7\n value_8 = 8\n"
    )
    assert len(result["output"]) < 1000 and "     6\tvalue_5 = -1" in result["output"]


def test_the_diff_of_a_huge_edit_is_bounded(editor: Editor, root: Path) -> None:
    (root / "f").write_text("ä" * 100_000 + "\n")
    result = editor.str_replace("f", "ä" * 100_000, "ö\n" * 50_000)
    assert len(result["diff"].encode()) <= 10_000 and "bytes left out" in result["diff"]
    assert len(result["output"]) < MAX_TEXT + 500
