"""Writes the files of a task that comes from a repository's history."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path

from resolver.config.templates import render
from resolver.evaluation.repositories import write_base_bundle
from resolver.evaluation.task_format import (
    DOCKERFILE_PATH,
    EXPECTED_FILE,
    HIDDEN_FILES,
    REPOSITORY_BUNDLE,
    SOLUTION_PATCH,
    SOLUTION_SCRIPT,
    TEST_SCRIPT,
    ExpectedTests,
    TaskConfig,
    write_task,
)
from resolver.git.workspace import Workspace

WORKING_DIRECTORY = "/testbed"
"""Folder of the repository in the task's container, where other harnesses find it."""


def write_history_task(
    folder: Path,
    config: TaskConfig,
    instruction: str,
    repository: Workspace,
    hidden: Mapping[str, bytes],
    expected: ExpectedTests,
    solution: bytes,
) -> None:
    """Write a task whose repository is a bundle of the base commit and its history.

    repository: a clone that has the base commit. hidden: the hidden tests by their paths.
    solution: the real fix without the hidden tests, as a patch. Raises WorkspaceError.
    """
    tests = config.metadata.resolver
    assert tests is not None
    files = {
        DOCKERFILE_PATH: _render("dockerfile", config).encode(),
        TEST_SCRIPT: _render("test.sh", config).encode(),
        EXPECTED_FILE: (json.dumps(expected.model_dump(mode="json"), indent=1) + "\n").encode(),
        **{f"{HIDDEN_FILES}/{path}": content for path, content in hidden.items()},
    }
    if solution:
        files[SOLUTION_PATCH] = solution
        files[SOLUTION_SCRIPT] = _render("solve.sh", config).encode()
    write_task(folder, config, instruction, files)
    write_base_bundle(repository, tests.base, folder / REPOSITORY_BUNDLE)


def _render(name: str, config: TaskConfig) -> str:
    tests = config.metadata.resolver
    assert tests is not None
    return render(
        f"eval/{name}.j2",
        image=config.environment.docker_image,
        directory=WORKING_DIRECTORY,
        command=tests.command,
        variables=[(name, shlex.quote(value)) for name, value in tests.environment.items()],
    )
