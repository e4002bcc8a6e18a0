"""Tests of cloning from a URL or a checkout into the host's bare clone."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from resolver.errors import WorkspaceError
from resolver.git.clone import repository_identity
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from tests.git.scenario import (
    TOKEN,
    commit_all,
    enter_sandbox,
    link,
    make_repository,
    open_scenario,
    plain_git,
    serve_clone,
    write,
)
from tests.parts.wsgi import serve


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = make_repository(tmp_path / "source", {"README.md": "one\n"})
    write(path, "README.md", "two\n")
    write(path, "docs/guide.md", "guide\n")
    link(path, "alias", "README.md")
    link(path, "linked", "docs")
    commit_all(path, "second")
    return path


@pytest.fixture
def server(tmp_path: Path, source: Path) -> Iterator[str]:
    """Serve the source as a private repository over HTTP; gives its URL."""
    with serve_clone(source, tmp_path) as served:
        yield served.url


def _credential(url: str, token: str = TOKEN) -> Credential:
    return Credential(url.partition("/ann/")[0], token)


def _fails(source: str | Path, folder: Path, **options: object) -> WorkspaceError:
    with pytest.raises(WorkspaceError) as caught:
        Workspace.clone(str(source), folder, **options)  # type: ignore[arg-type]
    return caught.value


def test_a_checkout_is_cloned_at_its_head_and_only_read(source: Path, tmp_path: Path) -> None:
    workspace = Workspace.clone(str(source), tmp_path / "clone")
    assert workspace.base == plain_git(source, "rev-parse", "HEAD")
    assert (workspace.branch, workspace.source_is_dirty) == ("main", False)
    assert not any((tmp_path / "clone").rglob("README.md"))
    assert (tmp_path / "clone").stat().st_mode & 0o777 == 0o700
    write(source, "README.md", "dirty\n")
    write(source, "untracked", "x\n")
    before = _state(source)
    workspace = Workspace.clone(str(source), tmp_path / "again")
    assert workspace.source_is_dirty
    assert workspace.read("README.md") == b"two\n"
    assert _state(source) == before


def _state(path: Path) -> dict[str, tuple[int, int, int]]:
    return {
        str(p): (s.st_mtime_ns, s.st_size, s.st_mode)
        for p in path.rglob("*")
        for s in (p.lstat(),)
        if not p.is_dir()
    }


def test_a_detached_head_has_no_branch(source: Path, tmp_path: Path) -> None:
    plain_git(source, "checkout", "-q", "--detach", "HEAD~1")
    scenario = open_scenario(source, tmp_path)
    assert scenario.workspace.branch == ""
    assert plain_git(scenario.root, "rev-parse", "HEAD") == scenario.workspace.base
    assert plain_git(scenario.root, "branch", "--show-current") == ""
    write(scenario.root, "x", "x\n")
    expected = scenario.expected_tree()
    assert scenario.publish() == expected


@pytest.mark.parametrize("kind", ["bare", "worktree", "shallow", "another owner", "odd name"])
def test_unusual_repositories_are_cloned(source: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("-odd $HOME ~ 'name':x" if kind == "odd name" else "other")
    match kind:
        case "bare":
            plain_git(tmp_path, "clone", "-q", "--bare", str(source), str(path))
        case "worktree":
            plain_git(source, "worktree", "add", "-q", "-b", "side", str(path))
        case "shallow":
            plain_git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", str(path))
        case "another owner" if os.geteuid() != 0:
            pytest.skip("only root can give a folder to another user")
        case "another owner":
            shutil.copytree(source, path, symlinks=True)
            subprocess.run(["chown", "-R", "65534:65534", str(path)], check=True)
        case _:
            shutil.copytree(source, path, symlinks=True)
    workspace = Workspace.clone(str(path), tmp_path / "clone")
    assert workspace.read("README.md") == b"two\n"
    root, _ = enter_sandbox(workspace, tmp_path)
    assert plain_git(root, "fsck", "--strict") == ""


def test_what_can_not_be_cloned_is_reported(tmp_path: Path, source: Path) -> None:
    (tmp_path / "plain").mkdir()
    for place in (tmp_path / "plain", tmp_path / "none", source / "docs"):
        assert "not the top of a git repository" in _fails(place, tmp_path / "c").what
    plain_git(tmp_path, "init", "-q", "empty")
    assert "has no commit yet" in _fails(tmp_path / "empty", tmp_path / "clone").what
    assert "no branch 'nope'" in _fails(source, tmp_path / "1", branch="nope").what
    assert "no commit 0000" in _fails(source, tmp_path / "2", commit="0" * 40).what
    assert "not a full commit id" in _fails(source, tmp_path / "3", commit="HEAD").what


def test_a_partial_clone_is_named_with_the_command_that_completes_it(
    source: Path, tmp_path: Path
) -> None:
    partial = tmp_path / "partial"
    plain_git(source, "config", "uploadpack.allowFilter", "true")
    plain_git(
        tmp_path, "clone", "-q", "--filter=tree:0", "--sparse", f"file://{source}", str(partial)
    )
    error = _fails(partial, tmp_path / "clone")
    assert "is a partial clone" in error.what
    command = shlex.split(error.next_step.removeprefix("fetch them: "))
    assert command[:2] == ["git", "-C"]
    plain_git(partial, *command[3:])
    workspace = Workspace.clone(str(partial), tmp_path / "complete")
    assert workspace.base == plain_git(source, "rev-parse", "HEAD")


def test_a_hostile_branch_name_is_refused(source: Path, tmp_path: Path) -> None:
    for branch in (
        "--upload-pack=touch x", "a..b", "x.lock", "@{-1}", "a b", "a\nb", "\0", "", "a\udcff"
    ):  # fmt: skip
        assert "not a valid branch" in _fails(source, tmp_path / "clone", branch=branch).what


@pytest.mark.parametrize(
    "url",
    [
        "ssh://git@github.com/a/b.git", "git@github.com:a/b.git", "ext::sh -c id", "git://x/y",
        "file:///etc", "https://", "https://user:pass@github.com/a/b", "https://x/a b", "ftp://x/y",
    ],
)  # fmt: skip
def test_only_plain_http_addresses_are_cloned(tmp_path: Path, url: str) -> None:
    error = _fails(url, tmp_path / "clone")
    assert "pass" not in error.what.replace("password", "")


def test_a_private_repository_is_cloned_with_its_token(
    server: str, source: Path, tmp_path: Path
) -> None:
    credential = _credential(server)
    workspace = Workspace.clone(server, tmp_path / "1", depth=1, credential=credential)
    assert (workspace.branch, workspace.read("README.md")) == ("main", b"two\n")
    root, _ = enter_sandbox(workspace, tmp_path)
    assert plain_git(root, "rev-list", "--count", "HEAD") == "1"
    assert plain_git(root, "fsck", "--strict") == ""
    # The branch has moved on since the commit that is named.
    first = plain_git(source, "rev-parse", "HEAD~1")
    earlier = Workspace.clone(server, tmp_path / "2", commit=first, depth=1, credential=credential)
    assert (earlier.base, earlier.branch) == (first, "main")
    assert earlier.read("README.md") == b"one\n"


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_clone_without_the_right_token_is_refused_with_advice(
    server: str, tmp_path: Path, token: str
) -> None:
    credential = _credential(server, "ghs_" + token) if token else None
    error = _fails(server, tmp_path / "clone", credential=credential)
    assert "token" in error.next_step and server in error.what


def test_a_missing_repository_is_reported(server: str, tmp_path: Path) -> None:
    credential = _credential(server)
    nowhere = server.replace("project", "nothing")
    assert nowhere in _fails(nowhere, tmp_path / "1", credential=credential).what
    missing = _fails(server, tmp_path / "2", branch="nope", credential=credential)
    assert "no branch 'nope'" in missing.what
    plain_git(tmp_path, "init", "-q", "--bare", "served/ann/empty.git")
    for branch in (None, "main"):
        empty = server.replace("project", "empty")
        error = _fails(empty, tmp_path / f"{branch}", branch=branch, credential=credential)
        assert "no commit on its default branch" in error.what
        assert error.next_step == "push a first commit, then ask again"
    refused = _fails("http://127.0.0.1:9/a/b", tmp_path / "4")
    assert "network" in refused.next_step


def test_the_token_is_neither_on_disk_nor_in_arguments(
    server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spy = tmp_path / "bin"
    spy.mkdir()
    real = shutil.which("git")
    (spy / "git").write_text(
        "#!/bin/sh\n"
        # GitPython asks for the version when it is imported: that is before any credential.
        f'[ "$1" = version ] && exec {real} "$@"\n'
        f'printf "%s\\n" "$@" >>{tmp_path}/arguments\n'
        f'env >>{tmp_path}/environment\nexec {real} "$@"\n'
    )
    (spy / "git").chmod(0o755)
    script = (
        "import sys; from pathlib import Path\n"
        "from resolver.git.git import Credential\n"
        "from resolver.git.workspace import Workspace\n"
        "c = Credential(sys.argv[2], sys.stdin.read())\n"
        "w = Workspace.clone(sys.argv[1], Path(sys.argv[3]), credential=c)\n"
        "list(w.git_dir_tar('x')); print(c, w)\n"
    )
    arguments = [server, server.partition("/ann/")[0], str(tmp_path / "clone")]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        input=TOKEN, text=True, capture_output=True, check=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "PATH": f"{spy}:{os.environ['PATH']}", "LLM_API_KEY": "sk-canary",
             "GITHUB_TOKEN": TOKEN, "GIT_TRACE_CURL": "1", "GIT_TRACE": "1"},
    )  # fmt: skip
    assert TOKEN not in done.stdout + done.stderr
    assert TOKEN not in (tmp_path / "arguments").read_text()
    environment = (tmp_path / "environment").read_text()
    assert TOKEN not in environment and "sk-canary" not in environment
    assert "GITHUB_TOKEN" not in environment
    assert "GIT_TRACE_CURL" not in environment and "GIT_TRACE=" not in environment
    basic = Credential("x", TOKEN).settings[0][1].split()[-1]
    for path in (tmp_path / "clone").rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert TOKEN.encode() not in data and basic.encode() not in data, path


def test_the_token_does_not_follow_a_redirect(server: str, tmp_path: Path) -> None:
    seen: list[str] = []

    def elsewhere(environ, start_response):  # type: ignore[no-untyped-def]
        seen.append(environ.get("HTTP_AUTHORIZATION", ""))
        start_response("404 Not Found", [("Content-Length", "0")])
        return [b""]

    with serve(elsewhere) as thief:

        def redirect(environ, start_response):  # type: ignore[no-untyped-def]
            where = f"{thief.url}{environ['PATH_INFO']}?{environ['QUERY_STRING']}"
            start_response("302 Found", [("Location", where), ("Content-Length", "0")])
            return [b""]

        with serve(redirect) as front:
            credential = Credential(front.url, TOKEN)
            _fails(f"{front.url}/ann/project.git", tmp_path / "1", credential=credential)
            # A token of one server is not sent to another one.
            _fails(f"{thief.url}/ann/project.git", tmp_path / "2", credential=credential)
    assert set(seen) == {""}


def test_an_error_does_not_show_the_token(tmp_path: Path) -> None:
    def echo(environ, start_response):  # type: ignore[no-untyped-def]
        body = f"no: {environ.get('HTTP_AUTHORIZATION')} {TOKEN} https://u:{TOKEN}@h/".encode()
        headers = [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))]
        start_response("403 Forbidden", headers)
        return [body]

    with serve(echo) as address:
        credential = Credential(address.url, TOKEN)
        error = _fails(f"{address.url}/a/b", tmp_path / "clone", credential=credential)
    assert "***" in error.what
    assert TOKEN not in error.what and credential.settings[0][1].split()[-1] not in error.what
    assert TOKEN not in repr(credential)


@pytest.mark.parametrize("token", ["", "a b", "a\nX-Evil: 1", "a\r", "\udcff", "é"])
def test_a_token_that_could_inject_a_header_is_refused(token: str) -> None:
    with pytest.raises(WorkspaceError):
        Credential("https://github.com", token)


def test_harmless_old_faults_in_history_are_cloned(source: Path, tmp_path: Path) -> None:
    blob = plain_git(source, "rev-parse", "HEAD:README.md")
    data = b"040000 d\0" + bytes.fromhex(plain_git(source, "rev-parse", "HEAD:docs"))
    data += b"100644 f\0" + bytes.fromhex(blob)
    add = ("hash-object", "-w", "--literally", "--stdin", "-t")
    tree = plain_git(source, *add, "tree", stdin=data)
    text = f"tree {tree}\nauthor A<a@b> 1 +051800\ncommitter A <a@b> 1 +0000\n\nx\n"
    commit = plain_git(source, *add, "commit", stdin=text.encode())
    plain_git(source, "reset", "-q", "--hard", commit)
    scenario = open_scenario(source, tmp_path)
    write(scenario.root, "f", "changed\n")
    assert [f.path for f in scenario.export().files] == ["f"]


def test_dangerous_history_is_not_cloned(source: Path, tmp_path: Path) -> None:
    blob = plain_git(source, "rev-parse", "HEAD:README.md")
    data = b"100644 .git\0" + bytes.fromhex(blob)
    add = ("hash-object", "-w", "--literally", "--stdin", "-t")
    tree = plain_git(source, *add, "tree", stdin=data)
    plain_git(
        source, "update-ref", "refs/heads/evil", plain_git(source, "commit-tree", tree, "-m", "x")
    )
    assert "hasDotgit" in _fails(source, tmp_path / "clone", branch="evil").what


def test_a_file_is_read_and_nothing_else(source: Path, tmp_path: Path) -> None:
    workspace = Workspace.clone(str(source), tmp_path / "clone")
    assert workspace.read("docs/guide.md") == b"guide\n"
    assert workspace.read("README.md", plain_git(source, "rev-parse", "HEAD~1")) == b"one\n"
    for path in ("nope", "docs", "docs/", "alias", "linked/guide.md", "../x", "/etc/passwd", "*",
                 ":(glob)**", "-z", "", "docs/../README.md", "README.md/"):  # fmt: skip
        assert workspace.read(path) is None, path
    with pytest.raises(WorkspaceError, match="more than 3 bytes"):
        workspace.read("README.md", limit=3)
    assert workspace.read_trusted("alias") is None
    assert workspace.trusted_paths() == ("README.md", "docs/guide.md")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://github.com/Octo/Demo.git", "https://github.com/octo/demo", True),
        ("https://github.com/octo/demo", "https://github.com/octo/demo2", False),
        ("https://github.com/octo/demo", "https://ghe.example.org/octo/demo", False),
        ("https://ghe.example.org:8443/octo/demo", "https://ghe.example.org/octo/demo", False),
    ],
)
def test_a_repository_is_identified_by_server_and_full_name(
    one: str, other: str, same: bool
) -> None:
    assert (repository_identity(one) == repository_identity(other)) is same
