"""Tests of what the patch policy refuses and accepts."""

# Paths that are bytes have no Path.
# ruff: noqa: PTH101

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from resolver.config.settings import Settings
from resolver.errors import PolicyViolation
from resolver.git.policy import (
    PatchPolicy,
    enforce_policy,
    is_protected,
)
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

POLICY = PatchPolicy(
    protected_paths=Settings().protected_paths,
    max_bytes=1_000_000,
    max_files=20,
)

BASE: dict[str | bytes, bytes | str] = {
    "README.md": "hello\n",
    ".github/workflows/ci.yml": "on: push\n",
    "ci/real.yml": "on: push\n",
    "config.py": "KEY = 'AKIAABCDEFGHIJKLMNOP'\n",
}


def build_scenario(place: Path) -> Scenario:
    source = make_repository(place / "source", BASE)
    link(source, ".github/workflows/linked.yml", "../../ci/real.yml")
    link(source, "old-absolute", "/etc/hostname")
    commit_all(source)
    return open_scenario(source, place)


@pytest.fixture
def scenario(templates: Templates, tmp_path: Path) -> Scenario:
    return copy_scenario(templates, build_scenario, tmp_path)


def _judge(scenario: Scenario, policy: PatchPolicy = POLICY) -> str:
    """Return the message of the violation; "" if the change may be published."""
    try:
        enforce_policy(scenario.workspace, scenario.export(), policy)
    except PolicyViolation as violation:
        protected = ["protected files" in what for what in violation.what.split("; ")]
        assert violation.settings_decide is all(protected)
        assert violation.exit_code == 5 and violation.next_step
        return violation.what
    return ""


def test_an_ordinary_change_may_be_published(scenario: Scenario) -> None:
    write(scenario.root, "README.md", "hello there\n")
    write(scenario.root, "src/github/workflows/x.yml", "x\n")
    link(scenario.root, "docs/readme", "../README.md")
    link(scenario.root, "dangling", "not/there/../yet")
    assert _judge(scenario) == ""


Change = Callable[[Path], object]


def _linked_folder(root: Path) -> None:
    shutil.move(root / ".github", root / "github")
    link(root, ".github", "github")


def _linked_workflows(root: Path) -> None:
    shutil.move(root / ".github/workflows", root / "flows")
    link(root, ".github/workflows", "../flows")


PROTECTED: dict[str, tuple[Change, str]] = {
    "added": (lambda r: write(r, ".github/workflows/x.yml", "x"), ".github/workflows/x.yml"),
    "edited": (lambda r: write(r, ".github/workflows/ci.yml", "x"), ".github/workflows/ci.yml"),
    "deleted": (lambda r: (r / ".github/workflows/ci.yml").unlink(), ".github/workflows/ci.yml"),
    "mode": (lambda r: os.chmod(r / ".github/workflows/ci.yml", 0o755), "ci.yml"),
    "renamed into": (
        lambda r: (r / "ci/real.yml").rename(r / ".github/workflows/real.yml"),
        ".github/workflows/real.yml",
    ),
    "renamed away": (lambda r: (r / ".github/workflows/ci.yml").rename(r / "ci.yml"), "ci.yml"),
    "case": (lambda r: write(r, ".GitHub/Workflows/X.YML", "x"), ".GitHub/Workflows/X.YML"),
    "ignorable character": (
        lambda r: write(r, ".git\u200chub/workflows/x.yml", "x"), "workflows/x.yml",
    ),
    "deep": (lambda r: write(r, ".github/workflows/a/b/x.yml", "x"), "a/b/x.yml"),
    "composite action": (lambda r: write(r, ".github/actions/a/action.yml", "x"), "action.yml"),
    "owners": (lambda r: write(r, "docs/codeowners", "x"), "docs/codeowners"),
    "our settings": (lambda r: write(r, ".github/resolver.yml", "x"), ".github/resolver.yml"),
    "submodules": (lambda r: write(r, ".gitmodules", ""), ".gitmodules"),
    "target of a linked workflow": (lambda r: write(r, "ci/real.yml", "x"), "ci/real.yml"),
    "another target of a linked workflow": (
        lambda r: link(r, ".github/workflows/linked.yml", "../../README.md"), "linked.yml",
    ),
    "link in the place of .github": (_linked_folder, ".github"),
    "link in the place of workflows": (_linked_workflows, ".github/workflows"),
    "link among workflows": (
        lambda r: link(r, ".github/workflows/y.yml", "../../README.md"), "y.yml",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROTECTED)
def test_a_protected_file_is_refused_and_named(scenario: Scenario, name: str) -> None:
    change, named = PROTECTED[name]
    change(scenario.root)
    words = _judge(scenario)
    assert "protected" in words and named in words


@pytest.mark.attack
def test_a_protected_path_reached_through_a_moved_link_is_refused(tmp_path: Path) -> None:
    """A change reaches a protected path through a link: refused."""
    source = make_repository(tmp_path / "source", {"one/ci.yml": "1\n", "two/ci.yml": "2\n"})
    link(source, "current", "one")
    link(source, ".github/workflows", "../current")
    commit_all(source)
    scenario = open_scenario(source, tmp_path)
    link(scenario.root, "current", "two")
    assert ".github/workflows" in _judge(scenario)
    link(scenario.root, "current", "one")
    write(scenario.root, "one/ci.yml", "changed\n")
    assert "one/ci.yml" in _judge(scenario)


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
    ],
)
def test_globs_match_as_documented(glob: str, path: str, refused: bool) -> None:
    assert is_protected(path, ("something/else", glob)) is refused


@pytest.mark.parametrize(
    ("glob", "path"),
    [("a*" * 40 + "b", "a" * 4000), ("**/a/" * 30 + "b", "a/" * 2000 + "c")],
    ids=["stars in a name", "stars for names"],
)
def test_a_path_that_nearly_matches_many_stars_is_compared_in_a_moment(
    glob: str, path: str
) -> None:
    """The change chooses the path. With backtracking, each star would multiply the attempts."""
    assert not is_protected(path, (glob,))


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
    scenario: Scenario, glob: str, path: str, refused: bool
) -> None:
    policy = PatchPolicy((glob,), 1_000_000, 20)
    link(scenario.root, path, "README.md" if "/" not in path else "x")
    assert ("protected" in _judge(scenario, policy)) is refused


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd", "..", "../outside", "a/../../outside", "./../x", "ci/../../x",
        ".git/hooks/pre-commit", "ci/../.GIT/config", "//host",
    ],
)  # fmt: skip
def test_a_new_link_that_leads_out_is_refused_and_named(scenario: Scenario, target: str) -> None:
    link(scenario.root, "escape", target)
    assert "point outside the repository: escape" in _judge(scenario)


def test_links_that_lead_out_only_together_are_refused(scenario: Scenario) -> None:
    link(scenario.root, "x/y/z/up", "../../..")
    assert _judge(scenario) == ""
    link(scenario.root, "escape", "x/y/z/up/../outside")
    assert "repository: escape" in _judge(scenario)


def test_an_old_link_that_leads_out_may_stay_and_not_be_changed(scenario: Scenario) -> None:
    link(scenario.root, "fine", "README.md")
    assert _judge(scenario) == ""
    link(scenario.root, "old-absolute", "/etc/passwd")
    assert "old-absolute" in _judge(scenario)


@pytest.mark.attack
def test_submodules_are_refused_added_moved_and_removed(tmp_path: Path) -> None:
    """A change adds, moves or removes a submodule: refused."""
    library = make_repository(tmp_path / "library")
    first = plain_git(library, "rev-parse", "HEAD")
    source = make_repository(tmp_path / "source")
    plain_git(source, "update-index", "--add", "--cacheinfo", f"160000,{first},lib")
    plain_git(source, "commit", "-q", "-m", "submodule")
    scenario = open_scenario(source, tmp_path)
    assert scenario.export().is_empty
    (scenario.root / "lib").rmdir()
    assert "submodules" in _judge(scenario) and "lib" in _judge(scenario)
    plain_git(scenario.root, "clone", "-q", str(library), "lib")
    assert scenario.export().is_empty
    commit_all(scenario.root / "lib", "moved")
    assert "submodules" in _judge(scenario)
    enforce_policy(scenario.workspace, scenario.export(), POLICY, {b"lib"})
    plain_git(scenario.root, "clone", "-q", str(library), "added")
    assert "another git repository, whose files would be missing: added" in _judge(scenario)


def test_what_a_merge_takes_from_the_base_may_be_protected_and_nothing_else(
    scenario: Scenario,
) -> None:
    write(scenario.root, ".github/workflows/ci.yml", "on: [push, pull_request]\n")
    taken = {b".github/workflows/ci.yml"}
    enforce_policy(scenario.workspace, scenario.export(), POLICY, taken)
    write(scenario.root, ".github/workflows/more.yml", "on: push\n")
    with pytest.raises(PolicyViolation) as refused:
        enforce_policy(scenario.workspace, scenario.export(), POLICY, taken)
    assert "more.yml" in refused.value.what and "ci.yml" not in refused.value.what


TOKENS = {
    "classic": "ghp_" + "a1B2" * 9,
    "installation": "ghs_" + "a1B2" * 9,
    "installation, new form": "ghs_" + "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0In0." + "a_-1" * 110,
    "fine-grained": "github_pat_" + "a1B2c3" * 8,
    "AWS": "AKIAZZZZZZZZZZZZZZZZ",
    "OpenAI": "sk-proj-" + "a1B2c3D4" * 6,
    "Anthropic": "sk-ant-api03-" + "a1B2c3D4" * 6,
    "private key": "-----BEGIN RSA PRIVATE KEY-----",
    "another private key": "-----BEGIN OPENSSH PRIVATE KEY-----",
}


@pytest.mark.attack
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "text") for name in TOKENS),
        *(("classic", form) for form in ("new file", "binary", "UTF-16")),
    ],
)
def test_an_added_credential_is_named_with_file_and_line_and_not_shown(
    scenario: Scenario, name: str, form: str
) -> None:
    """A change adds a credential: refused with file and line, without the value."""
    token = TOKENS[name]
    line = f'key = "{token}"\n'
    match form:
        case "text":
            write(scenario.root, "README.md", f"hello\n\n{line}")
        case "new file":
            write(scenario.root, "a/b.env", f"\n\n{line}")
        case "binary":
            write(scenario.root, "x.bin", b"\xff\x00\n\xfe\n" + line.encode())
        case _:
            write(scenario.root, "wide.txt", f"\n\n{line}".encode("utf-16"))
    words = _judge(scenario)
    assert "credential" in words and "line 3" in words
    assert token not in words and token[12:] not in words


def test_an_existing_credential_does_not_count_as_added(scenario: Scenario) -> None:
    write(scenario.root, "config.py", "# edited\nKEY = 'AKIAABCDEFGHIJKLMNOP'\n")
    assert _judge(scenario) == ""
    (scenario.root / "config.py").rename(scenario.root / "settings.py")
    assert _judge(scenario) == ""
    write(scenario.root, "settings.py", "KEY = 'AKIAABCDEFGHIJKLMNOQ'\n")
    assert "settings.py line 1" in _judge(scenario)


def test_words_that_only_resemble_a_credential_pass(scenario: Scenario) -> None:
    write(
        scenario.root, "doc.md",
        "AKIAIOSFODNN7EXAMPLE https://user:pass@host/ sk-circle-fade-dot ghp_short\n"
        "Authorization: Bearer abcdef\n",
    )  # fmt: skip
    assert _judge(scenario) == ""


def test_a_credential_as_a_file_name_is_refused(scenario: Scenario) -> None:
    write(scenario.root, TOKENS["classic"], "x\n")
    assert "name of a file" in _judge(scenario)


def test_a_credential_as_the_name_of_a_deleted_file_is_not_added(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {TOKENS["classic"]: "x\n", "kept": "x\n"})
    scenario = open_scenario(source, tmp_path)
    (scenario.root / TOKENS["classic"]).unlink()
    assert _judge(scenario) == ""


def test_too_many_files_are_refused(scenario: Scenario) -> None:
    for number in range(20):
        write(scenario.root, f"many/{number}", "x\n")
    assert _judge(scenario) == ""
    write(scenario.root, "many/20", "x\n")
    assert "21 files" in _judge(scenario)


def test_a_change_of_the_maximum_size_passes(scenario: Scenario) -> None:
    write(scenario.root, "new.bin", "x" * 5_000)
    size = len(scenario.export().diff)
    assert _judge(scenario, PatchPolicy((), size, 1)) == ""
    assert f"{size} bytes" in _judge(scenario, PatchPolicy((), size - 1, 1))


def test_a_large_file_is_refused_and_the_diff_is_kept_up_to_the_limit(scenario: Scenario) -> None:
    write(scenario.root, "large.bin", os.urandom(3_000_000))
    write(scenario.root, "README.md", "changed\n")
    assert "above the limit of 1000000" in _judge(scenario)
    patch = scenario.export(limit=100_000)
    assert b"+changed" in patch.diff and b"large.bin" in patch.diff
    assert len(patch.diff) < 2000
    for number in range(5):
        write(scenario.root, f"part-{number}.txt", f"{number} of many\n" * 5_000)
    assert len(scenario.export(limit=100_000).diff) == 100_001


def test_all_violations_are_reported_at_once_and_bounded(scenario: Scenario) -> None:
    for number in range(15):
        write(scenario.root, f".github/workflows/{number}.yml", "x\n")
    link(scenario.root, "out", "/etc")
    write(scenario.root, "key", TOKENS["classic"])
    words = _judge(scenario)
    assert "and 5 more" in words and "out" in words and "key line 1" in words
