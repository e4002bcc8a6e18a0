"""Reads and writes tasks in Harbor's format, in which a task is a folder of these files:

    task.toml                configuration and metadata
    instruction.md           the request that the agent gets
    environment/             what the agent's container is built from
    tests/test.sh            the verifier; the agent never sees this folder
    solution/solve.sh        the reference solution (optional)

Harbor leaves `[metadata]` to the author of a task. `[metadata.resolver]` says how Resolver executes
the hidden tests itself and reads their results by test; `tests/expected.json` lists these tests.

Source: https://www.harborframework.com/docs/tasks
"""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from resolver.config.image_reference import parse_registry_reference
from resolver.errors import UsageError
from resolver.models.base import describe_first_error
from resolver.models.verification import ProjectCheck, ReportFormat

CONFIG_FILE = "task.toml"
INSTRUCTION_FILE = "instruction.md"
DOCKERFILE_PATH = "environment/Dockerfile"
REPOSITORY_FOLDER = "environment/repository"
"""The files of the repository that the agent works on, which become one commit."""
REPOSITORY_BUNDLE = "environment/repository.bundle"
"""The repository with its history up to the base commit, as a git bundle."""
TEST_SCRIPT = "tests/test.sh"
HIDDEN_FILES = "tests/files"
"""The hidden tests, below their paths in the repository."""
EXPECTED_FILE = "tests/expected.json"
SOLUTION_SCRIPT = "solution/solve.sh"
SOLUTION_PATCH = "solution/fix.patch"

SCHEMA_VERSION = "1.1"
MAX_CONFIG_BYTES = 1_000_000
MAX_EXPECTED_BYTES = 50_000_000
MAX_INSTRUCTION_BYTES = 1_000_000
MAX_SOLUTION_BYTES = 50_000_000

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])i?B?", re.IGNORECASE)
_MEGABYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}


def _read_size(value: Any) -> Any:
    """Return megabytes; older tasks write sizes as `4G`."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError("it is a number of megabytes, or a size such as `4G`")
    return max(1, round(float(match[1]) * _MEGABYTES[match[2].upper()]))


_Megabytes = Annotated[int, Field(gt=0, le=10**9), BeforeValidator(_read_size)]
_Seconds = Annotated[float, Field(gt=0, le=10**7, allow_inf_nan=False)]
_Text = Annotated[str, Field(max_length=10_000)]


class _Table(BaseModel):
    """A table of task.toml. Keys that are not known are ignored, as Harbor ignores them."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


def _is_repository_path(value: str) -> str:
    parts = value.split("/")
    if not value.isprintable() or {"", ".", "..", ".git"} & {part.lower() for part in parts}:
        raise ValueError("it is a path in the repository, relative to its root")
    return value


RepositoryPath = Annotated[str, Field(min_length=1, max_length=4096)]


class HiddenTests(_Table):
    """`[metadata.resolver]`: how the hidden tests are executed and how their results are read.

    command: shell command, executed in the root of the repository.
    files: paths of the hidden tests. They replace the agent's files of these names.
    base: the commit that the agent starts from; "" if the repository is a folder of files.
    solved_by: the commit of the real fix, for people.
    instruction_from: where the instruction comes from: "issue" or "commit message".
    """

    command: str = Field(min_length=1, max_length=10_000)
    files: tuple[RepositoryPath, ...] = Field(min_length=1, max_length=2_000)
    runner: _Text = ""
    report: _Text = ""
    report_format: ReportFormat = ""
    environment: dict[str, str] = Field(default_factory=dict)
    base: _Text = ""
    solved_by: _Text = ""
    instruction_from: _Text = ""

    @field_validator("files")
    @classmethod
    def _are_repository_paths(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_is_repository_path(value) for value in values)

    @property
    def check(self) -> ProjectCheck:
        """The command as a check, whose results are read by test."""
        return ProjectCheck(
            name="hidden tests",
            command=self.command,
            runner=self.runner,
            report=self.report,
            report_format=self.report_format,
            environment=self.environment,
            origin=CONFIG_FILE,
        )


class TaskMetadata(_Table):
    """`[metadata]`: what the author says about the task. resolver: None in tasks of others."""

    difficulty: _Text = ""
    category: _Text = ""
    language: _Text = ""
    resolver: HiddenTests | None = None


class TaskIdentity(_Table):
    """`[task]`: name and description."""

    name: _Text = ""
    description: _Text = ""
    keywords: tuple[_Text, ...] = Field(default=(), max_length=100)


class PhaseLimits(_Table):
    """`[agent]` or `[verifier]`: the time limit of a phase. None for the one of the settings."""

    timeout_sec: _Seconds | None = None


class TaskEnvironment(_Table):
    """`[environment]`: the container.

    docker_image: image that is used instead of building the Dockerfile; "" if there is none. A task
        may come from anywhere, so it names images of registries only, as a repository does.
    """

    build_timeout_sec: _Seconds = 600.0
    docker_image: _Text = ""
    cpus: float | None = Field(default=None, gt=0, le=10_000, allow_inf_nan=False)
    memory_mb: _Megabytes | None = Field(
        default=None, validation_alias=AliasChoices("memory_mb", "memory")
    )
    storage_mb: _Megabytes | None = Field(
        default=None, validation_alias=AliasChoices("storage_mb", "storage")
    )
    allow_internet: bool = True

    @field_validator("docker_image")
    @classmethod
    def _is_of_registry(cls, value: str) -> str:
        try:
            return parse_registry_reference(value, "a task") if value else ""
        except UsageError as error:
            raise ValueError(error.what) from None


class TaskConfig(_Table):
    """The content of task.toml."""

    schema_version: _Text = Field(
        default=SCHEMA_VERSION, validation_alias=AliasChoices("schema_version", "version")
    )
    task: TaskIdentity = TaskIdentity()
    metadata: TaskMetadata = TaskMetadata()
    agent: PhaseLimits = PhaseLimits()
    verifier: PhaseLimits = PhaseLimits()
    environment: TaskEnvironment = TaskEnvironment()


class ExpectedTests(_Table):
    """The hidden tests by their names in the report of the command.

    fail_to_pass: tests that fail at the base commit and pass with the real fix.
    pass_to_pass: tests that pass at both.
    """

    fail_to_pass: tuple[str, ...] = Field(min_length=1)
    pass_to_pass: tuple[str, ...] = ()


class EvaluationTask(_Table):
    """A task. id: the name of its folder."""

    id: str
    folder: Path
    config: TaskConfig
    instruction: str
    expected: ExpectedTests | None = None

    @property
    def problem(self) -> str:
        """Why Resolver can't execute the task; "" if it can."""
        if not any((self.folder / p).exists() for p in (REPOSITORY_FOLDER, REPOSITORY_BUNDLE)):
            return "no_repository"
        return "" if self.config.metadata.resolver and self.expected else "no_hidden_tests"

    @property
    def hidden(self) -> HiddenTests:
        """The command of the hidden tests. Only for a task without a problem."""
        assert self.config.metadata.resolver is not None
        return self.config.metadata.resolver

    def hidden_files(self) -> dict[str, bytes]:
        """Return the hidden tests by their paths in the repository. Raises UsageError."""
        return {
            path: _read_bytes(self.folder, f"{HIDDEN_FILES}/{path}", MAX_EXPECTED_BYTES)
            for path in self.hidden.files
        }

    def solution(self) -> bytes:
        """Return the real fix as a patch, empty if the task has none. Raises UsageError."""
        if not (self.folder / SOLUTION_PATCH).exists():
            return b""
        return _read_bytes(self.folder, SOLUTION_PATCH, MAX_SOLUTION_BYTES)


def parse_task_config(text: str, name: str = CONFIG_FILE) -> TaskConfig:
    """Return the content of a task.toml. Raises UsageError that says where it is wrong."""
    try:
        return TaskConfig.model_validate(tomllib.loads(text))
    except ValidationError as error:
        what = f"{name}: {describe_first_error(error)}"
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        what = f"{name} is not TOML: {error}"
    raise UsageError(what, "see https://www.harborframework.com/docs/tasks for the format")


def read_task_folder(folder: Path) -> EvaluationTask:
    """Return the task in a folder. Raises UsageError that says what is missing or wrong."""
    text = _read_text(folder, CONFIG_FILE, MAX_CONFIG_BYTES)
    config = parse_task_config(text, str(folder / CONFIG_FILE))
    instruction = _read_text(folder, INSTRUCTION_FILE, MAX_INSTRUCTION_BYTES)
    if not instruction.strip():
        raise UsageError(f"{folder / INSTRUCTION_FILE} is empty", "write what the agent is to do")
    expected = None
    if (folder / EXPECTED_FILE).exists():
        expected = parse_expected_tests(
            _read_text(folder, EXPECTED_FILE, MAX_EXPECTED_BYTES), str(folder / EXPECTED_FILE)
        )
    return EvaluationTask(
        id=folder.resolve().name,
        folder=folder,
        config=config,
        instruction=instruction,
        expected=expected,
    )


def parse_expected_tests(text: str, name: str = EXPECTED_FILE) -> ExpectedTests:
    """Return the content of an expected.json. Raises UsageError that says where it is wrong."""
    try:
        return ExpectedTests.model_validate(json.loads(text))
    except ValidationError as error:
        what = f"{name}: {describe_first_error(error)}"
    except (ValueError, RecursionError) as error:
        what = f"{name} is not JSON: {error}"
    raise UsageError(what, "write `fail_to_pass` and `pass_to_pass` as lists of test names")


BUNDLED = "bundled"
"""Name of the suite that comes with Resolver, on the command line."""


def bundled_suite() -> Path:
    """Return the path of suite/: in the installed package, or at the top of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "suite"
    return installed if installed.is_dir() else package.parent / "suite"


def find_suite(path: Path) -> Path:
    """Return the folder of a suite: a folder of this name, or the suite of Resolver."""
    return bundled_suite() if str(path) == BUNDLED and not path.exists() else path


def read_suite(folder: Path) -> tuple[EvaluationTask, ...]:
    """Return the tasks of a suite, by name: the folder itself, or the folders directly in it.

    Raises UsageError if there is none, or one of them can't be read.
    """
    if (folder / CONFIG_FILE).is_file():
        return (read_task_folder(folder),)
    found = sorted(folder.glob(f"*/{CONFIG_FILE}")) if folder.is_dir() else []
    if not found:
        raise UsageError(
            f"{folder} has no tasks", f"give a folder that holds folders with a {CONFIG_FILE}"
        )
    return tuple(read_task_folder(path.parent) for path in found)


def write_task(
    folder: Path, config: TaskConfig, instruction: str, files: Mapping[str, bytes]
) -> None:
    """Write a task into the new folder. files: further files by path; scripts are executable."""
    folder.mkdir(parents=True)
    contents = {
        CONFIG_FILE: render_task_config(config).encode(),
        INSTRUCTION_FILE: f"{instruction.strip()}\n".encode("utf-8", "replace"),
        **files,
    }
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if name.endswith(".sh"):
            path.chmod(0o755)


def render_task_config(config: TaskConfig) -> str:
    """Return the text of a task.toml, without what has its default value."""
    data = config.model_dump(mode="json", exclude_defaults=True)
    return _toml({"schema_version": config.schema_version, **data})


def _toml(table: Mapping[str, Any], *path: str) -> str:
    """Return a table in TOML: its own values first, then the tables in it."""
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    lines = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in plain.items()]
    head = f"\n[{'.'.join(map(_toml_key, path))}]\n" if path and lines else ""
    tables = "".join(
        _toml(value, *path, key) for key, value in table.items() if isinstance(value, Mapping)
    )
    return head + "".join(f"{line}\n" for line in lines) + tables


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_value(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, str):
        # A basic string of TOML has the escapes of JSON, and DEL must be escaped too. Half of a
        # surrogate pair has no representation: https://toml.io/en/v1.0.0#string
        clean = value.encode("utf-8", "replace").decode()
        return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)


def task_path(folder: Path, name: str) -> Path:
    """Return the path of a file or folder of a task.

    Raises UsageError if it is reached by a symbolic link. A task may come from anywhere, and the
    link could name any file of this machine, which would become part of a sandbox or of a report.
    """
    if (folder / name).resolve() != folder.resolve() / name:
        raise UsageError(f"{folder / name} is a symbolic link", "put the file in its place")
    return folder / name


def _read_text(folder: Path, name: str, limit: int) -> str:
    try:
        return _read_bytes(folder, name, limit).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{folder / name} is not UTF-8 text", "save it as UTF-8") from None


def _read_bytes(folder: Path, name: str, limit: int) -> bytes:
    """Return the content of a regular file of a task. Raises UsageError."""
    path = task_path(folder, name)
    try:
        if not path.is_file():
            raise UsageError(f"there is no file {path}", "add it")
        if path.stat().st_size > limit:
            raise UsageError(f"{path} is larger than {limit:,} bytes", "make it smaller")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", "check the file") from None
