"""Tests of git over HTTP on the test GitHub: clone, fetch, push and refusals."""

import base64
import os
import subprocess
from pathlib import Path

import pytest

from tests.parts.git_http import git_http_app as plain_git
from tests.parts.git_http import token_gate, token_of
from tests.parts.github import GitHubServer
from tests.parts.github_server.bare import BareRepository
from tests.parts.wsgi import serve

REPO = "octo/demo"


def git(*args: str, cwd: Path, token: str = "", scheme: str = "basic") -> str:
    """Return the output of git. The token is sent in a header. Raises AssertionError."""
    value = f"Bearer {token}"
    if scheme == "basic":
        value = "Basic " + base64.b64encode(f"x-access-token:{token}".encode()).decode()
    header = ("-c", f"http.extraHeader=Authorization: {value}") if token else ()
    names = {
        f"GIT_{role}_{what}": f"{what}@example.com"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", *header, *args],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_TERMINAL_PROMPT": "0", **names},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def demo(github: GitHubServer) -> GitHubServer:
    github.create_repository(REPO, files={"a.txt": "one\n"})
    github.create_repository("octo/secret", private=True)
    github.grant("alice", REPO, "write")
    return github


def cloned(demo: GitHubServer, tmp_path: Path) -> Path:
    git("clone", "--quiet", f"{demo.server_url}/{REPO}.git", "work", cwd=tmp_path)
    work = tmp_path / "work"
    (work / "a.txt").write_text("two\n")
    git("commit", "--quiet", "--all", "--message", "two", cwd=work)
    return work


def test_a_public_repository_is_cloned_with_or_without_dot_git(
    demo: GitHubServer, tmp_path: Path
) -> None:
    for number, suffix in enumerate(("", ".git")):
        git("clone", "--quiet", f"{demo.server_url}/{REPO}{suffix}", str(number), cwd=tmp_path)
        assert (tmp_path / str(number) / "a.txt").read_text() == "one\n"


def test_a_private_repository_needs_a_token(demo: GitHubServer, tmp_path: Path) -> None:
    url = f"{demo.server_url}/octo/secret.git"
    for token in ("", "wrong"):
        with pytest.raises(AssertionError, match="could not read Username"):
            git("ls-remote", url, cwd=tmp_path, token=token)
    with pytest.raises(AssertionError, match="not found"):
        git("ls-remote", url, cwd=tmp_path, token=demo.token_for("alice"))
    token = demo.token_for("octo", "octo/secret", permissions={"contents": "read"})
    assert "refs/heads/main" in git("ls-remote", url, cwd=tmp_path, token=token)


@pytest.mark.parametrize("scheme", ["basic", "bearer"])
def test_a_writer_pushes_a_branch(demo: GitHubServer, tmp_path: Path, scheme: str) -> None:
    work = cloned(demo, tmp_path)
    token = demo.token_for("alice", REPO)
    git("push", "--quiet", "origin", "HEAD:agent/x", cwd=work, token=token, scheme=scheme)
    tip = git("rev-parse", "HEAD", cwd=work)
    assert demo.repository(REPO).git.tip("agent/x") == tip
    assert [request.path for request in demo.writes()] == [f"/{REPO}.git/git-receive-pack"]


def test_a_token_in_the_url_is_accepted(demo: GitHubServer, tmp_path: Path) -> None:
    work = cloned(demo, tmp_path)
    token = demo.token_for("alice", REPO)
    url = demo.server_url.replace("://", f"://x-access-token:{token}@")
    git("push", "--quiet", f"{url}/{REPO}.git", "HEAD:agent/x", cwd=work)
    assert demo.repository(REPO).git.tip("agent/x")


@pytest.mark.parametrize(
    ("who", "permissions", "words"),
    [
        ("", None, "could not read Username"),
        ("wrong", None, "could not read Username"),
        ("bob", None, "denied to bob"),
        ("alice", {"contents": "read"}, "Write access to repository not granted"),
        ("resolver[bot]", {"issues": "write"}, "Write access to repository not granted"),
    ],
)
def test_a_push_without_permission_is_refused(
    demo: GitHubServer,
    tmp_path: Path,
    who: str,
    permissions: dict[str, str] | None,
    words: str,
) -> None:
    work = cloned(demo, tmp_path)
    token = who if who in ("", "wrong") else demo.token_for(who, REPO, permissions=permissions)
    with pytest.raises(AssertionError, match=words):
        git("push", "origin", "HEAD:agent/x", cwd=work, token=token)
    assert demo.repository(REPO).git.tip("agent/x") is None


def test_a_wrong_token_in_the_url_gets_githubs_message(demo: GitHubServer, tmp_path: Path) -> None:
    url = demo.server_url.replace("://", "://x-access-token:wrong@")
    with pytest.raises(
        AssertionError, match=r"Invalid username or token[^\0]*Authentication failed"
    ):
        git("ls-remote", f"{url}/octo/secret.git", cwd=tmp_path)


def test_workflow_files_need_their_own_permission(demo: GitHubServer, tmp_path: Path) -> None:
    work = cloned(demo, tmp_path)
    workflow = work / ".github/workflows/ci.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text("on: push\n")
    git("add", ".", cwd=work)
    git("commit", "--quiet", "--message", "ci", cwd=work)
    push = ("push", "origin", "HEAD:agent/x")
    with pytest.raises(AssertionError, match="without `workflows` permission"):
        git(*push, cwd=work, token=demo.token_for("github-actions[bot]", REPO))
    allowed = {"contents": "write", "workflows": "write"}
    git(*push, cwd=work, token=demo.token_for("resolver[bot]", REPO, permissions=allowed))


def test_a_branch_with_existing_workflow_files_is_accepted(
    demo: GitHubServer, tmp_path: Path
) -> None:
    demo.commit(REPO, "main", {".github/workflows/ci.yml": "on: push\n"})
    work = cloned(demo, tmp_path)
    token = demo.token_for("github-actions[bot]", REPO)
    git("push", "--quiet", "origin", "HEAD:agent/x", cwd=work, token=token)


def test_a_protected_branch_is_not_pushed_to(demo: GitHubServer, tmp_path: Path) -> None:
    work = cloned(demo, tmp_path)
    demo.protect_branch(REPO, "main")
    with pytest.raises(AssertionError, match="GH006: Protected branch"):
        git("push", "origin", "HEAD:main", cwd=work, token=demo.token_for("alice"))


def test_large_packs_are_pushed_and_fetched(demo: GitHubServer, tmp_path: Path) -> None:
    work = cloned(demo, tmp_path)
    (work / "big").write_bytes(os.urandom(6 << 20))
    git("add", "big", cwd=work)
    git("commit", "--quiet", "--message", "big", cwd=work)
    git("push", "--quiet", "origin", "HEAD:big", cwd=work, token=demo.token_for("alice"))
    url = f"{demo.server_url}/{REPO}"
    git("clone", "--quiet", "--depth=1", "--branch=big", url, "back", cwd=tmp_path)
    assert (tmp_path / "back/big").stat().st_size == 6 << 20


def test_a_lost_answer_leaves_the_push_done(demo: GitHubServer, tmp_path: Path) -> None:
    work = cloned(demo, tmp_path)
    demo.cut_next("POST", "git-receive-pack", after=True)
    with pytest.raises(AssertionError):
        git("push", "origin", "HEAD:agent/x", cwd=work, token=demo.token_for("alice"))
    assert demo.repository(REPO).git.tip("agent/x") == git("rev-parse", "HEAD", cwd=work)


def test_a_simple_gate_accepts_its_tokens(tmp_path: Path) -> None:
    bare = BareRepository.create(tmp_path / "root/a/b.git", "main")
    with serve(plain_git(tmp_path / "root", token_gate(["w"], read=["r"]))) as address:
        url = f"{address.url}/a/b.git"
        assert git("ls-remote", url, cwd=tmp_path, token="r") == ""
        git("init", "--quiet", "--initial-branch=main", "work", cwd=tmp_path)
        git("commit", "--quiet", "--allow-empty", "-m", "x", cwd=tmp_path / "work")
        with pytest.raises(AssertionError, match="could not read Username"):
            git("push", url, "main", cwd=tmp_path / "work", token="r")
        git("push", "--quiet", url, "main", cwd=tmp_path / "work", token="w")
    assert bare.tip("main")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Basic " + base64.b64encode(b"any:tok").decode(), "tok"),
        ("Basic " + base64.b64encode(b"any:a:b").decode(), "a:b"),
        ("bearer tok", "tok"),
        ("token tok", "tok"),
        ("Basic ???", ""),
        ("Basic " + base64.b64encode(b"\xff\xfe").decode(), ""),
        ("Digest x", ""),
        ("", ""),
    ],
)
def test_tokens_are_read_as_github_reads_them(header: str, token: str) -> None:
    assert token_of(header) == token
