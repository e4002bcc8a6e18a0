"""Tests of unusual files and paths in the editor."""

import base64
import os
import socket
import stat
from pathlib import Path

import pytest

from resolver.sandbox.editor import Editor
from resolver.sandbox.viewing import MAX_IMAGE_BYTES
from resolver.sandbox.wire import ActionFailed

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def _refused(action: object, *given: object) -> str:
    assert callable(action)
    with pytest.raises(ActionFailed) as caught:
        action(*given)
    return str(caught.value)


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/root/etc/passwd",
        "/proc/1/root/etc/passwd",
        "/proc/self/environ",
        "/dev/stdin",
        "/dev/fd/0",
        "/etc/../etc/passwd",
        "../../../../../../etc/passwd",
        "~/.bashrc/../../../etc/passwd",
        "a\0b",
        "link/../../etc/passwd",
        "chain/passwd",
    ],
)
def test_no_path_leads_outside(editor: Editor, root: Path, path: str) -> None:
    (root / "deep").mkdir()
    (root / "link").symlink_to("deep")
    (root / "chain").symlink_to("chain2")
    (root / "chain2").symlink_to("/etc")
    before = Path("/etc/passwd").read_bytes()
    _refused(editor.view, path, None)
    _refused(editor.str_replace, path, "root", "toor")
    _refused(editor.insert, path, 0, "x")
    _refused(editor.undo_edit, path)
    assert Path("/etc/passwd").read_bytes() == before


def test_a_folder_replaced_by_a_link_is_not_followed(
    editor: Editor, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "src").mkdir()
    editor.create("src/a.py", "x = 1\n")
    (root / "src" / "a.py").rename(outside / "a.py")
    (root / "src").rmdir()
    (root / "src").symlink_to(outside)
    _refused(editor.str_replace, "src/a.py", "1", "2")
    _refused(editor.undo_edit, "src/a.py")
    _refused(editor.create, "src/b.py", "")
    assert (outside / "a.py").read_text() == "x = 1\n" and not (outside / "b.py").exists()


def test_pipes_sockets_and_devices_are_refused_at_once(editor: Editor, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "null").symlink_to("/dev/null")
    folder = os.open(root, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{folder}/socket")
    os.close(folder)
    for name in ("pipe", "socket", "null"):
        _refused(editor.view, name, None)
        _refused(editor.str_replace, name, "a", "b")
        _refused(editor.insert, name, 0, "b")
        _refused(editor.create, name, "b")


def test_a_hard_link_is_preserved(editor: Editor, root: Path) -> None:
    (root / "a").write_text("one\n")
    os.link(root / "a", root / "b")
    editor.str_replace("a", "one", "two")
    assert (root / "b").read_text() == "two\n" and (root / "a").stat().st_nlink == 2


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444, 0o4755])
def test_the_mode_stays(editor: Editor, root: Path, mode: int) -> None:
    (root / "f").write_text("one\n")
    (root / "f").chmod(mode)
    if os.geteuid() != 0 and not mode & 0o200:
        assert "can't be written" in _refused(editor.str_replace, "f", "one", "two")
        return
    editor.str_replace("f", "one", "two")
    # The kernel takes setuid away from a file that is written to, but for root.
    assert stat.S_IMODE((root / "f").stat().st_mode) & 0o777 == mode & 0o777


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_edited_and_preserved(editor: Editor, root: Path, encoding: str) -> None:
    (root / "f.rc").write_bytes("\ufeffgrün = 1\r\nrot = 2\r\n".encode(encoding))
    assert "grün = 1" in editor.view("f.rc", None)["output"]
    editor.str_replace("f.rc", "rot = 2", "blau = 3\nrot = 2")
    assert (root / "f.rc").read_bytes() == "\ufeffgrün = 1\r\nblau = 3\r\nrot = 2\r\n".encode(
        encoding
    )
    editor.undo_edit("f.rc")
    assert (root / "f.rc").read_bytes() == "\ufeffgrün = 1\r\nrot = 2\r\n".encode(encoding)


def test_bytes_that_only_begin_like_utf_16_are_binary(editor: Editor, root: Path) -> None:
    (root / "f").write_bytes(b"\xff\xfe\0\xd8\0\0x")
    assert "binary file" in editor.view("f", None)["output"]


@pytest.mark.parametrize(
    "name", ["with space", "ünï", "-rf", "new\nline", "a" * 255, ".hidden", "'\"$(id)"]
)
def test_any_file_name_is_accepted(editor: Editor, root: Path, name: str) -> None:
    editor.create(name, "one\n")
    editor.str_replace(name, "one", "two")
    assert (root / name).read_text() == "two\n"


def test_a_million_lines_are_edited_quickly(editor: Editor, root: Path) -> None:
    (root / "f").write_text("".join(f"{n}\n" for n in range(1_000_000)))
    result = editor.str_replace("f", "\n500000\n", "\nhalf\n")
    assert "500001\thalf" in result["output"] and len(result["diff"]) < 300


def test_one_line_of_ten_megabytes_is_edited(editor: Editor, root: Path) -> None:
    (root / "f").write_text("x" * 5_000_000 + "needle" + "y" * 5_000_000)
    result = editor.str_replace("f", "needle", "thread")
    assert "thread" in (root / "f").read_text() and len(result["diff"]) <= 10_000


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("p.png", PNG, "png"),
        ("p.jpg", b"\xff\xd8\xff\xe0\0", "jpeg"),
        ("p.gif", b"GIF89a\0\0", "gif"),
        ("p.webp", b"RIFF\0\0\0\0WEBPVP8 ", "webp"),
        ("no-name-ending", PNG, "png"),
    ],
)
def test_a_picture_is_shown_as_an_image(
    editor: Editor, root: Path, name: str, data: bytes, kind: str
) -> None:
    (root / name).write_bytes(data)
    url = f"data:image/{kind};base64," + base64.b64encode(data).decode()
    assert editor.view(name, None)["images"] == [url]


def test_a_picture_that_is_too_large_is_only_described(editor: Editor, root: Path) -> None:
    (root / "p.png").write_bytes(PNG + bytes(MAX_IMAGE_BYTES))
    shown = editor.view("p.png", None)
    assert shown["images"] == [] and "PNG image of 1x1 pixels" in shown["output"]


@pytest.mark.parametrize(
    ("name", "text", "old", "new", "word"),
    [
        ("f.py", "def f():\n    return 1\n", "return 1", "return (1", "never closed"),
        ("f.json", '{"a": 1}', "1", "1,", "line 1"),
        ("f.toml", "a = 1\n", "1", "= 1", "line 1"),
        ("f.yml", "a: [1]\n", "]", "", "expected"),
    ],
)
def test_an_edit_that_breaks_the_syntax_is_made_with_a_note(
    editor: Editor, root: Path, name: str, text: str, old: str, new: str, word: str
) -> None:
    (root / name).write_text(text)
    output = editor.str_replace(name, old, new)["output"]
    assert "can't be parsed: " in output and word in output
    assert (root / name).read_text() == text.replace(old, new)


def test_a_file_that_was_broken_before_gets_no_note(editor: Editor, root: Path) -> None:
    (root / "f.py").write_text("def f(:\nx = 1\n")
    assert "parsed" not in editor.str_replace("f.py", "x = 1", "x = 2")["output"]


def test_a_strict_editor_shows_the_refused_edit(root: Path, tmp_path: Path) -> None:
    editor = Editor(str(root), str(tmp_path / "scratch"), strict=True)
    (root / "f.py").write_text("a = 1\n\ndef f():\n    return a\n")
    message = _refused(editor.str_replace, "f.py", "def f():", "def f(:")
    assert "line 3: invalid syntax" in message
    assert message.index("     3\tdef f(:") < message.index("     3\tdef f():")
    assert "Nothing has changed" in message
    assert (root / "f.py").read_text() == "a = 1\n\ndef f():\n    return a\n"
    assert "No edit" in _refused(editor.undo_edit, "f.py")
