"""Tests of parsing CODEOWNERS like GitHub."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.open_pull_request import owners_of, read_rules

EXAMPLE = """
# Each line is a file pattern followed by one or more owners.
*       @global-owner1 @global-owner2

*.js    @js-owner #This is an inline comment.
*.go docs@example.com
*.txt @octo-org/octocats
/build/logs/ @doctocat
docs/*  docs@example.com @docs-direct
apps/ @octocat
/docs/ @doctocat
/scripts/ @doctocat @octocat
**/logs @octocat2
/apps/ @octocat
/apps/github
"""


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("README.md", ("global-owner1", "global-owner2")),
        ("src/deep/a.js", ("js-owner",)),
        ("main.go", ()),
        ("notes.txt", ("octo-org/octocats",)),
        ("build/logs/today/a", ("octocat2",)),
        ("deeply/nested/logs", ("octocat2",)),
        ("logs/x", ("octocat2",)),
        ("docs/a/b.md", ("doctocat",)),
        ("lib/apps/x.py", ("octocat",)),
        ("scripts/run", ("doctocat", "octocat")),
        ("apps/github", ()),
        ("apps/github/x", ()),
        ("apps/other", ("octocat",)),
    ],
)
def test_the_last_line_that_matches_decides(path: str, owners: tuple[str, ...]) -> None:
    assert owners_of(EXAMPLE, [path]) == owners


@pytest.mark.parametrize(
    ("pattern", "matched", "not_matched"),
    [
        ("docs/*", ["docs/a.md"], ["docs/a/b.md", "x/docs/a.md"]),
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "a.py.txt"]),
        ("/a", ["a", "a/b/c"], ["x/a", "ab"]),
        ("a/b", ["a/b", "a/b/c"], ["x/a/b"]),
        ("**/a/b", ["a/b", "x/y/a/b/c"], ["xa/b"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "x/a/b"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["az", "a/bz"]),
        ("/src/*/x", ["src/a/x", "src/a/x/y"], ["src/x", "src/a/b/x"]),
        ("fil?", ["file", "x/fils"], ["fil", "files"]),
        (r"a\ b.md", ["a b.md"], ["a", "b.md"]),
        ("README.md", ["README.md", "x/README.md"], ["readme.md", "READMEXmd"]),
        ("**", ["a", "a/b"], []),
        ("/", [], ["a", ""]),
        ("a+b(c)", ["a+b(c)"], ["aab(c)"]),
    ],
)
def test_a_pattern_matches_as_on_github(
    pattern: str, matched: list[str], not_matched: list[str]
) -> None:
    for path in matched:
        assert owners_of(f"{pattern} @me", [path]) == ("me",), path
    for path in not_matched:
        assert owners_of(f"{pattern} @me", [path]) == (), path


@pytest.mark.parametrize(
    "line",
    ["!*.md @you", "[ab].md @you", "* you", "* @you @-", "* @@you", r"\#a.md @you", "***/a @you"],
)
def test_a_line_that_github_ignores_is_ignored(line: str) -> None:
    assert owners_of(f"* @me\n{line}\n", ["a.md", "#a.md"]) == ("me",)


def test_an_owner_given_by_email_can_not_be_requested() -> None:
    assert owners_of("* @me\n*.md me@example.com\n", ["a.md"]) == ()


def test_the_owners_of_several_files_come_once_each() -> None:
    rules = "*.py @Bob @ann\n*.md @BOB @cy\n"
    assert owners_of(rules, ["a.py", "b.md", "c.py"]) == ("Bob", "ann", "cy")


def test_line_ends_of_windows_are_read() -> None:
    assert owners_of("* @me\r\n*.py @py\r\n", ["a.py"]) == ("py",)


_NAMES = st.text(alphabet="ab.*?/\\ #@[]!-\t\r\n", max_size=30)


@given(_NAMES, st.lists(st.text(alphabet="ab./ -", max_size=20), max_size=5))
def test_any_codeowners_file_can_be_parsed(text: str, paths: list[str]) -> None:
    owners = owners_of(text, paths)
    assert len({owner.casefold() for owner in owners}) == len(owners)
    assert len(list(read_rules(text))) <= len(text.splitlines())


@given(st.lists(st.text(alphabet="abc._-", min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_files_own_name_from_the_root_is_its_pattern(parts: list[str]) -> None:
    path = "/".join(parts)
    assert owners_of(f"/{path} @me", [path]) == ("me",)
    assert owners_of(f"/{path} @me", [f"{path}x", f"x/{path}"]) == ()


@given(
    st.lists(st.sampled_from(["*", "*.py", "/src/", "docs/*", "/src/a.py"]), max_size=6),
    st.sampled_from(["a.py", "src/a.py", "docs/x", "docs/x/y", "src/b/c"]),
)
def test_of_all_lines_that_match_only_the_last_counts(patterns: list[str], path: str) -> None:
    rules = [f"{pattern} @o{number}" for number, pattern in enumerate(patterns)]
    matching = [n for n, rule in enumerate(rules) if owners_of(rule, [path])]
    expected = (f"o{matching[-1]}",) if matching else ()
    assert owners_of("\n".join(rules), [path]) == expected
