"""Tests of globs over repository paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.models.path_globs import matches_glob


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", "deep/in/a.py"),
        ("src/*.py", "src/a.py"),
        ("src/**/*.py", "src/a.py"),
        ("src/**/*.py", "src/b/c/a.py"),
        ("src/**", "src/b/c"),
        ("src/", "src/b/c"),
        ("src/**/c", "src/c"),
        ("**/tests/**", "a/tests/b.py"),
        ("/Makefile", "Makefile"),
        ("./src/a.?s", "src/a.ts"),
        ("*.{ts,tsx}", "web/a.tsx"),
        ("{a,b}/{c,d}.py", "b/c.py"),
        ("[ab].py", "b.py"),
        ("[!ab].py", "c.py"),
        ("a[b", "a[b"),
        ("caf\u00e9/*", "caf\u00e9/x"),
    ],
)
def test_a_glob_matches(glob: str, path: str) -> None:
    assert matches_glob(path, glob)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.py", "a.pyc"),
        ("src/*.py", "src/b/a.py"),
        ("src/*.py", "lib/src/a.py"),
        ("/Makefile", "a/Makefile"),
        ("a?b", "a/b"),
        ("[!a]", "/"),
        ("a.b", "axb"),
        ("src/**", "source/a"),
        ("A.py", "a.py"),
    ],
)
def test_a_glob_does_not_match(glob: str, path: str) -> None:
    assert not matches_glob(path, glob)


@given(st.text(alphabet="ab/*?[]{},!.^-\\", max_size=30), st.text(alphabet="ab/.", max_size=20))
def test_any_glob_gives_an_answer(glob: str, path: str) -> None:
    assert matches_glob(path, glob) in (True, False)


def test_the_expansion_of_braces_is_limited() -> None:
    assert matches_glob("a" * 40, "{a,b}" * 40) in (True, False)
