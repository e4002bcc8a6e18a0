"""Takes a change from git objects to the verdict, in sandboxes that are folders of this machine."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from resolver.git.workspace import Workspace
from resolver.models.verification import CheckExecution, ProjectCheck, TreeName, Verification
from resolver.verification.runner import BaseResults
from resolver.verification.execute import VerificationRequest, verify_change
from resolver.verification.runner import CheckExecutor, CheckRunner
from resolver.verification.sandbox_checks import execute_check
from resolver.verification.selection import select_checks
from resolver.verification.trees import build_trees
from tests.git.trees import commit_of, write_base
from tests.verification.suite.local_sandbox import LocalSandbox

Files = Mapping[str, str]

SECONDS = 60.0
"""Time limit of one verification."""


@dataclass(frozen=True)
class _LocalExecutor:
    sandbox: LocalSandbox

    def execute(self, check: ProjectCheck, seconds: float) -> CheckExecution:
        return execute_check(self.sandbox, check, seconds)

    def interrupt(self) -> None:
        self.sandbox.interrupt()


def verify_files(
    check: ProjectCheck, base: Files, head: Files, folder: Path, shared: Path
) -> Verification:
    """Return the verdict about the change from `base` to `head`.

    folder: for the repository and the sandboxes. shared: for the results at base commits.
    """
    workspace, tree = write_repository(folder / "repository.git", base, head)
    trees = build_trees(workspace, tree)

    @contextmanager
    def open_executor(name: TreeName) -> Iterator[CheckExecutor]:
        files = read_files(workspace, trees.trees[name])
        yield _LocalExecutor(LocalSandbox(folder / name, files, {}))

    request = VerificationRequest(
        selection=select_checks([check], workspace, trees.changed_files, tree),
        changed_files=trees.changed_files,
        changed_tests=trees.changed_tests,
        review=trees.review,
    )
    runner = CheckRunner(
        trees=trees.trees,
        environment="this machine",
        open_executor=open_executor,
        record=lambda _: None,
        seconds=SECONDS,
        base_results=BaseResults(shared),
    )
    return verify_change(request, runner)


def write_repository(folder: Path, base: Files, head: Files) -> tuple[Workspace, str]:
    """Write a bare repository, and return it at the base, and the tree of the head."""
    workspace = write_base(folder, base)
    return workspace, workspace.tree(commit_of(workspace.git, head))


def read_files(workspace: Workspace, tree: str) -> Files:
    """Return the texts of a tree."""
    archive = workspace.git.run("archive", "--format=tar", tree)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
        return {name: file.read().decode() for name, file in files.items() if file is not None}
