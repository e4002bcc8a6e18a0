"""Writes tasks in Harbor's format, in which a task is a folder of these files:

    task.toml                configuration and metadata
    instruction.md           the request that the agent gets
    environment/             what the agent's container is built from
    tests/test.sh            the verifier; the agent never sees this folder
    solution/solve.sh        the reference solution

Source: https://www.harborframework.com/docs/tasks
"""

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from resolver.config.templates import render
from resolver.config.temporary_directory import temporary_directory
from resolver.evaluation.history import FixFiles, PastFix
from resolver.git.workspace import Workspace
from resolver.models.verification import ProjectCheck

WORKING_DIRECTORY = "/testbed"
"""Folder of the repository in the task's container, where other harnesses find it, too."""


@dataclass(frozen=True)
class HistoryTask:
    """A task that is made of a fix.

    name: in the form OWNER/NAME that Harbor requires.
    check: the command that fails without the fix and passes with it.
    seconds: time limit of the command.
    image: what the container is made from. setup: script of the set-up, None if there is none.
    """

    name: str
    fix: PastFix
    files: FixFiles
    check: ProjectCheck
    seconds: float
    image: str
    setup: str | None = None


def write_task(folder: Path, task: HistoryTask, repository: Workspace) -> None:
    """Write a task into the new folder. repository: a clone that has the fix.

    A folder with the task's name is complete whenever it exists. Raises WorkspaceError.
    """
    partial = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    solution = _solution(task, repository)
    variables = [(name, shlex.quote(value)) for name, value in task.check.environment.items()]
    values = {
        "task": task,
        "directory": WORKING_DIRECTORY,
        "command": shlex.quote(task.check.command),
        "variables": variables,
    }
    contents = {
        "task.toml": render("eval/task.toml.j2", **values).encode(),
        "instruction.md": task.fix.text.encode("utf-8", "replace"),
        "environment/Dockerfile": render("eval/dockerfile.j2", **values).encode(),
        "tests/test.sh": render("eval/test.sh.j2", **values).encode(),
        **{f"tests/files/{path}": content for path, content in task.files.tests.items()},
        "solution/solve.sh": render("eval/solve.sh.j2", **values).encode(),
        "solution/fix.patch": solution,
    }
    if task.setup is not None:
        contents["environment/setup.sh"] = task.setup.encode()
    for name, content in contents.items():
        path = partial / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if content.startswith(b"#!"):
            path.chmod(0o755)
    _write_bundle(repository, task.fix.base, partial / "environment/repository.bundle")
    partial.rename(folder)


def _solution(task: HistoryTask, repository: Workspace) -> bytes:
    """Return the fix without the hidden tests, as a patch."""
    args = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv")
    commits = (task.fix.base, task.fix.commit)
    return repository.git.run("diff-tree", "-p", "-r", *args, *commits, "--", *task.files.other)


def _write_bundle(source: Workspace, commit: str, target: Path) -> None:
    """Write a bundle with `commit` and its history as the branch `main`, and nothing else.

    Commits that are not its ancestors, tags and other refs are left out. Raises WorkspaceError.
    """
    with temporary_directory() as folder:
        clone = Workspace.clone(str(source.folder), folder / "clone.git", commit=commit)
        clone.git.run("update-ref", "refs/heads/main", commit)
        clone.git.run("bundle", "create", "--quiet", str(target.resolve()), "refs/heads/main")
