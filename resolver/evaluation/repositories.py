"""Repositories of tasks: what the agent starts from, without anything of the future.

They are bare repositories in which git works on objects only. Nothing is checked out on the host.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
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


def write_tree_with(
    git: HostGit, tree: str, files: Mapping[str, bytes], removed: Collection[str] = ()
) -> str:
    """Return the id of `tree` with these files in place of its own, and without the removed ones.

    A file keeps its mode; a new one is a regular file, executable if it starts with `#!`.
    """
    known = _modes(git, tree, files)
    entries = b"".join(
        b"0 %s\t%s\0" % (b"0" * 40, path.encode("utf-8", "surrogateescape")) for path in removed
    )
    for path, content in files.items():
        blob = git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=content)
        default = "100755" if content.startswith(b"#!") else "100644"
        mode = known.get(path, default)
        name = path.encode("utf-8", "surrogateescape")
        entries += b"%s %s\t%s\0" % (mode.encode(), blob.strip(), name)
    return write_index_tree(git, tree, entries)


def write_index_tree(git: HostGit, tree: str, entries: bytes) -> str:
    """Return the id of `tree` with the entries of an `update-index --index-info`."""
    with _private_index(git, tree) as index:
        if entries:
            git.run(
                "update-index", "-z", "--add", "--replace", "--index-info",
                stdin=entries, environment=index,
            )  # fmt: skip
        return git.run("write-tree", environment=index).decode().strip()


def apply_patch(git: HostGit, tree: str, patch: bytes) -> str:
    """Return the id of `tree` with a patch applied. Raises WorkspaceError if it does not apply."""
    with _private_index(git, tree) as index:
        git.run("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch, environment=index)
        return git.run("write-tree", environment=index).decode().strip()


@contextmanager
def _private_index(git: HostGit, tree: str) -> Iterator[dict[str, str]]:
    """Yield the variables with which git uses an index of `tree` that nothing else uses.

    Nothing touches a working tree or a ref.
    """
    with temporary_directory() as folder:
        index = {"GIT_INDEX_FILE": str(folder / "index")}
        git.run("read-tree", tree, environment=index)
        yield index


def diff_trees(git: HostGit, base: str, tree: str, paths: Collection[str] = ()) -> bytes:
    """Return the patch that makes `tree` of `base`. paths: only these files; empty for all."""
    args = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv")
    return git.run("diff-tree", "-p", "-r", *args, base, tree, "--", *paths)


def _modes(git: HostGit, tree: str, paths: Collection[str]) -> dict[str, str]:
    """Return the modes of those of the paths that are regular files of the tree."""
    found = {}
    for record in git.run("ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
        head, _, name = record.partition(b"\t")
        path = name.decode("utf-8", "surrogateescape")
        if path in paths and head.startswith(b"100"):
            found[path] = head[:6].decode()
    return found


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
    entries = b""
    for name, content in files.items():
        blob = git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=content).strip()
        mode = b"100755" if name in executable else b"100644"
        entries += b"%s %s\t%s\0" % (mode, blob, name.encode("utf-8", "surrogateescape"))
    tree = write_index_tree(git, empty, entries)
    commit = git.run("commit-tree", tree, stdin=b"Start of the task\n", environment=_PERSON)
    git.run("update-ref", _REF, commit.decode().strip())


def has_commit(git: HostGit, commit: str) -> bool:
    """Return True if the repository has the commit."""
    return git.attempt("cat-file", "-e", f"{commit}^{{commit}}").status == 0


def require_commit(git: HostGit, commit: str, where: str) -> None:
    """Raise WorkspaceError if the repository does not have the commit."""
    if not has_commit(git, commit):
        raise WorkspaceError(f"{where} has no commit {commit}", "fetch it, or clone without depth")
