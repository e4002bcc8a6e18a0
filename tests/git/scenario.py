"""A repository, a sandbox folder in which it is checked out, and plain git to compare with."""

# Paths that are bytes have no Path.
# ruff: noqa: PTH101, PTH103, PTH108, PTH118, PTH120, PTH211

import os
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from resolver.git.git import Credential
from resolver.git.push import Identity, write_branch, write_commit
from resolver.git.workspace import DIFF_LIMIT, Workspace
from resolver.models.run import Patch
from resolver.sandbox.change import checkout, export_change
from resolver.sandbox.wire import ChangeResult
from tests.parts.git_http import git_http_app, token_gate
from tests.parts.templates import Templates
from tests.parts.wsgi import serve

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
US = Identity("resolver[bot]", "1+resolver[bot]@users.noreply.github.com")
GIT = shutil.which("git") or "git"


def plain_git(
    folder: Path | bytes,
    *args: str | bytes,
    stdin: bytes | None = None,
    variables: Mapping[str, str] | None = None,
) -> str:
    """Run git as after `apt install git`, with no configuration except a name."""
    environment = {
        **(variables or {}),
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "ann@example.com",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_COMMITTER_EMAIL": "ann@example.com",
    }
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", "-c", "gc.auto=0", *args],
        cwd=folder,
        env=environment,
        input=stdin,
        capture_output=True,
    )
    assert done.returncode == 0, (args, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def write(root: Path, path: bytes | str, data: bytes | str, mode: int = 0o644) -> None:
    """Write a file and its folders, replacing what is there."""
    full = os.path.join(os.fsencode(root), os.fsencode(path))
    os.makedirs(os.path.dirname(full), exist_ok=True)
    if os.path.lexists(full):
        os.unlink(full)
    with open(full, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    os.chmod(full, mode)


def link(root: Path, path: str | bytes, target: str | bytes) -> None:
    """Create a symlink, replacing what is there."""
    full = os.path.join(os.fsencode(root), os.fsencode(path))
    os.makedirs(os.path.dirname(full), exist_ok=True)
    if os.path.lexists(full):
        os.unlink(full)
    os.symlink(os.fsencode(target), full)


def make_repository(path: Path, files: dict[str | bytes, bytes | str] | None = None) -> Path:
    """Create a checkout with one commit on `main`."""
    path.mkdir(parents=True)
    plain_git(path, "init", "-q")
    for name, data in (files if files is not None else {"README.md": "hello\n"}).items():
        write(path, name, data)
    commit_all(path)
    return path


def commit_all(path: Path, message: str = "start") -> str:
    """Commit everything, even if nothing has changed."""
    plain_git(path, "add", "-A", "--force")
    plain_git(path, "commit", "-q", "--allow-empty", "-m", message)
    return plain_git(path, "rev-parse", "HEAD")


@dataclass
class Scenario:
    """The folders of one run: the source checkout, the host's clone, the sandbox's folders."""

    source: Path
    workspace: Workspace
    root: Path
    scratch: Path

    def change(self) -> ChangeResult:
        """Return what the sandbox says about the change."""
        return export_change(str(self.root), str(self.scratch), self.workspace.base, GIT)

    def export(self, limit: int = DIFF_LIMIT) -> Patch:
        """Return the change that the host receives from the sandbox folder."""
        change = self.change()
        bundle = Path(change["bundle"]) if change["bundle"] else None
        return self.workspace.receive(bundle, change["commit"], change["tree"], limit)

    def publish(self, change: Patch | None = None, branch: str = "agent/change") -> str:
        """Publish the change and return the tree of the commit on the branch of the source."""
        self.write_branch(branch, self.commit(change or self.export()))
        return plain_git(self.source, "rev-parse", f"{branch}^{{tree}}")

    def commit(
        self,
        change: Patch,
        message: str = "Change",
        author: Identity = US,
        co_authors: Sequence[Identity] = (),
    ) -> str:
        """Commit the change on top of its base and return the id."""
        git = self.workspace.git
        return write_commit(git, change.base, change.tree, message, author, AT, co_authors)

    def write_branch(self, branch: str, commit: str) -> None:
        write_branch(self.workspace.git, self.workspace.base, self.source, branch, commit)

    def expected_tree(self) -> str:
        """Return the tree that plain git makes of the same files, without any code of Resolver."""
        git_dir, own = self.source / ".git", self.root.parent / "independent"
        shutil.rmtree(own, ignore_errors=True)
        (own / "objects").mkdir(parents=True)
        variables = {
            "GIT_DIR": str(git_dir),
            "GIT_WORK_TREE": str(self.root),
            "GIT_INDEX_FILE": str(own / "index"),
            # Not the source's own, to which the objects are still to be published.
            "GIT_OBJECT_DIRECTORY": str(own / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(git_dir / "objects"),
        }
        plain_git(self.root, "read-tree", self.workspace.base, variables=variables)
        plain_git(self.root, "add", "-A", variables=variables)
        return plain_git(self.root, "write-tree", variables=variables)


def open_scenario(source: Path, place: Path, depth: int = 0) -> Scenario:
    """Clone `source` and check it out in a sandbox folder, like a run."""
    workspace = Workspace.clone(str(source), place / "clone", depth=depth)
    return Scenario(source, workspace, *enter_sandbox(workspace, place))


def copy_scenario(templates: Templates, build: Callable[[Path], Scenario], place: Path) -> Scenario:
    """A scenario of its own for a test, as `build` makes it in a folder."""
    folder, scenario = templates.copy(build, place)

    def moved(path: Path | str) -> Path:
        return place / Path(path).relative_to(folder)

    workspace = replace(
        scenario.workspace,
        folder=moved(scenario.workspace.folder),
        source=str(moved(scenario.workspace.source)),
    )
    return Scenario(
        moved(scenario.source), workspace, moved(scenario.root), moved(scenario.scratch)
    )


def enter_sandbox(workspace: Workspace, place: Path) -> tuple[Path, Path]:
    """Return root and scratch of a new sandbox folder with the workspace checked out."""
    root, scratch = place / "sandbox" / "repo", place / "sandbox" / "scratch"
    scratch.mkdir(parents=True)
    git_dir = place / "git-dir"
    tar = b"".join(workspace.git_dir_tar(git_dir.name))
    subprocess.run(["tar", "-x", "-C", place], input=tar, check=True)
    checkout(str(root), str(git_dir), workspace.base, workspace.branch, GIT, str(scratch))
    return root, scratch


TOKEN = "ghs_" + "cAnArY01" * 5


class Counted:
    """A git server that counts the bytes of its answers."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.sent = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        answer = self._app(environ, start_response)
        try:
            for chunk in answer:
                self.sent += len(chunk)
                yield chunk
        finally:
            getattr(answer, "close", lambda: None)()


@dataclass(frozen=True)
class Served:
    """A bare repository over HTTP. credential: of the only one who may push to it."""

    bare: Path
    server: Counted
    url: str
    credential: Credential


@contextmanager
def serve_clone(
    source: Path, place: Path, readers: Collection[str] | None = ()
) -> Iterator[Served]:
    """Serve a bare clone of `source`. readers: tokens that may read it; None: everybody may."""
    bare = place / "served/ann/project.git"
    plain_git(place, "clone", "-q", "--bare", str(source), str(bare))
    server = Counted(git_http_app(place / "served", token_gate([TOKEN], readers)))
    with serve(server) as address:
        url = f"{address.url}/ann/project.git"
        yield Served(bare, server, url, Credential(address.url, TOKEN))
