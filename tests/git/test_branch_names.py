"""Tests of branch names made from titles."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.git.push import branch_name, free_branch, slug


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Crash on empty input", "crash-on-empty-input"),
        ("Überlauf: naïve façade", "uberlauf-naive-facade"),
        ("../../main", "main"),
        ("--upload-pack=x", "upload-pack-x"),
        ("$(id); rm -rf `pwd`", "id-rm-rf-pwd"),
        ("@{-1}", "1"),
        ("HEAD", "head"),
        ("a\nb\0c", "a-b-c"),
        ("release.lock", "release-lock"),
        ("日本語", "change"),
        ("", "change"),
        ("word " * 100, "word-" * 9 + "word"),
        ("x" * 500, "x" * 50),
    ],
)
def test_a_slug_consists_of_words_of_the_title(title: str, expected: str) -> None:
    assert slug(title) == expected


@given(st.text())
def test_any_title_gives_a_safe_slug(title: str) -> None:
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?", slug(title))


def test_the_branch_name_contains_the_issue() -> None:
    assert branch_name("Crash on start", 12) == "agent/issue-12-crash-on-start"
    assert branch_name("Crash on start", 7, kind="pull") == "agent/pull-7-crash-on-start"
    assert branch_name("Crash on start") == "agent/crash-on-start"


def test_a_taken_name_gets_the_next_number() -> None:
    assert free_branch([], "agent/x") == "agent/x"
    assert free_branch(["agent/x"], "agent/x") == "agent/x-2"
    assert free_branch(["agent/X", "agent/x-2"], "agent/x") == "agent/x-3"
    assert free_branch(["agent/x/y"], "agent/x") == "agent/x-2"
    assert free_branch(["agent/xy", "main"], "agent/x") == "agent/x"
