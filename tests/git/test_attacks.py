"""Tests of what a hostile agent can do to the repository in its sandbox."""

# Paths that are bytes have no Path.

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from resolver.errors import PolicyViolation, WorkspaceError
from resolver.git.git import GitResult, HostGit, failure
from resolver.git.tree import read_patch
from resolver.sandbox.change import MAX_FILES, check_file_count, checkout, export_change
from resolver.sandbox.wire import ActionFailed, ChangeResult
from tests.git.scene import (
    AT,
    GIT,
    US,
    Scene,
    commit_all,
    copy_scene,
    link,
    make_repository,
    open_scene,
    plain_git,
    write,
)
from tests.parts.templates import Templates


def build_scene(place: Path) -> Scene:
    files: dict[str | bytes, bytes | str] = {"README.md": "hello\n", "src/a.py": "a = 1\n"}
    return open_scene(make_repository(place / "source", files), place)


@pytest.fixture
def scene(templates: Templates, tmp_path: Path) -> Scene:
    return copy_scene(templates, build_scene, tmp_path)


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


def test_planted_hooks_settings_and_attributes_run_nothing(scene: Scene, canary: Path) -> None:
    _plant(scene.root / ".git", canary)
    write(scene.root, ".gitattributes", "* filter=x diff=x merge=x\n")
    write(scene.root, "new.txt", "new\n")
    tree = scene.publish()
    assert not _mark(canary).exists()
    assert plain_git(scene.source, "cat-file", "blob", f"{tree}:new.txt") == "new"


def test_nothing_is_executed_in_a_local_repository(tmp_path: Path, canary: Path) -> None:
    source = make_repository(tmp_path / "source")
    _plant(source / ".git", canary)
    # Their own filters may run when git asks what is dirty in their own checkout.
    (source / ".git/info/attributes").unlink()
    scene = open_scene(source, tmp_path)
    write(scene.root, "new.txt", "new\n")
    patch = scene.workspace.commit(scene.export(), "Change", US, AT)
    assert patch.commit
    scene.workspace.write_branch(source, "agent/x", patch.commit)
    assert not _mark(canary).exists()


@pytest.mark.parametrize("state", ["gone", "empty", "a file", "a link", "broken", "another one"])
def test_the_change_does_not_depend_on_the_agents_git_directory(
    scene: Scene, tmp_path: Path, state: str
) -> None:
    git_dir = scene.root / ".git"
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
            plain_git(scene.root, "init", "-q")
            commit_all(scene.root, "unrelated history")
    write(scene.root, "README.md", "changed\n")
    assert [f.path for f in scene.export().files] == ["README.md"]


def test_commits_branches_and_tags_of_the_agent_are_not_exported(scene: Scene) -> None:
    write(scene.root, "README.md", "changed\n")
    plain_git(scene.root, "checkout", "-q", "-b", "evil")
    commit_all(scene.root, "forged")
    plain_git(scene.root, "tag", "v99")
    plain_git(scene.root, "notes", "add", "-m", "note")
    plain_git(scene.root, "rm", "-q", "--cached", "src/a.py")
    before = plain_git(scene.source, "for-each-ref")
    scene.publish()
    after = plain_git(scene.source, "for-each-ref").replace(before, "").split()
    assert after[1:] == ["commit", "refs/heads/agent/change"]
    log = plain_git(scene.source, "log", "--format=%an|%cn|%s|%P", "-1", "agent/change")
    assert log == f"{US.name}|{US.name}|Change|{scene.workspace.base}"
    names = plain_git(scene.source, "diff", "--name-only", "main", "agent/change")
    assert names == "README.md"


def test_the_sandbox_has_no_remote_hook_or_credential(scene: Scene) -> None:
    settings = plain_git(scene.root, "config", "--list", "--local")
    assert settings.splitlines() == [
        "core.repositoryformatversion=0", "core.filemode=true", "core.bare=false",
        "core.logallrefupdates=true",
    ]  # fmt: skip
    assert not (scene.root / ".git/hooks").exists()
    assert plain_git(scene.root, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert plain_git(scene.root, "status", "--porcelain") == ""
    assert plain_git(scene.root, "fsck", "--strict", "--full") == ""


def test_a_pack_rewritten_in_place_is_an_error(scene: Scene) -> None:
    for pack in (scene.root / ".git/objects/pack").glob("*.pack"):
        pack.chmod(0o644)
        data = bytearray(pack.read_bytes())
        data[20:60] = bytes(40)
        with open(pack, "r+b") as file:
            file.write(data)
    write(scene.root, "README.md", "changed\n")
    with pytest.raises((ActionFailed, WorkspaceError)):
        scene.export()


def test_a_lost_scratch_folder_is_reported(scene: Scene) -> None:
    shutil.rmtree(scene.scratch)
    with pytest.raises(ActionFailed, match="is gone"):
        scene.export()


def test_a_root_replaced_by_a_link_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    shutil.rmtree(scene.root)
    (tmp_path / "host").mkdir()
    write(tmp_path / "host", "secret", "host file\n")
    scene.root.symlink_to(tmp_path / "host")
    with pytest.raises(ActionFailed, match="is gone"):
        scene.export()


def test_links_are_stored_as_links_and_never_read_through(scene: Scene, tmp_path: Path) -> None:
    write(tmp_path / "host", "secret", "host secret\n")
    link(scene.root, "file", str(tmp_path / "host/secret"))
    link(scene.root, "folder", str(tmp_path / "host"))
    shutil.rmtree(scene.root / "src")
    link(scene.root, "src", str(tmp_path / "host"))
    patch = scene.export()
    assert {f.path: f.new_mode for f in patch.files if f.status != "deleted"} == {
        "file": "120000", "folder": "120000", "src": "120000",
    }  # fmt: skip
    assert b"host secret" not in patch.diff


def test_a_nested_repository_is_a_link_to_its_commit(scene: Scene) -> None:
    make_repository(scene.root / "vendor/lib")
    expected = scene.expected_tree()
    patch = scene.export()
    assert patch.tree == expected
    assert [(f.path, f.new_mode) for f in patch.files] == [("vendor/lib", "160000")]


def test_a_nested_repository_without_a_commit_is_left_out_and_named(scene: Scene) -> None:
    (scene.root / "empty-repo").mkdir()
    plain_git(scene.root / "empty-repo", "init", "-q")
    write(scene.root, "empty-repo/x", "x\n")
    write(scene.root, "new", "x\n")
    assert [f.path for f in scene.export().files] == ["new"]
    assert _exported(scene)["left_out"] == ["empty-repo/"]


def test_a_git_file_in_a_subfolder_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other", {"host.txt": "host\n"})
    write(scene.root, "sub/.git", f"gitdir: {other}/.git\n")
    write(scene.root, "sub/x", "x\n")
    patch = scene.export()
    assert b"host" not in patch.diff
    assert [f.new_mode for f in patch.files] == ["160000"]


def test_files_below_a_folder_named_git_are_exported(scene: Scene) -> None:
    write(scene.root, "fixture/.git/HEAD", "not a repository\n")
    write(scene.root, "fixture/x", "x\n")
    expected = scene.expected_tree()
    assert scene.export().tree == expected


def test_a_git_folder_in_other_case_is_left_out_and_named(scene: Scene) -> None:
    write(scene.root, "sub/.GIT/hooks/post-checkout", "#!/bin/sh\n")
    write(scene.root, "new", "x\n")
    assert [f.path for f in scene.export().files] == ["new"]
    assert _exported(scene)["left_out"] == ["sub/.GIT/hooks/post-checkout"]


def _exported(scene: Scene, *before: str) -> ChangeResult:
    """Export the change in a process of its own, which may be started by another command."""
    code = (
        "import json, sys; from resolver.sandbox.change import export_change; "
        "print(json.dumps(export_change(*sys.argv[1:])))"
    )
    args = (code, str(scene.root), str(scene.scratch), scene.workspace.base, GIT)
    done = subprocess.run(
        [*before, sys.executable, "-c", *args],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=True,
    )
    found: ChangeResult = json.loads(done.stdout)
    return found


# Root as in a container that dropped its capabilities: bound by modes like anybody.
BOUND = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its capabilities")
@pytest.mark.parametrize("name", ["locked", "we'ird\nname", "README.md"])
def test_an_unreadable_file_is_left_out_and_the_rest_is_not_lost(scene: Scene, name: str) -> None:
    write(scene.root, "new", "x\n")
    expected = scene.expected_tree()
    write(scene.root, name, "not to be read\n", 0)
    found = _exported(scene, *BOUND)
    assert found["left_out"] == [name]
    assert found["tree"] == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its capabilities")
def test_an_unreadable_folder_is_left_out_and_the_rest_is_not_lost(scene: Scene) -> None:
    write(scene.root, "new", "x\n")
    expected = scene.expected_tree()
    write(scene.root, "closed/inside.py", "x = 1\n")
    (scene.root / "closed").chmod(0)
    found = _exported(scene, *BOUND)
    (scene.root / "closed").chmod(0o755)
    assert (found["tree"], found["left_out"]) == (expected, ["closed/"])


def test_a_socket_is_left_out(scene: Scene) -> None:
    folder = os.open(scene.root, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        # A socket's path may have 107 bytes at most.
        server.bind(f"/proc/self/fd/{folder}/socket")
        write(scene.root, "new", "x\n")
        assert [f.path for f in scene.export().files] == ["new"]
    os.close(folder)


def test_too_many_bytes_are_refused_before_they_are_read(scene: Scene) -> None:
    with open(scene.root / "huge", "wb") as file:
        file.truncate(40 << 30)
    with pytest.raises(ActionFailed, match="above the limit"):
        scene.export()


def test_too_many_files_are_refused_before_they_are_read(scene: Scene) -> None:
    check_file_count([b"x"] * MAX_FILES)
    with pytest.raises(ActionFailed, match="above the limit of 100000"):
        check_file_count([b"x"] * (MAX_FILES + 1))
    for name in "abc":
        write(scene.root, name, "x\n")
    patch = scene.export()
    assert len(read_patch(scene.workspace.git, patch.base, patch.tree, 1000, 3).files) == 3
    with pytest.raises(PolicyViolation, match="touches 3 files"):
        read_patch(scene.workspace.git, patch.base, patch.tree, 1000, 2)


@pytest.mark.parametrize(
    "result",
    [
        GitResult(-signal.SIGSEGV, b"", ""),
        GitResult(128, b"", "error: index-pack died of signal 11\nfatal: early EOF\n"
                  "fatal: unable to access 'https://x/': The requested URL returned error: 500"),
    ],
)  # fmt: skip
def test_a_crash_of_git_is_not_blamed_on_the_network(result: GitResult) -> None:
    error = failure(("fetch",), result, "cloning https://x")
    assert error.what.startswith("git crashed: cloning https://x failed")
    assert "nested" in error.next_step and not error.cause


def test_environment_variables_of_the_sandbox_have_no_effect(scene: Scene, tmp_path: Path) -> None:
    write(scene.root, "new", "x\n")
    code = "import sys; from resolver.sandbox.change import *; export_change(*sys.argv[1:])"
    args = (str(scene.root), str(scene.scratch), scene.workspace.base, GIT)
    home = tmp_path / "home"
    write(home, ".gitconfig", '[core]\n\texcludesFile = ~/all\n[filter "x"]\n\tclean = rev\n')
    write(home, "all", "*\n")
    write(home, ".config/git/ignore", "*\n")
    write(home, ".config/git/attributes", "* filter=x\n")
    subprocess.run(
        [sys.executable, "-c", code, *args],
        env={
            **os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"),
            "GIT_DIR": str(tmp_path / "nowhere"), "GIT_INDEX_FILE": "/nowhere/index",
            "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"), "GIT_OBJECT_DIRECTORY": "/nowhere",
            "GIT_EXTERNAL_DIFF": "false", "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
        },
        cwd=Path(__file__).parents[2], check=True,
    )  # fmt: skip
    assert [f.path for f in scene.export().files] == ["new"]


def test_a_second_checkout_into_the_same_folder_is_refused(scene: Scene) -> None:
    with pytest.raises(ActionFailed, match="not empty"):
        checkout(str(scene.root), "x.git", scene.workspace.base, "main", GIT, str(scene.scratch))


def test_the_given_git_directory_is_used_up(scene: Scene, tmp_path: Path) -> None:
    scratch, folder = tmp_path / "s2", tmp_path / "s2/given"
    folder.mkdir(parents=True)
    tar = b"".join(scene.workspace.git_dir_tar())
    subprocess.run(["tar", "-x", "-C", folder], input=tar, check=True)
    root = str(tmp_path / "r2")
    base = scene.workspace.base
    assert checkout(root, str(folder), base, "main", GIT, str(scratch)) == {
        "commit": base, "files": 2,
    }  # fmt: skip
    assert not folder.exists()
    assert export_change(root, str(scratch), base, GIT)["bundle"] is None


def test_a_missing_git_directory_is_reported(scene: Scene, tmp_path: Path) -> None:
    root, scratch = str(tmp_path / "r2"), str(tmp_path / "s2")
    with pytest.raises(ActionFailed, match="git directory can't be taken"):
        checkout(root, str(tmp_path / "none"), scene.workspace.base, "main", GIT, scratch)


def test_a_tree_of_ten_billion_files_does_not_fill_the_host(tmp_path: Path) -> None:
    bomb = make_repository(tmp_path / "bomb", {"README.md": "hello\n"})
    tree = plain_git(bomb, "rev-parse", "HEAD^{tree}")
    for _ in range(10):
        entries = "".join(f"040000 tree {tree}\td{number}\n" for number in range(10))
        tree = plain_git(bomb, "mktree", stdin=entries.encode())
    commit = plain_git(bomb, "commit-tree", "-m", "Grow", tree)
    plain_git(bomb, "update-ref", "refs/heads/main", commit)
    git = HostGit(checkout=bomb, max_memory_bytes=30_000_000)
    with pytest.raises(WorkspaceError) as caught:
        git.run("status", "--porcelain")
    assert "out of memory" in caught.value.what.lower()
    assert "folders that contain one another" in caught.value.next_step
