"""Imports tasks in the format of SWE-bench: one JSON object in each line.

Source: https://www.swebench.com/SWE-bench/guides/datasets/
"""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from resolver.errors import UsageError, WorkspaceError
from resolver.evaluation.repositories import require_commit
from resolver.evaluation.task_files import write_history_task
from resolver.evaluation.task_format import (
    ExpectedTests,
    HiddenTests,
    TaskConfig,
    TaskEnvironment,
    TaskIdentity,
    TaskMetadata,
)
from resolver.git.overlay import apply_patch
from resolver.git.tree import decode_path, read_blobs, read_changes
from resolver.git.workspace import Workspace
from resolver.models.base import describe_first_error

MAX_LINE_BYTES = 50_000_000


def _read_names(value: Any) -> Any:
    """Return a list of tests; data sets also write it as a string of JSON."""
    return json.loads(value) if isinstance(value, str) else value


_Names = Annotated[tuple[str, ...], BeforeValidator(_read_names)]


class SweBenchInstance(BaseModel):
    """A line of the data set. Fields that are not needed are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    instance_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")
    repo: str = ""
    base_commit: str = Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")
    problem_statement: str = Field(min_length=1, max_length=1_000_000)
    patch: str = Field(default="", max_length=MAX_LINE_BYTES)
    test_patch: str = Field(min_length=1)
    fail_to_pass: _Names = Field(
        min_length=1, validation_alias=AliasChoices("FAIL_TO_PASS", "fail_to_pass")
    )
    pass_to_pass: _Names = Field(
        default=(), validation_alias=AliasChoices("PASS_TO_PASS", "pass_to_pass")
    )
    docker_image: str = Field(
        default="", validation_alias=AliasChoices("docker_image", "image_name")
    )


def parse_instances(text: str, name: str) -> Iterator[SweBenchInstance]:
    """Yield the tasks of a JSONL file. Raises UsageError that names the wrong line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield SweBenchInstance.model_validate(json.loads(line))
        except ValidationError as error:
            what = f"{name}, line {number}: {describe_first_error(error)}"
        except (ValueError, RecursionError) as error:
            what = f"{name}, line {number} is not JSON: {error}"
        else:
            continue
        raise UsageError(what, "give one task of SWE-bench in each line")


def import_instance(
    instance: SweBenchInstance, repository: Workspace, folder: Path, command: str
) -> None:
    """Write the task into the new `folder`.

    repository: a clone that has the base commit.
    command: the command of the tests, to which the hidden files are appended.

    Raises WorkspaceError if the commit is missing or a patch does not apply, and UsageError if the
    task has what a task can't have, such as a line break in the name of a file.
    """
    git, base = repository.git, instance.base_commit
    require_commit(git, base, repository.source)
    with_tests = apply_patch(git, base, _as_patch(instance.test_patch))
    changes = [c for c in read_changes(git, base, with_tests) if c.new_blob]
    contents = dict(read_blobs(git, [c.new_id for c in changes]))
    hidden = {decode_path(c.path): contents[c.new_id] for c in changes}
    if not hidden:
        raise WorkspaceError(
            f"the test_patch of {instance.instance_id} adds or changes no file",
            "leave the task out",
        )
    config = _task_config(instance, tuple(hidden), command)
    expected = ExpectedTests(fail_to_pass=instance.fail_to_pass, pass_to_pass=instance.pass_to_pass)
    write_history_task(
        folder,
        config,
        instance.problem_statement,
        repository,
        hidden,
        expected,
        _as_patch(instance.patch),
    )


def _task_config(instance: SweBenchInstance, hidden: tuple[str, ...], command: str) -> TaskConfig:
    names = " ".join(shlex.quote(path) for path in hidden if path.endswith(".py"))
    try:
        return TaskConfig(
            task=TaskIdentity(name=f"swe-bench/{instance.instance_id}"),
            metadata=TaskMetadata(
                category="swe-bench",
                language="python",
                resolver=HiddenTests(
                    command=f"{command} {names}".strip(),
                    files=hidden,
                    runner="pytest",
                    base=instance.base_commit,
                    instruction_from="issue",
                ),
            ),
            environment=TaskEnvironment(docker_image=instance.docker_image),
        )
    except ValidationError as error:
        raise UsageError(
            f"the task {instance.instance_id} can't be imported: {describe_first_error(error)}",
            "leave the task out",
        ) from None


def _as_patch(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return data if data.endswith(b"\n") or not data else data + b"\n"
