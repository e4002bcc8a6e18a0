"""Repositories of tasks: what the agent starts from, without anything of the future.

They are bare repositories in which git works on objects only. Nothing is checked out on the host.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path

from resolver.config.temporary_directory import temporary_directory
from resolver.errors import UsageError, WorkspaceError
from resolver.evaluation.task_format import (
    REPOSITORY_BUNDLE,
    REPOSITORY_FOLDER,
    EvaluationTask,
    task_path,
)
from resolver.git.git import HostGit, create_bare_repository, fetch_arguments
from resolver.git.overlay import write_blob, write_tree
from resolver.git.tree import TreeEntry, encode_path, read_tree
from resolver.git.workspace import Workspace

BRANCH = "main"
_REF = f"refs/heads/{BRANCH}"
MAX_REPOSITORY_BYTES = 500_000_000
"""Maximum size of a repository that is a folder of files."""

_AT = datetime(2024, 1, 1, tzinfo=UTC)
_PERSON = {
    f"GIT_{role}_{name}": value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in (
        ("NAME", "Resolver"),
        ("EMAIL", "resolver@localhost"),
        ("DATE", f"@{int(_AT.timestamp())} +0000"),
    )
}
"""Author and date of the commit of a folder, so that its id is the same on every machine."""


def open_task_repository(task: EvaluationTask, folder: Path) -> Workspace:
    """Create the repository of a task in the new `folder`, at the base commit.

    The repository has the branch `main` and no other ref. Raises UsageError or WorkspaceError.
    """
    bundle = task_path(task.folder, REPOSITORY_BUNDLE)
    if bundle.is_file():
        git = create_bare_repository(folder)
        git.run(*fetch_arguments(str(bundle.resolve()), [f"+{_REF}:{_REF}"]))
    else:
        git = create_bare_repository(folder)
        _commit_folder(git, task_path(task.folder, REPOSITORY_FOLDER))
    base = git.text("rev-parse", f"{_REF}^{{commit}}")
    expected = task.hidden.base if task.config.metadata.resolver else ""
    if expected and base != expected:
        raise UsageError(
            f"the repository of the task {task.id} is at {base}, not at {expected}",
            "import the task again",
        )
    return Workspace(folder, str(folder), base, BRANCH)


def write_base_bundle(source: Workspace, commit: str, target: Path) -> None:
    """Write a bundle with `commit` and its history as the branch `main`, and nothing else.

    Commits that are not its ancestors, tags and other refs are left out. Raises WorkspaceError.
    """
    with temporary_directory() as folder:
        clone = Workspace.clone(str(source.folder), folder / "clone.git", commit=commit)
        clone.git.run("update-ref", _REF, commit)
        clone.git.run("bundle", "create", "--quiet", str(target.resolve()), _REF)


def write_tree_with(git: HostGit, tree: str, files: Mapping[str, bytes]) -> str:
    """Return the id of `tree` with these files in place of its own.

    A file keeps its mode; a new one is a regular file, executable if it starts with `#!`.
    """
    modes = {e.path: e.mode for e in read_tree(git, tree) if e.mode.startswith("100")}
    entries = []
    for name, content in files.items():
        path = encode_path(name)
        default = "100755" if content.startswith(b"#!") else "100644"
        entries.append(TreeEntry(path, modes.get(path, default), write_blob(git, content)))
    return write_tree(git, tree, entries)


def diff_trees(git: HostGit, base: str, tree: str, paths: Collection[str] = ()) -> bytes:
    """Return the patch that makes `tree` of `base`. paths: only these files; empty for all."""
    args = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv")
    return git.run("diff-tree", "-p", "-r", *args, base, tree, "--", *paths)


def _commit_folder(git: HostGit, folder: Path) -> None:
    """Commit the files of a folder as the only commit of `main`."""
    files: dict[str, bytes] = {}
    executable = set()
    size = 0
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise UsageError(f"{path} is a symbolic link", "use a bundle for such a repository")
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        size += path.stat().st_size
        if size > MAX_REPOSITORY_BYTES or ".git" in {p.lower() for p in Path(name).parts}:
            raise UsageError(
                f"{folder} is too large, or contains a .git", "use a bundle for such a repository"
            )
        files[name] = path.read_bytes()
        executable |= {name} if path.stat().st_mode & 0o100 else set()
    if not files:
        raise UsageError(f"{folder} has no files", "add the files of the repository")
    empty = git.run("mktree", stdin=b"").decode().strip()
    entries = (
        TreeEntry(
            encode_path(name),
            "100755" if name in executable else "100644",
            write_blob(git, content),
        )
        for name, content in files.items()
    )
    tree = write_tree(git, empty, entries)
    commit = git.run("commit-tree", tree, stdin=b"Start of the task\n", environment=_PERSON)
    git.run("update-ref", _REF, commit.decode().strip())


def has_commit(git: HostGit, commit: str) -> bool:
    """Return True if the repository has the commit."""
    return git.attempt("cat-file", "-e", f"{commit}^{{commit}}").status == 0


def require_commit(git: HostGit, commit: str, where: str) -> None:
    """Raise WorkspaceError if the repository does not have the commit."""
    if not has_commit(git, commit):
        raise WorkspaceError(f"{where} has no commit {commit}", "fetch it, or clone without depth")
