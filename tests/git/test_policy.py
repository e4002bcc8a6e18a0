"""Tests of what the patch policy refuses and accepts."""

from pathlib import Path

import pytest

from resolver.config.settings import Settings
from resolver.errors import PolicyViolation
from resolver.git.policy import enforce_policy, is_protected
from resolver.git.workspace import Workspace
from tests.git.trees import Changes, Entry, Link, patch_of, write_base

PROTECTED = Settings().protected_paths
WORKFLOWS = ".github/workflows"
TOKEN = "ghp_" + "a1B2" * 9
BASE: Changes = {
    "README.md": "hello\n",
    f"{WORKFLOWS}/ci.yml": "on: push\n",
    f"{WORKFLOWS}/linked.yml": Link("../../ci/real.yml"),
    "ci/real.yml": "on: push\n",
    "config.py": "KEY = 'AKIAABCDEFGHIJKLMNOP'\n",
    "old-absolute": Link("/etc/hostname"),
    "lib": Entry("160000", None),
    "named/ghp_" + "z9Y8" * 9: "x\n",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return write_base(tmp_path_factory.mktemp("policy") / "base.git", BASE)


def judge(
    workspace: Workspace,
    changes: Changes,
    protected: tuple[str, ...] = PROTECTED,
    max_bytes: int = 1_000_000,
    max_files: int = 20,
) -> str:
    """Return the message of the violation; "" if the change may be published."""
    try:
        patch = patch_of(workspace, changes)
        enforce_policy(workspace, patch, protected, (), max_bytes, max_files)
    except PolicyViolation as violation:
        protected = ["protected files" in what for what in violation.what.split("; ")]
        assert violation.settings_decide is all(protected)
        assert violation.exit_code == 5 and violation.next_step
        return violation.what
    return ""


PUBLISHED: dict[str, Changes] = {
    "ordinary": {
        "README.md": "hello there\n", "src/github/workflows/x.yml": "x\n",
        "docs/readme": Link("../README.md"), "dangling": Link("not/there/../yet"),
    },
    "an old link that leads out stays": {"fine": Link("README.md")},
    "an edit beside a credential": {"config.py": "# edited\nKEY = 'AKIAABCDEFGHIJKLMNOP'\n"},
    "a moved credential": {"config.py": None, "settings.py": "KEY = 'AKIAABCDEFGHIJKLMNOP'\n"},
    "words that only resemble a credential": {
        "doc.md": "AKIAIOSFODNN7EXAMPLE https://user:pass@host/ sk-circle-fade-dot ghp_short\n"
        "Authorization: Bearer abcdef\n"
    },
    "a credential as the name of a deleted file": {"named": None},
    "as many files as allowed": {f"many/{number}": "x\n" for number in range(20)},
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_may_be_published(workspace: Workspace, name: str) -> None:
    assert judge(workspace, PUBLISHED[name]) == ""


REFUSED: dict[str, tuple[Changes, str]] = {
    "added": ({f"{WORKFLOWS}/x.yml": "x"}, f"protected files: {WORKFLOWS}/x.yml"),
    "edited": ({f"{WORKFLOWS}/ci.yml": "x"}, f"protected files: {WORKFLOWS}/ci.yml"),
    "deleted": ({f"{WORKFLOWS}/ci.yml": None}, f"protected files: {WORKFLOWS}/ci.yml"),
    "mode": ({f"{WORKFLOWS}/ci.yml": Entry("100755", b"on: push\n")}, "protected files"),
    "renamed into": (
        {"ci/real.yml": None, f"{WORKFLOWS}/real.yml": "on: push\n"}, f"{WORKFLOWS}/real.yml",
    ),
    "renamed away": ({f"{WORKFLOWS}/ci.yml": None, "ci.yml": "on: push\n"}, "ci.yml"),
    "case": ({".GitHub/Workflows/X.YML": "x"}, "protected files: .GitHub/Workflows/X.YML"),
    "ignorable character": ({".git\u200chub/workflows/x.yml": "x"}, "protected files"),
    "deep": ({f"{WORKFLOWS}/a/b/x.yml": "x"}, "a/b/x.yml"),
    "composite action": ({".github/actions/a/action.yml": "x"}, "action.yml"),
    "owners": ({"docs/codeowners": "x"}, "docs/codeowners"),
    "our settings": ({".github/resolver.yml": "x"}, ".github/resolver.yml"),
    "submodules' file": ({".gitmodules": ""}, ".gitmodules"),
    "target of a linked workflow": ({"ci/real.yml": "x"}, "protected files: ci/real.yml"),
    "another target of a linked workflow": (
        {f"{WORKFLOWS}/linked.yml": Link("../../README.md")}, "linked.yml",
    ),
    "link in the place of .github": (
        {".github": None, "github/ci.yml": "x"} | {".github": Link("github")}, ".github",
    ),
    "link in the place of workflows": ({WORKFLOWS: Link("../flows")}, WORKFLOWS),
    "link among workflows": ({f"{WORKFLOWS}/y.yml": Link("../../README.md")}, "y.yml"),
    **{
        f"link to {target}": ({"escape": Link(target)}, "point outside the repository: escape")
        for target in (
            "/etc/passwd", "..", "../outside", "a/../../outside", "./../x", "ci/../../x",
            ".git/hooks/pre-commit", "ci/../.GIT/config", "//host",
        )
    },
    "links that lead out only together": (
        {"x/y/z/up": Link("../../.."), "escape": Link("x/y/z/up/../outside")},
        "repository: escape",
    ),
    "an old link with another target": ({"old-absolute": Link("/etc/passwd")}, "old-absolute"),
    "a changed credential": ({"config.py": "KEY = 'AKIAABCDEFGHIJKLMNOQ'\n"}, "config.py line 1"),
    "a credential as a name": ({TOKEN: "x\n"}, "name of a file"),
    "too many files": ({f"many/{number}": "x\n" for number in range(21)}, "21 files"),
    "a large file": ({"large.txt": "many\n" * 300_000}, "above the limit of 1000000"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(workspace: Workspace, name: str) -> None:
    changes, words = REFUSED[name]
    assert words in judge(workspace, changes)


@pytest.mark.attack
def test_a_protected_path_reached_through_a_moved_link_is_refused(tmp_path: Path) -> None:
    """A change reaches a protected path through a link: refused."""
    links: Changes = {"current": Link("one"), WORKFLOWS: Link("../current")}
    workspace = write_base(tmp_path / "b", {"one/ci.yml": "1\n", "two/ci.yml": "2\n", **links})
    assert WORKFLOWS in judge(workspace, {"current": Link("two")})
    assert "one/ci.yml" in judge(workspace, {"one/ci.yml": "changed\n"})


@pytest.mark.parametrize(
    ("glob", "path", "refused"),
    [
        ("**/*.lock", "a/b/x.lock", True),
        ("**/*.lock", "x.lock", True),
        ("secrets/**", "secrets/a/b", True),
        ("a/**/z", "az", False),
        ("conf?g", "config", True),
        ("x.y", "xzy", False),
        ("Straße", "STRASSE", True),
        ("CODEOWNERS", "sub/CODEOWNERS", False),
        ("/docs/", "docs", True),
        # The change chooses the path. With backtracking, each star would multiply the attempts.
        pytest.param("a*" * 40 + "b", "a" * 4000, False, id="stars in a name"),
        pytest.param("**/a/" * 30 + "b", "a/" * 2000 + "c", False, id="stars for names"),
    ],
)
def test_globs_match_as_documented(glob: str, path: str, refused: bool) -> None:
    assert is_protected(path, ("something/else", glob)) is refused


@pytest.mark.parametrize(
    ("glob", "path", "refused"),
    [
        ("a/b/**", "a", True),
        ("a/b/**", "A/B", True),
        ("a/b/c", "a/c", False),
        ("a/b/c", "b", False),
        ("a/**/c", "x", False),
        ("a*/b", "abc", True),
        ("a/b", "a/b/c", False),
    ],
)
def test_a_link_in_place_of_a_folder_that_a_glob_names_is_refused(
    workspace: Workspace, glob: str, path: str, refused: bool
) -> None:
    found = judge(workspace, {path: Link("x")}, (glob,))
    assert ("protected" in found) is refused


@pytest.mark.attack
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"added": Entry("160000", None)}, "whose files would be missing: added"),
        ({"README.md": Entry("160000", None)}, "whose files would be missing: README.md"),
        ({"lib": None}, "submodules: lib"),
        ({"lib": "a file\n"}, "submodules: lib"),
    ],
)
def test_submodules_are_refused_added_moved_and_removed(
    workspace: Workspace, changes: Changes, words: str
) -> None:
    """A change adds, moves or removes a submodule: refused."""
    assert words in judge(workspace, changes)


def test_what_a_merge_takes_from_the_base_may_be_protected_and_nothing_else(
    workspace: Workspace,
) -> None:
    taken: Changes = {f"{WORKFLOWS}/ci.yml": "on: [push]\n", "lib": None}
    paths = {path.encode() for path in taken}
    enforce_policy(workspace, patch_of(workspace, taken), PROTECTED, paths)
    with pytest.raises(PolicyViolation) as refused:
        more = patch_of(workspace, {**taken, f"{WORKFLOWS}/more.yml": "on: push\n"})
        enforce_policy(workspace, more, PROTECTED, paths)
    assert "more.yml" in refused.value.what and "ci.yml" not in refused.value.what


@pytest.mark.attack
@pytest.mark.parametrize("token", [TOKEN, "-----BEGIN RSA PRIVATE KEY-----"])
@pytest.mark.parametrize("form", ["text", "new file", "binary", "UTF-16"])
def test_an_added_credential_is_named_with_file_and_line_and_not_shown(
    workspace: Workspace, token: str, form: str
) -> None:
    """A change adds a credential: refused with file and line, without the value."""
    line = f'key = "{token}"\n'
    changes: dict[str, Changes] = {
        "text": {"README.md": f"hello\n\n{line}"},
        "new file": {"a/b.env": f"\n\n{line}"},
        "binary": {"x.bin": b"\xff\x00\n\xfe\n" + line.encode()},
        "UTF-16": {"wide.txt": f"\n\n{line}".encode("utf-16")},
    }
    words = judge(workspace, changes[form])
    assert "credential" in words and "line 3" in words
    assert token not in words and token[12:] not in words


def test_a_change_of_the_maximum_size_passes(workspace: Workspace) -> None:
    changes: Changes = {"new.bin": "x" * 5_000}
    size = len(patch_of(workspace, changes).diff)
    assert judge(workspace, changes, (), size, 1) == ""
    assert f"{size} bytes" in judge(workspace, changes, (), size - 1, 1)


def test_the_diff_of_a_large_file_is_kept_up_to_the_limit(workspace: Workspace) -> None:
    changes: Changes = {"README.md": "changed\n", "large.bin": bytes(range(256)) * 4_000}
    patch = patch_of(workspace, changes, limit=100_000)
    assert b"+changed" in patch.diff and b"large.bin" in patch.diff
    assert len(patch.diff) < 2_000
    parts = {f"part-{number}.txt": f"{number} of many\n" * 5_000 for number in range(5)}
    assert len(patch_of(workspace, parts, limit=100_000).diff) == 100_001


def test_all_violations_are_reported_at_once_and_bounded(workspace: Workspace) -> None:
    many = {f"{WORKFLOWS}/{number}.yml": "x\n" for number in range(15)}
    words = judge(workspace, {**many, "out": Link("/etc"), "key": TOKEN})
    assert "and 5 more" in words and "out" in words and "key line 1" in words
