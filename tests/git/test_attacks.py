"""Tests of what a hostile agent can do to the repository in its sandbox."""

# Paths that are bytes have no Path.

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from resolver.errors import PolicyViolation, WorkspaceError
from resolver.git.clone import BASE_REF
from resolver.git.git import GitResult, HostGit, git_failure
from resolver.git.tree import read_patch, read_tree
from resolver.git.workspace import Workspace
from resolver.runtime.disk import remove_tree
from resolver.sandbox.change import MAX_FILES, check_file_count
from resolver.sandbox.wire import ActionFailed, ChangeResult
from tests.git.scenario import (
    GIT,
    US,
    Scenario,
    commit_all,
    link,
    make_repository,
    open_scenario,
    plain_git,
    serve_clone,
    write,
)
from tests.parts.hostile_repositories import (
    write_huge_file,
    write_nested_trees,
    write_refs,
    write_tree_bomb,
)
from tests.parts.nested_folders import NAME, make_nested_folders


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A program that leaves a mark when it is executed."""
    program = tmp_path / "canary"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\ncat\n")
    program.chmod(0o755)
    return program


def _mark(canary: Path) -> Path:
    return canary.parent / "mark"


def _plant(git_dir: Path, canary: Path) -> None:
    """Plant hooks, settings and attributes that each execute the canary."""
    hooks = git_dir / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        "post-checkout", "pre-commit", "pre-push", "post-index-change", "reference-transaction",
        "post-commit", "fsmonitor-watchman", "update", "post-update", "pre-receive",
    ):  # fmt: skip
        shutil.copy(canary, hooks / name)
    with open(git_dir / "config", "a") as config:
        config.write(
            f"[core]\n\tfsmonitor = {canary}\n\thooksPath = {hooks}\n\tsshCommand = {canary}\n"
            f"\tpager = {canary}\n\teditor = {canary}\n\taskPass = {canary}\n"
            f'[diff]\n\texternal = {canary}\n[diff "x"]\n\ttextconv = {canary}\n'
            f"\tcommand = {canary}\n"
            f'[filter "x"]\n\tclean = {canary}\n\tsmudge = {canary}\n\tprocess = {canary}\n'
            f'\trequired = true\n[merge "x"]\n\tdriver = {canary}\n'
            f"[credential]\n\thelper = {canary}\n[gpg]\n\tprogram = {canary}\n"
            f"[commit]\n\tgpgSign = true\n[uploadpack]\n\tpackObjectsHook = {canary}\n"
            f'[url "ext::{canary}"]\n\tinsteadOf = /\n'
        )
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info/attributes").write_text("* filter=x diff=x merge=x\n")
    (git_dir / "info/exclude").write_text("*\n")


def test_planted_hooks_settings_and_attributes_run_nothing(
    scenario: Scenario, canary: Path
) -> None:
    _plant(scenario.root / ".git", canary)
    write(scenario.root, ".gitattributes", "* filter=x diff=x merge=x\n")
    write(scenario.root, "new.txt", "new\n")
    tree = scenario.publish()
    assert not _mark(canary).exists()
    assert plain_git(scenario.source, "cat-file", "blob", f"{tree}:new.txt") == "new"


def test_nothing_is_executed_in_a_local_repository(tmp_path: Path, canary: Path) -> None:
    source = make_repository(tmp_path / "source")
    _plant(source / ".git", canary)
    # Their own filters may run when git asks what is dirty in their own checkout.
    (source / ".git/info/attributes").unlink()
    scenario = open_scenario(source, tmp_path)
    write(scenario.root, "new.txt", "new\n")
    scenario.write_branch("agent/x", scenario.commit(scenario.export()))
    assert not _mark(canary).exists()


@pytest.mark.attack
def test_a_checkout_that_lacks_objects_starts_nothing_to_get_them(
    tmp_path: Path, canary: Path
) -> None:
    """A checkout from outside lacks a file, and its settings name programs that would fetch it,
    list the refs of another repository, verify signatures or stand for git's commands: none is
    started, and the run ends with an error."""
    source = make_repository(tmp_path / "source", {"README.md": "hello\n", "b": "x\n"})
    other = make_repository(tmp_path / "other", {"z": "z\n"})
    with open(source / ".git/config", "a") as config:
        config.write(
            f"[core]\n\talternateRefsCommand = {canary}\n\tgitProxy = {canary}\n"
            f"[extensions]\n\tpartialClone = origin\n"
            f'[remote "origin"]\n\turl = {other}\n\tpromisor = true\n'
            f"\tuploadpack = {canary}\n\treceivepack = {canary}\n\tvcs = {canary}\n"
            f"[log]\n\tshowSignature = true\n[gpg]\n\tformat = ssh\n"
            f'[gpg "ssh"]\n\tprogram = {canary}\n\tdefaultKeyCommand = {canary}\n'
            f"[pager]\n\tstatus = {canary}\n[alias]\n\tstatus = !{canary}\n"
            f"[gc]\n\tauto = 1\n\trecentObjectsHook = {canary}\n"
        )
    (source / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
    blob = plain_git(source, "hash-object", "b")
    (source / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(WorkspaceError, match="is a partial clone"):
        Workspace.clone(str(source), tmp_path / "clone", depth=50)
    HostGit(checkout=source).attempt("status", "--porcelain")
    assert not _mark(canary).exists()


@pytest.mark.parametrize("state", ["gone", "empty", "a file", "a link", "broken", "another one"])
def test_the_change_does_not_depend_on_the_agents_git_directory(
    scenario: Scenario, tmp_path: Path, state: str
) -> None:
    git_dir = scenario.root / ".git"
    shutil.rmtree(git_dir)
    match state:
        case "empty":
            git_dir.mkdir()
        case "a file":
            git_dir.write_text(f"gitdir: {tmp_path}/nowhere\n")
        case "a link":
            git_dir.symlink_to(tmp_path)
        case "broken":
            git_dir.mkdir()
            (git_dir / "HEAD").write_bytes(b"\xff\0garbage")
            (git_dir / "config").write_text("[core\n")
        case "another one":
            plain_git(scenario.root, "init", "-q")
            commit_all(scenario.root, "unrelated history")
    write(scenario.root, "README.md", "changed\n")
    assert [f.path for f in scenario.export().files] == ["README.md"]


def test_commits_branches_and_tags_of_the_agent_are_not_exported(scenario: Scenario) -> None:
    write(scenario.root, "README.md", "changed\n")
    plain_git(scenario.root, "checkout", "-q", "-b", "evil")
    commit_all(scenario.root, "forged")
    plain_git(scenario.root, "tag", "v99")
    plain_git(scenario.root, "notes", "add", "-m", "note")
    plain_git(scenario.root, "rm", "-q", "--cached", "src/a.py")
    before = plain_git(scenario.source, "for-each-ref")
    scenario.publish()
    after = plain_git(scenario.source, "for-each-ref").replace(before, "").split()
    assert after[1:] == ["commit", "refs/heads/agent/change"]
    log = plain_git(scenario.source, "log", "--format=%an|%cn|%s|%P", "-1", "agent/change")
    assert log == f"{US.name}|{US.name}|Change|{scenario.workspace.base}"
    names = plain_git(scenario.source, "diff", "--name-only", "main", "agent/change")
    assert names == "README.md"


def test_the_sandbox_has_no_remote_hook_or_credential(scenario: Scenario) -> None:
    settings = plain_git(scenario.root, "config", "--list", "--local")
    assert settings.splitlines() == [
        "core.repositoryformatversion=0", "core.filemode=true", "core.bare=false",
        "core.logallrefupdates=true",
    ]  # fmt: skip
    assert not (scenario.root / ".git/hooks").exists()
    assert plain_git(scenario.root, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert plain_git(scenario.root, "status", "--porcelain") == ""
    assert plain_git(scenario.root, "fsck", "--strict", "--full") == ""


def test_a_pack_rewritten_in_place_is_an_error(scenario: Scenario) -> None:
    for pack in (scenario.root / ".git/objects/pack").glob("*.pack"):
        pack.chmod(0o644)
        data = bytearray(pack.read_bytes())
        data[20:60] = bytes(40)
        with open(pack, "r+b") as file:
            file.write(data)
    write(scenario.root, "README.md", "changed\n")
    with pytest.raises((ActionFailed, WorkspaceError)):
        scenario.export()


def test_a_root_replaced_by_a_link_is_not_followed(scenario: Scenario, tmp_path: Path) -> None:
    shutil.rmtree(scenario.root)
    (tmp_path / "host").mkdir()
    write(tmp_path / "host", "secret", "host file\n")
    scenario.root.symlink_to(tmp_path / "host")
    with pytest.raises(ActionFailed, match="is gone"):
        scenario.export()


def test_links_are_stored_as_links_and_never_read_through(
    scenario: Scenario, tmp_path: Path
) -> None:
    write(tmp_path / "host", "secret", "host secret\n")
    link(scenario.root, "file", str(tmp_path / "host/secret"))
    link(scenario.root, "folder", str(tmp_path / "host"))
    shutil.rmtree(scenario.root / "src")
    link(scenario.root, "src", str(tmp_path / "host"))
    patch = scenario.export()
    assert {f.path: f.new_mode for f in patch.files if f.status != "deleted"} == {
        "file": "120000", "folder": "120000", "src": "120000",
    }  # fmt: skip
    assert b"host secret" not in patch.diff


def test_a_nested_repository_is_a_link_to_its_commit(scenario: Scenario) -> None:
    make_repository(scenario.root / "vendor/lib")
    expected = scenario.expected_tree()
    patch = scenario.export()
    assert patch.tree == expected
    assert [(f.path, f.new_mode) for f in patch.files] == [("vendor/lib", "160000")]


def test_a_git_file_in_a_subfolder_is_not_followed(scenario: Scenario, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other", {"host.txt": "host\n"})
    write(scenario.root, "sub/.git", f"gitdir: {other}/.git\n")
    write(scenario.root, "sub/x", "x\n")
    patch = scenario.export()
    assert b"host" not in patch.diff
    assert [f.new_mode for f in patch.files] == ["160000"]


def test_files_below_a_folder_named_git_are_exported(scenario: Scenario) -> None:
    write(scenario.root, "fixture/.git/HEAD", "not a repository\n")
    write(scenario.root, "fixture/x", "x\n")
    expected = scenario.expected_tree()
    assert scenario.export().tree == expected


def _exported(scenario: Scenario, *before: str, **variables: str) -> ChangeResult:
    """Export the change in a process of its own, which may be started by another command."""
    code = (
        "import json, sys; from resolver.sandbox.change import export_change; "
        "print(json.dumps(export_change(*sys.argv[1:])))"
    )
    args = (code, str(scenario.root), str(scenario.scratch), scenario.workspace.base, GIT)
    done = subprocess.run(
        [*before, sys.executable, "-c", *args],
        cwd=Path(__file__).parents[2],
        env={**os.environ, **variables},
        capture_output=True,
        check=True,
    )
    found: ChangeResult = json.loads(done.stdout)
    return found


def test_what_git_does_not_take_is_left_out_and_named(scenario: Scenario) -> None:
    write(scenario.root, "sub/.GIT/hooks/post-checkout", "x\n")
    write(scenario.root, "empty-repo/x", "x\n")
    plain_git(scenario.root / "empty-repo", "init", "-q")
    write(scenario.root, "new", "x\n")
    assert [f.path for f in scenario.export().files] == ["new"]
    left_out = scenario.change()["left_out"]
    assert left_out == ["empty-repo/", "sub/.GIT/hooks/post-checkout"]


# Root as in a container that dropped its capabilities: bound by modes like anybody.
BOUND = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its capabilities")
def test_what_is_unreadable_is_left_out_and_the_rest_is_not_lost(scenario: Scenario) -> None:
    write(scenario.root, "new", "x\n")
    expected = scenario.expected_tree()
    write(scenario.root, "closed/inside.py", "x = 1\n")
    (scenario.root / "closed").chmod(0)
    files = ["README.md", "locked", "we'ird\nname"]
    for name in files:
        write(scenario.root, name, "not to be read\n", 0)
    found = _exported(scenario, *BOUND)
    (scenario.root / "closed").chmod(0o755)
    assert (found["tree"], found["left_out"]) == (expected, ["README.md", "closed/", *files[1:]])


def test_what_lies_deeper_than_a_path_may_be_long_is_left_out_and_named(scenario: Scenario) -> None:
    make_nested_folders(scenario.root, 21)
    found = scenario.change()
    assert found["bundle"] is None
    [left_out] = found["left_out"]
    assert left_out.startswith(f"{NAME}/") and left_out.endswith(".../") and len(left_out) < 400
    write(scenario.root, "new", "x\n")
    found = scenario.change()
    assert found["bundle"] and found["left_out"] == [left_out]
    remove_tree(scenario.root)


def test_too_many_bytes_are_refused_before_they_are_read(scenario: Scenario) -> None:
    with open(scenario.root / "huge", "wb") as file:
        file.truncate(40 << 30)
    with pytest.raises(ActionFailed, match="above the limit"):
        scenario.export()


def test_too_many_files_are_refused_before_they_are_read(scenario: Scenario) -> None:
    check_file_count([b"x"] * MAX_FILES)
    with pytest.raises(ActionFailed, match="above the limit of 100000"):
        check_file_count([b"x"] * (MAX_FILES + 1))
    for name in "abc":
        write(scenario.root, name, "x\n")
    patch = scenario.export()
    assert len(read_patch(scenario.workspace.git, patch.base, patch.tree, 1000, 3).files) == 3
    with pytest.raises(PolicyViolation, match="touches 3 files"):
        read_patch(scenario.workspace.git, patch.base, patch.tree, 1000, 2)


@pytest.mark.parametrize(
    "result",
    [
        GitResult(-signal.SIGSEGV, b"", ""),
        GitResult(128, b"", "error: index-pack died of signal 11\nfatal: early EOF\n"
                  "fatal: unable to access 'https://x/': The requested URL returned error: 500"),
    ],
)  # fmt: skip
def test_a_crash_of_git_is_not_blamed_on_the_network(result: GitResult) -> None:
    error = git_failure(("fetch",), result, "cloning https://x")
    assert error.what.startswith("git crashed: cloning https://x failed")
    assert "nested" in error.next_step and not error.cause


def test_environment_variables_of_the_sandbox_have_no_effect(
    scenario: Scenario, tmp_path: Path
) -> None:
    write(scenario.root, "new", "x\n")
    expected = scenario.expected_tree()
    home = tmp_path / "home"
    write(home, ".gitconfig", '[core]\n\texcludesFile = ~/all\n[filter "x"]\n\tclean = rev\n')
    write(home, "all", "*\n")
    write(home, ".config/git/ignore", "*\n")
    write(home, ".config/git/attributes", "* filter=x\n")
    found = _exported(
        scenario, HOME=str(home), XDG_CONFIG_HOME=str(home / ".config"),
        GIT_DIR=str(tmp_path / "nowhere"), GIT_INDEX_FILE="/nowhere/index",
        GIT_CONFIG_GLOBAL=str(home / ".gitconfig"), GIT_OBJECT_DIRECTORY="/nowhere",
        GIT_EXTERNAL_DIFF="false", GIT_CONFIG_PARAMETERS="'core.bare=true'",
    )  # fmt: skip
    assert found["tree"] == expected


@pytest.fixture
def bomb(tmp_path: Path) -> Path:
    """A checkout whose tree has ten billion files."""
    path = make_repository(tmp_path / "bomb")
    write_tree_bomb(path)
    return path


@pytest.mark.attack
def test_a_tree_of_ten_billion_files_does_not_fill_the_host(bomb: Path) -> None:
    """A checkout has ten levels of ten folders that are the same: git's memory is limited."""
    git = HostGit(checkout=bomb, max_memory_bytes=30_000_000)
    with pytest.raises(WorkspaceError) as caught:
        git.run("status", "--porcelain")
    assert "out of memory" in caught.value.what.lower()
    assert "folders that contain one another" in caught.value.next_step


@pytest.mark.attack
def test_the_list_of_ten_billion_files_is_cut_off(bomb: Path) -> None:
    """The files of such a tree are listed: git is ended at a limit of what it prints."""
    git = HostGit(checkout=bomb, max_output_bytes=1_000_000)
    with pytest.raises(WorkspaceError) as caught:
        list(read_tree(git, "HEAD"))
    assert "git ls-tree printed more than 1,000,000 bytes" in caught.value.what
    assert "folders that contain one another" in caught.value.next_step


def clone_over_http(place: Path, write_content: Callable[[Path], None]) -> Workspace:
    """Clone a repository with this content from a server."""
    with serve_clone(make_repository(place / "a"), place) as served:
        write_content(served.bare)
        return Workspace.clone(served.url, place / "clone", depth=50, credential=served.credential)


@pytest.mark.attack
@pytest.mark.parametrize(
    "write_content",
    [
        write_tree_bomb,
        partial(write_tree_bomb, levels=2, width=550),
        partial(write_nested_trees, levels=3000),
        partial(write_huge_file, size=30_000_000),
        partial(write_refs, count=20_000),
        pytest.param(
            partial(write_huge_file, size=2_500_000_000),
            marks=[pytest.mark.deep, pytest.mark.timeout(3600)],
        ),
    ],
    ids=["tree bomb", "300,000 files", "nested folders", "huge file", "refs", "2.5 GB"],
)
def test_a_bomb_is_cloned_without_unpacking_it(
    tmp_path: Path, write_content: Callable[[Path], None]
) -> None:
    """A repository on the server has few objects that unpack to much, or many refs: the clone has
    their small form."""
    workspace = clone_over_http(tmp_path, write_content)
    size = sum(path.stat().st_size for path in workspace.folder.rglob("*") if path.is_file())
    assert size < 3_000_000
    assert plain_git(workspace.folder, "for-each-ref", "--format=%(refname)") == BASE_REF


@pytest.mark.attack
@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_folders_that_no_git_can_send_are_explained(tmp_path: Path) -> None:
    """A repository on the server has 50,000 folders within one another: the clone fails within its
    limits, and the message names the folders and not the network."""
    with pytest.raises(WorkspaceError) as caught:
        clone_over_http(tmp_path, partial(write_nested_trees, levels=50_000))
    assert "folders" in caught.value.next_step
    assert "check the network" not in caught.value.next_step


CHECKOUT = """
import sys
from resolver.sandbox.change import checkout
try:
    checkout(*sys.argv[1:])
except Exception as error:
    print(error)
"""


@pytest.mark.attack
@pytest.mark.parametrize(
    ("write_content", "before", "message"),
    [
        (
            partial(write_nested_trees, levels=21, name="d" * 199),
            (),
            "has a path of 4199 bytes, which is longer",
        ),
        (
            partial(write_huge_file, size=3_000_000),
            ("prlimit", "--fsize=1000000"),
            "git checkout was stopped at a file of more than 1000000 bytes",
        ),
    ],
    ids=["nested folders", "huge file"],
)
def test_a_checkout_that_is_too_large_is_explained(
    tmp_path: Path, write_content: Callable[[Path], None], before: tuple[str, ...], message: str
) -> None:
    """A repository has a path or a file that is too large for the sandbox: the run ends, and the
    message names it."""
    source = make_repository(tmp_path / "source")
    write_content(source)
    workspace = Workspace.clone(str(source), tmp_path / "clone", depth=50)
    given = tmp_path / "given"
    tar = b"".join(workspace.git_dir_tar(given.name))
    subprocess.run(["tar", "-x", "-C", tmp_path], input=tar, check=True)
    arguments = [tmp_path / "root", given, workspace.base, "main", GIT, tmp_path / "scratch"]
    done = subprocess.run(
        [*before, sys.executable, "-c", CHECKOUT, *map(str, arguments)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True,
    )  # fmt: skip
    remove_tree(tmp_path / "root")  # which pytest can't, if its folders are nested too deep
    assert message in done.stdout and len(done.stdout) < 1_000, done.stdout


@pytest.mark.attack
def test_a_server_that_sends_nothing_for_long_is_explained() -> None:
    """A repository has so many nested folders that the server stalls: the fetch is given up after
    a minute, and the message says what may be wrong."""
    error = git_failure(
        ("fetch",),
        GitResult(
            128,
            b"",
            "error: RPC failed; curl 28 Operation too slow. Less than 1000 bytes/sec transferred "
            "the last 60 seconds\nfatal: protocol error: bad pack header\n",
        ),
    )
    assert "folders within one another" in error.next_step
    assert "git clone" in error.next_step
