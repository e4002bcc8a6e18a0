"""Tests that every kind of change reaches a published branch with the same tree hash."""

# Paths that are bytes have no Path.
# ruff: noqa: PTH108, PTH118, PTH120

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
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
from tests.git.trees import Link
from tests.parts.templates import Templates

LINES = "".join(f"line {n}\n" for n in range(60_000))
CODE = "".join(f"value_{n} = {n}\n" for n in range(200))
CHANGED_CODE = CODE.replace("value_3 = 3", "value_3 = 4")
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

Content = str | bytes | tuple[int, str] | Link | None
"""A file's content, with its mode if that is not 0644; None where there is no file."""

Versions = tuple[Content, Content]
"""The content in the base and after the change."""

KINDS: dict[str, Mapping[str, Versions] | Mapping[bytes, Versions]] = {
    "edit": {"README.md": ("hello\nworld\n", "hello\nthere\n")},
    "new file": {"new.txt": (None, "new\n")},
    "new empty file": {"new-empty": (None, "")},
    "emptied file": {"emptied": ("full\n", "")},
    "filled empty file": {"filled": ("", "no more\n")},
    "executable bit set": {"set.sh": ("x\n", (0o755, "x\n"))},
    "executable bit removed": {"removed.sh": ((0o755, "x\n"), "x\n")},
    "executable bit and content": {"both.sh": ("x\n", (0o755, "y\n"))},
    "new executable": {"bin/run": (None, (0o755, "#!/bin/sh\n"))},
    "group and other bits are not kept": {"private": ("x\n", (0o600, "y\n"))},
    "set-user-id file": {"suid": (None, (0o4755, "x\n"))},
    "new symlink": {"alias": (None, Link("README.md"))},
    "new symlink to a folder": {"folder-alias": (None, Link("bin"))},
    "new dangling symlink": {"dangling": (None, Link("no such file"))},
    "symlink moved to another target": {"moved": (Link("nowhere/at/all"), Link("README.md"))},
    "symlink target that is not UTF-8": {"odd": (None, Link(os.fsdecode(b"latin-\xe9.txt")))},
    "file to symlink": {"to-link": ("one\ntwo\n", Link("README.md"))},
    "symlink to file": {"to-file": (Link("README.md"), "now a file\n")},
    "file to folder": {"both": ("file\n", None), "both/now/a/folder": (None, "x\n")},
    "folder to file": {"folder/file": ("f\n", None), "folder": (None, "now a file\n")},
    "folder to symlink": {"linked/file": ("f\n", None), "linked": (None, Link("bin"))},
    "rename": {"guide.md": (LINES, None), "docs/guide.md": (None, LINES)},
    "rename with edit": {"app.py": (CODE, None), "main.py": (None, CHANGED_CODE)},
    "rename of a folder with edit": {
        "src/app.py": (CODE, None), "src/deep/er.py": ("x = 1\n", None),
        "lib/app.py": (None, CHANGED_CODE), "lib/deep/er.py": (None, "x = 1\n"),
    },
    "swap of two files": {"a/swap": ("in a\n", "in b\n"), "b/swap": ("in b\n", "in a\n")},
    "names that differ in case": {
        "case/README": ("x\n", None), "case/readme": (None, "x\n"), "case/Readme": (None, "y\n"),
    },
    "folders a and b": {"a/new": (None, "a\n"), "b/new": (None, "n\n"), "a/b/c": (None, "c\n")},
    "new binary": {"new.bin": (None, bytes(range(256)) * 300 + b"\0\n\r\0")},
    "changed binary": {
        "old.bin": (bytes(range(256)) * 20, bytes(256) + bytes(range(256)) * 19),
    },
    "binary that looks like text at first": {"late.bin": (None, b"text\n" * 4000 + b"\0\xff")},
    "text to binary": {"text.bin": ("hello\n", b"\0\x01\x02")},
    "only NUL bytes": {"nul": (None, bytes(5000))},
    "final newline removed": {"newline": ("one\ntwo\n", "one\ntwo")},
    "final newline added": {"no-newline": ("without end", "without end\n")},
    "edit before a missing final newline": {"before": ("without end", "first\nwithout end")},
    "only blanks at the end": {"trailing": ("text   \n\t\n  ", "text  \n\t\n  ")},
    "CRLF edited": {"crlf.txt": ("one\r\ntwo\r\n", "one\r\nzwei\r\n")},
    "new CRLF file": {"new-crlf.txt": (None, "one\r\ntwo\r\n")},
    "CRLF to LF": {"to-lf.txt": ("one\r\ntwo\r\n", "one\ntwo\n")},
    "LF to CRLF": {"to-crlf.txt": ("one\ntwo\n", "one\r\ntwo\r\n")},
    "mixed line ends edited": {"mixed": ("1\r\n2\nthree\r4\n", "1\r\n2\ndrei\r4\n")},
    "Latin-1 edited": {"latin1.txt": (b"caf\xe9\n", b"d\xe9caf\xe9\n")},
    "form feed edited": {"formfeed.c": ("one\ntwo\x0c\nthree\n", "one\ntwo\x0c\ndrei\n")},
    "U+2028 edited": {"u2028.js": ("a\u2028b\nc\u2029d\x85e\n", "a\u2028b\nC\u2029d\x85e\n")},
    "UTF-16": {"utf16.txt": (None, "wide\n".encode("utf-16"))},
    "UTF-8 with byte order mark": {"bom.txt": (None, b"\xef\xbb\xbfbom\n")},
    "file of 60,000 lines": {"new-long.txt": (None, LINES.replace("line", "row"))},
    "edit of 60,000 lines": {"long.txt": (LINES, LINES.replace("line 30000\n", "changed\n"))},
    "line of 200 kB": {"new-wide.txt": (None, "y" * 200_000)},
    "edit in a line of 200 kB": {
        "wide.txt": ("x" * 200_000 + "\nend\n", "x" * 199_999 + "y\nend\n"),
    },
    "text that looks like a diff": {"new.diff": (None, DIFF * 3)},
    "edit of text that looks like a diff": {
        "old.diff": (DIFF, DIFF.replace("+new\n", "-new\n+newer\n")),
    },
    "text that looks like a conflict": {
        "conflict": (None, "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"),
    },
    "name with spaces": {"new name  with spaces .txt": (None, "x\n")},
    "edit of a name with a space": {"with space.txt": ("space\n", "blank\n")},
    "name with quotes": {'it\'s "quoted".txt': (None, "x\n")},
    "name with a newline": {"two\nlines\r\n.txt": (None, "x\n")},
    "name with a tab and control characters": {"tab\there\x01\x1b[31m": (None, "x\n")},
    "name with a backslash": {"back\\slash\\n": (None, "x\n")},
    "non-ASCII name": {"grüße/日本語 🎉.txt": (None, "x\n")},
    "non-UTF-8 name": {b"bad-\xff\xfe-\xe9.txt": (None, "x\n")},
    "edit of a non-UTF-8 name": {b"latin-\xe9.txt": ("name\n", "names\n")},
    "names alike but for composition": {
        "e\u0301.txt": (None, "decomposed\n"), "\u00e9.txt": (None, "composed\n"),
    },
    "leading dash": {"-rf": (None, "x\n"), "--force/-n": (None, "y\n")},
    "pathspec magic": {":(top)x": (None, "x\n"), ":!README.md": (None, "y\n")},
    "glob characters": {"*": (None, "x\n"), "[a]?{b}": (None, "y\n")},
    "long name": {"n" * 255: (None, "x\n")},
    "deep folder": {"d/" * 100 + "file": (None, "x\n")},
    "deletion": {"deleted": ("x\n", None)},
    "deletion of a folder": {"gone/one.txt": ("1\n", None), "gone/two.txt": ("2\n", None)},
    "tracked though ignored": {"tracked.log": ("ignored\n", "changed\n")},
    "tracked though ignored, deleted": {"deleted.log": ("ignored\n", None)},
    "own .gitignore": {
        "sub/.gitignore": (None, "*.tmp\n!keep.tmp\n"), "sub/keep.tmp": (None, "yes\n"),
    },
    # The times and links of the following are set by `finish`.
    "sparse file": {"sparse": (None, b"x" + bytes(2_999_999))},
    "hard link": {"hard": (None, "hello\nthere\n")},
    "old timestamp": {"old-time": ("hello\n", "hallo\n")},
    "same size, same time": {"same-time": ("hello\n", "HELLO\n")},
}  # fmt: skip
CHANGED = {os.fsencode(path): both for kind in KINDS.values() for path, both in kind.items()}
"""All of them go together: no two are about the same path."""

UNCHANGED: dict[str | bytes, bytes | str] = {".gitignore": "*.log\nbuild/\n", "stays": "x\n"}
IGNORED = ("debug.log", "build/out", "sub/x.tmp")


def put(root: Path, path: bytes, content: Content) -> None:
    """Give a file this content, and remove it with its empty folders if that is None."""
    match content:
        case None:
            full = os.path.join(os.fsencode(root), path)
            os.unlink(full)
            with suppress(OSError):  # the folder has other files
                os.removedirs(os.path.dirname(full))
        case Link(target):
            link(root, path, os.fsencode(target))
        case (mode, data):
            write(root, path, data, mode)
        case _:
            write(root, path, content)


def build_scenario(place: Path) -> Scenario:
    source = make_repository(place / "source", UNCHANGED)
    for path, (content, _) in CHANGED.items():
        if content is not None:
            put(source, path, content)
    commit_all(source, "every kind")
    return open_scenario(source, place)


@pytest.fixture
def scenario(templates: Templates, tmp_path: Path) -> Scenario:
    return copy_scenario(templates, build_scenario, tmp_path)


def finish(root: Path, before: os.stat_result) -> None:
    """Do what is not the content of a file. before: what the file had that keeps its time."""
    os.truncate(root / "sparse", 1)
    os.truncate(root / "sparse", 3_000_000)
    (root / "hard").unlink()
    (root / "hard").hardlink_to(root / "README.md")
    os.utime(root / "old-time", (1, 1))
    os.utime(root / "same-time", ns=(before.st_atime_ns, before.st_mtime_ns))
    (root / "void/of/files").mkdir(parents=True)
    os.mkfifo(root / "pipe")
    for path in IGNORED:
        write(root, path, "no\n")


def _files(folder: Path, tree: str) -> set[str]:
    return set(plain_git(folder, "ls-tree", "-r", "-z", "--full-tree", tree).split("\0"))


def test_the_published_tree_and_diff_have_every_kind_of_change(scenario: Scenario) -> None:
    assert len(CHANGED) == sum(map(len, KINDS.values()))
    before = (scenario.root / "same-time").stat()
    # What goes makes place for what comes.
    for path, (_, content) in sorted(CHANGED.items(), key=lambda row: row[1][1] is not None):
        put(scenario.root, path, content)
    finish(scenario.root, before)
    expected = scenario.expected_tree()
    patch = scenario.export()
    tree = scenario.publish(patch)
    files = plain_git(scenario.source, "diff-tree", "-r", "-z", "--name-only", "main", tree)
    assert set(map(os.fsencode, files.split("\0"))) - {b""} == set(CHANGED)
    assert len(patch.files) == len(CHANGED)
    apply = ["git", "apply", "--binary", "--cached", "--whitespace=nowarn"]
    subprocess.run(apply, cwd=scenario.source, input=patch.diff, check=True)
    applied = plain_git(scenario.source, "write-tree")
    assert _files(scenario.source, applied) == _files(scenario.source, tree)
    assert applied == tree == expected


def test_the_deletion_of_everything_is_published(scenario: Scenario) -> None:
    for path in scenario.root.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    assert scenario.publish() == scenario.expected_tree()
    assert _files(scenario.source, "agent/change") == {""}


def test_a_rule_that_ignores_tracked_files_removes_none(scenario: Scenario) -> None:
    write(scenario.root, ".gitignore", "*\n")
    write(scenario.root, "new", "x\n")
    expected = scenario.expected_tree()
    patch = scenario.export()
    assert [file.path for file in patch.files] == [".gitignore"]
    assert scenario.publish(patch) == expected


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
