"""Tests that every kind of change reaches a published branch with the same tree hash."""

# Paths that are bytes have no Path.
# ruff: noqa: PTH101, PTH118

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.git.scenario import (
    Scenario,
    commit_all,
    copy_scenario,
    link,
    make_repository,
    open_scenario,
    plain_git,
    write,
)
from tests.parts.templates import Templates

LINES = "".join(f"line {n}\n" for n in range(60_000))
DIFF = """\
diff --git a/x b/x
index 1..2 100644
--- a/x
+++ b/x
@@ -1,2 +1,2 @@
-old
+new
\\ No newline at end of file
"""

BASE: dict[str | bytes, bytes | str] = {
    "README.md": "hello\nworld\n",
    "no-newline": "last line without end",
    "newline": "one\ntwo\n",
    "crlf.txt": "one\r\ntwo\r\n",
    "mixed.txt": "one\r\ntwo\nthree\rfour\n",
    "latin1.txt": "caf\xe9\n".encode("latin-1"),
    "formfeed.c": "one\ntwo\x0c\nthree\n",
    "u2028.js": "a\u2028b\nc\u2029d\x85e\n",
    "binary.bin": bytes(range(256)) * 20,
    "with space.txt": "space\n",
    "src/app.py": "".join(f"value_{n} = {n}\n" for n in range(200)),
    "src/deep/er/file.py": "x = 1\n",
    "a/inside.txt": "in a\n",
    "b/inside.txt": "in b\n",
    "tool.sh": "#!/bin/sh\n",
    "long.txt": LINES,
    "wide.txt": "x" * 200_000 + "\nend\n",
    "trailing.txt": "text   \n\t\n  ",
    "empty": "",
    "gone/one.txt": "1\n",
    "gone/two.txt": "2\n",
    ".gitignore": "*.log\nbuild/\n",
    "tracked.log": "tracked though ignored\n",
    "diff.txt": DIFF,
    b"latin-\xe9.txt": "name\n",
    "folder/file": "f\n",
    "both": "file\n",
}


def build_scenario(place: Path) -> Scenario:
    path = make_repository(place / "source", BASE)
    os.chmod(path / "tool.sh", 0o755)
    link(path, "link", "README.md")
    link(path, "dangling", "nowhere/at/all")
    commit_all(path, "links and modes")
    return open_scenario(path, place)


@pytest.fixture
def scenario(templates: Templates, tmp_path: Path) -> Scenario:
    return copy_scenario(templates, build_scenario, tmp_path)


Change = Callable[[Path], object]


def _edit(path: str | bytes, old: bytes, new: bytes) -> Change:
    def change(root: Path) -> None:
        full = os.path.join(os.fsencode(root), os.fsencode(path))
        with open(full, "rb") as file:
            data = file.read()
        assert old in data
        with open(full, "wb") as file:
            file.write(data.replace(old, new, 1))

    return change


def _rename(old: str, new: str, more: Change = lambda root: None) -> Change:
    def change(root: Path) -> None:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)
        more(root)

    return change


def _write(path: str | bytes, data: bytes | str, mode: int = 0o644) -> Change:
    return lambda root: write(root, path, data, mode)


def _file_to_folder(root: Path) -> None:
    (root / "both").unlink()
    write(root, "both/now/a/folder", "x\n")


def _folder_to_file(root: Path) -> None:
    shutil.rmtree(root / "folder")
    write(root, "folder", "now a file\n")


def _folder_to_link(root: Path) -> None:
    shutil.rmtree(root / "folder")
    link(root, "folder", "src")


def _link_to_file(root: Path) -> None:
    (root / "link").unlink()
    write(root, "link", "now a file\n")


def _everything_gone(root: Path) -> None:
    for path in root.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _case(root: Path) -> None:
    (root / "README.md").rename(root / "readme.MD")
    write(root, "Readme.md", "another one\n")


CHANGES: dict[str, Change] = {
    "edit": _edit("README.md", b"world", b"there"),
    "new file": _write("new.txt", "new\n"),
    "new empty file": _write("new-empty", ""),
    "emptied file": _write("README.md", ""),
    "filled empty file": _write("empty", "no more\n"),
    "executable bit set": lambda r: os.chmod(r / "README.md", 0o755),
    "executable bit removed": lambda r: os.chmod(r / "tool.sh", 0o644),
    "executable bit and content": _write("README.md", "both\n", 0o755),
    "executable bit beside another change": lambda r: (
        os.chmod(r / "empty", 0o755),
        write(r, "README.md", "changed\n"),
    ),
    "new executable": _write("bin/run", "#!/bin/sh\n", 0o755),
    "group and other bits are not kept": lambda r: os.chmod(r / "README.md", 0o600),
    "new symlink": lambda r: link(r, "alias", "src/app.py"),
    "new symlink to a folder": lambda r: link(r, "alias", "src"),
    "new dangling symlink": lambda r: link(r, "alias", "no such file"),
    "symlink moved to another target": lambda r: link(r, "link", "src/app.py"),
    "symlink target that is not UTF-8": lambda r: link(r, "alias", b"latin-\xe9.txt"),
    "file to symlink": lambda r: link(r, "newline", "README.md"),
    "symlink to file": _link_to_file,
    "file to folder": _file_to_folder,
    "folder to file": _folder_to_file,
    "folder to symlink": _folder_to_link,
    "rename": _rename("README.md", "docs/readme.md"),
    "rename with edit": _rename(
        "src/app.py", "src/main.py", _edit("src/main.py", b"value_3 = 3", b"value_3 = 4")
    ),
    "rename of a folder with edit": _rename(
        "src", "lib", _edit("lib/app.py", b"value_3 = 3", b"value_3 = 4")
    ),
    "swap of two files": _rename(
        "a/inside.txt",
        "tmp",
        lambda r: (
            (r / "b/inside.txt").rename(r / "a/inside.txt"),
            (r / "tmp").rename(r / "b/inside.txt"),
        ),
    ),
    "names that differ in case": _case,
    "new binary": _write("new.bin", bytes(range(256)) * 300 + b"\0\n\r\0"),
    "changed binary": _edit("binary.bin", b"\x01\x02\x03", b"\0\0\0\0"),
    "binary that looks like text at first": _write("late.bin", b"text\n" * 4000 + b"\0\xff"),
    "text to binary": _write("README.md", b"\0\x01\x02"),
    "final newline removed": _write("newline", "one\ntwo"),
    "final newline added": _write("no-newline", "last line without end\n"),
    "edit before a missing final newline": _write("no-newline", "first\nlast line without end"),
    "only blanks at the end": _edit("trailing.txt", b"text   ", b"text  "),
    "CRLF edited": _edit("crlf.txt", b"two", b"zwei"),
    "new CRLF file": _write("new-crlf.txt", "one\r\ntwo\r\n"),
    "CRLF to LF": _write("crlf.txt", "one\ntwo\n"),
    "LF to CRLF": _write("newline", "one\r\ntwo\r\n"),
    "mixed line ends edited": _edit("mixed.txt", b"three", b"drei"),
    "Latin-1 edited": _edit("latin1.txt", b"caf", b"d\xe9caf"),
    "form feed edited": _edit("formfeed.c", b"three", b"drei"),
    "U+2028 edited": _edit("u2028.js", b"c", b"C"),
    "UTF-16": _write("utf16.txt", "wide\n".encode("utf-16")),
    "UTF-8 with byte order mark": _write("bom.txt", b"\xef\xbb\xbfbom\n"),
    "name with spaces": _write("new name  with spaces .txt", "x\n"),
    "edit of a name with a space": _edit("with space.txt", b"space", b"blank"),
    "name with quotes": _write('it\'s "quoted".txt', "x\n"),
    "name with a newline": _write("two\nlines\r\n.txt", "x\n"),
    "name with a tab and control characters": _write("tab\there\x01\x1b[31m", "x\n"),
    "name with a backslash": _write("back\\slash\\n", "x\n"),
    "non-ASCII name": _write("grüße/日本語 🎉.txt", "x\n"),
    "non-UTF-8 name": _write(b"bad-\xff\xfe-\xe9.txt", "x\n"),
    "edit of a non-UTF-8 name": _edit(b"latin-\xe9.txt", b"name", b"names"),
    "names alike but for composition": lambda r: (
        write(r, "e\u0301.txt", "decomposed\n"),
        write(r, "\u00e9.txt", "composed\n"),
    ),
    "leading dash": lambda r: (write(r, "-rf", "x\n"), write(r, "--force/-n", "y\n")),
    "pathspec magic": lambda r: (write(r, ":(top)x", "x\n"), write(r, ":!README.md", "y\n")),
    "glob characters": lambda r: (write(r, "*", "x\n"), write(r, "[a]?{b}", "y\n")),
    "long name": _write("n" * 255, "x\n"),
    "deep folder": _write("d/" * 100 + "file", "x\n"),
    "deletion": lambda r: (r / "README.md").unlink(),
    "deletion of a folder": lambda r: shutil.rmtree(r / "gone"),
    "deletion of everything": _everything_gone,
    "edit in folders a and b": lambda r: (
        write(r, "a/inside.txt", "in a!\n"),
        write(r, "b/new.txt", "n\n"),
        write(r, "a/b/c", "c\n"),
    ),
    "file of 60,000 lines": _write("new-long.txt", LINES.replace("line", "row")),
    "edit of 60,000 lines": _edit("long.txt", b"line 30000\n", b"changed\n"),
    "line of 200 kB": _write("new-wide.txt", "y" * 200_000),
    "edit in a line of 200 kB": _edit("wide.txt", b"xxx\nend", b"xxy\nend"),
    "text that looks like a diff": _write("new.diff", DIFF * 3),
    "edit of text that looks like a diff": _edit("diff.txt", b"+new\n", b"-new\n+newer\n"),
    "text that looks like a conflict": _write("c", "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"),
    "only NUL bytes": _write("nul", b"\0" * 5000),
    "tracked though ignored": _write("tracked.log", "changed\n"),
    "tracked though ignored, deleted": lambda r: (r / "tracked.log").unlink(),
    "ignored files": lambda r: (
        write(r, "debug.log", "no\n"),
        write(r, "build/out", "no\n"),
        write(r, "yes.txt", "yes\n"),
    ),
    "own .gitignore": lambda r: (
        write(r, "sub/.gitignore", "*.tmp\n!keep.tmp\n"),
        write(r, "sub/x.tmp", "no\n"),
        write(r, "sub/keep.tmp", "yes\n"),
    ),
    "ignore rule that covers tracked files": _write(".gitignore", "*\n"),
    "sparse file": lambda r: (write(r, "sparse", b"x"), os.truncate(r / "sparse", 3_000_000)),
    "hard links": lambda r: os.link(r / "README.md", r / "hard"),
    "empty folder": lambda r: (r / "void/of/files").mkdir(parents=True),
    "set-user-id file": _write("suid", "x\n", 0o4755),
    "old timestamp": lambda r: (
        write(r, "README.md", "hallo\nworld\n"),
        os.utime(r / "README.md", (1, 1)),
    ),
    "same size, same time": lambda r: (
        (stat := (r / "README.md").stat()),
        write(r, "README.md", "HELLO\nworld\n"),
        os.utime(r / "README.md", ns=(stat.st_atime_ns, stat.st_mtime_ns)),
    ),
    "pipe and socket are left out": lambda r: (os.mkfifo(r / "pipe"), write(r, "beside", "x\n")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_published_tree_and_diff_match_the_sandbox(scenario: Scenario, name: str) -> None:
    CHANGES[name](scenario.root)
    expected = scenario.expected_tree()
    patch = scenario.export()
    assert scenario.publish(patch) == expected
    assert patch.is_empty == (patch.diff == b"")
    if not patch.is_empty:
        apply = ["git", "apply", "--binary", "--cached", "--whitespace=nowarn"]
        subprocess.run(apply, cwd=scenario.source, input=patch.diff, check=True)
    assert plain_git(scenario.source, "write-tree") == expected


def test_all_changes_that_go_together_have_one_tree(scenario: Scenario) -> None:
    apart = {"deletion of everything", "ignore rule that covers tracked files"}
    for name, change in CHANGES.items():
        if name not in apart:
            try:
                change(scenario.root)
            except (OSError, AssertionError):
                # An earlier change took away what this one is about.
                continue
    expected = scenario.expected_tree()
    assert scenario.publish() == expected


ATTRIBUTES = """\
*.txt text
*.win text eol=crlf
*.bin -text
*.auto text=auto
*.u16 text working-tree-encoding=UTF-16LE eol=lf
*.id ident
*.flt filter=unknown diff=unknown merge=unknown
"""


def test_line_end_rules_are_honoured_as_git_does(tmp_path: Path) -> None:
    files: dict[str | bytes, bytes | str] = {".gitattributes": ATTRIBUTES, "old.win": "a\nb\n"}
    scenario = open_scenario(make_repository(tmp_path / "source", files), tmp_path)
    assert (scenario.root / "old.win").read_bytes() == b"a\r\nb\r\n"
    write(scenario.root, "old.win", "a\r\nb\r\nc\r\n")
    write(scenario.root, "new.txt", "one\r\ntwo\r\n")
    write(scenario.root, "new.bin", "one\r\ntwo\r\n")
    write(scenario.root, "new.auto", "one\r\ntwo\r\n")
    write(scenario.root, "new.u16", "wide\n".encode("utf-16-le"))
    write(scenario.root, "new.id", "$Id$ $Id: 1234 $\n")
    write(scenario.root, "new.flt", "one\r\ntwo\r\n")
    expected = scenario.expected_tree()
    assert scenario.publish() == expected
    assert plain_git(scenario.source, "cat-file", "blob", "agent/change:old.win") == "a\nb\nc"


def test_files_that_were_not_touched_are_not_changed_by_line_end_rules(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"crlf.txt": "one\r\ntwo\r\n", "x": "x\n"})
    write(source, ".gitattributes", "*.txt text eol=lf\n")
    plain_git(source, "add", ".gitattributes")
    plain_git(source, "commit", "-q", "-m", "rules that nobody applied")
    scenario = open_scenario(source, tmp_path)
    write(scenario.root, "x", "y\n")
    assert [f.path for f in scenario.export().files] == ["x"]
    write(scenario.root, "crlf.txt", "one\r\ntwo\r\nthree\r\n")
    assert [f.path for f in scenario.export().files] == ["crlf.txt", "x"]


def test_an_undone_change_is_empty(scenario: Scenario) -> None:
    write(scenario.root, "README.md", "other\n")
    assert not scenario.export().is_empty
    write(scenario.root, "README.md", "hello\nworld\n")
    patch = scenario.export()
    assert patch.is_empty and patch.diff == b""


def test_the_same_change_makes_the_same_bundle_and_commit(scenario: Scenario) -> None:
    write(scenario.root, "x", "x\n")
    first, second = scenario.export(), scenario.export()
    assert first == second and scenario.commit(first) == scenario.commit(second)


def test_a_shallow_clone_gives_the_same_tree(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source")
    for number in range(5):
        write(source, f"file-{number}", f"{number}\n")
        commit_all(source, f"commit {number}")
    scenario = open_scenario(source, tmp_path, depth=2)
    assert plain_git(scenario.root, "rev-list", "--count", "HEAD") == "2"
    assert plain_git(scenario.root, "fsck", "--strict") == ""
    write(scenario.root, "file-0", "changed\n")
    expected = scenario.expected_tree()
    assert scenario.publish() == expected
