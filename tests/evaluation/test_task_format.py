"""Tests of reading and writing tasks in Harbor's format."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import UsageError
from resolver.evaluation.repositories import open_task_repository
from resolver.evaluation.task_format import (
    EXPECTED_FILE,
    HiddenTests,
    TaskConfig,
    TaskIdentity,
    TaskMetadata,
    parse_expected_tests,
    parse_task_config,
    read_suite,
    read_task_folder,
    render_task_config,
    write_task,
)

HARBOR_EXAMPLE = """\
schema_version = "1.1"

[task]
name = "org/name"
description = "A short description of the task"
authors = [{ name = "Ada", email = "ada@example.org" }]
keywords = ["trivial", "programming"]

[metadata]
difficulty_explanation = "Trivial task for demonstration"
category = "programming"

[verifier]
timeout_sec = 120.0
env = { API_KEY = "x" }
user = "root"

[agent]
timeout_sec = 300.0

[environment]
build_timeout_sec = 600.0
docker_image = "org/image:tag"
cpus = 1
memory_mb = 2048
storage_mb = 10240
"""
"""The example of https://www.harborframework.com/docs/tasks, shortened."""


def test_the_example_of_the_documentation_is_read() -> None:
    config = parse_task_config(HARBOR_EXAMPLE)
    assert config.task.name == "org/name"
    assert config.agent.timeout_sec == 300
    assert config.environment.docker_image == "org/image:tag"
    assert config.environment.memory_mb == 2048
    assert config.metadata.resolver is None


def test_the_older_names_of_version_memory_and_storage_are_read() -> None:
    config = parse_task_config('version = "1.0"\n[environment]\nmemory = "4G"\nstorage = "512M"\n')
    assert config.schema_version == "1.0"
    assert (config.environment.memory_mb, config.environment.storage_mb) == (4096, 512)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[agent\n", "task.toml is not TOML"),
        ("[agent]\ntimeout_sec = 0\n", "agent.timeout_sec: Input should be greater than 0"),
        ("[agent]\ntimeout_sec = nan\n", "agent.timeout_sec"),
        ('[environment]\nmemory = "much"\n', "a number of megabytes, or a size such as `4G`"),
        ("task = 3\n", "task.toml: task: Input should be"),
        (
            '[metadata.resolver]\ncommand = "x"\nfiles = ["../x"]\n',
            "metadata.resolver.files: Value error, it is a path in the repository",
        ),
        ('[metadata.resolver]\ncommand = "x"\nfiles = [".git/hooks/x"]\n', "a path in the"),
        ('[metadata.resolver]\ncommand = "x"\nfiles = []\n', "metadata.resolver.files"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_task_config(text)
    assert says in caught.value.what


@pytest.mark.parametrize("text", ["{", "[]", '{"fail_to_pass": []}', '{"fail_to_pass": 3}'])
def test_a_wrong_list_of_expected_tests_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected\.json"):
        parse_expected_tests(text)


_TEXT = st.text(st.characters(codec="utf-8"), max_size=30)


@given(_TEXT, _TEXT, st.dictionaries(_TEXT, _TEXT, max_size=3))
def test_what_is_written_is_read_as_the_same(
    name: str, command: str, environment: dict[str, str]
) -> None:
    hidden = HiddenTests(command=f"x{command}", files=("tests/a b.py",), environment=environment)
    config = TaskConfig(task=TaskIdentity(name=name), metadata=TaskMetadata(resolver=hidden))
    text = render_task_config(config)
    assert parse_task_config(text) == config
    assert tomllib.loads(text)["schema_version"] == "1.1"


def make_task(folder: Path, **files: str) -> None:
    hidden = HiddenTests(command="pytest", files=("tests/test_a.py",))
    contents = {
        "tests/test.sh": b"true\n",
        "tests/files/tests/test_a.py": b"def test_a(): pass\n",
        EXPECTED_FILE: b'{"fail_to_pass": ["a"]}',
        **{name: text.encode() for name, text in files.items()},
    }
    write_task(folder, TaskConfig(metadata=TaskMetadata(resolver=hidden)), "Fix it", contents)


def test_a_task_is_read_with_its_hidden_tests(tmp_path: Path) -> None:
    make_task(tmp_path / "one", **{"environment/repository/a.py": "a = 1\n"})
    task = read_task_folder(tmp_path / "one")
    assert (task.id, task.instruction, task.problem) == ("one", "Fix it\n", "")
    assert task.hidden_files() == {"tests/test_a.py": b"def test_a(): pass\n"}
    assert (tmp_path / "one/tests/test.sh").stat().st_mode & 0o111


def test_a_task_without_repository_or_hidden_tests_says_so(tmp_path: Path) -> None:
    make_task(tmp_path / "one")
    assert read_task_folder(tmp_path / "one").problem == "no_repository"
    files = {"environment/repository/a.py": b""}
    write_task(tmp_path / "two", TaskConfig(), "Fix it", files)
    assert read_task_folder(tmp_path / "two").problem == "no_hidden_tests"


@pytest.mark.attack
@pytest.mark.parametrize(
    "name",
    [
        "tests/files/tests/test_a.py", "tests/files/tests", "tests/files", "tests",
        "solution/fix.patch", "solution", "environment/repository", "environment",
        "environment/repository.bundle",
    ],
)  # fmt: skip
def test_a_symbolic_link_in_a_task_is_not_followed(tmp_path: Path, name: str) -> None:
    """A task from outside names a file or folder of this machine as its hidden test, its fix or its
    repository: it is not read."""
    folder = tmp_path / "one"
    make_task(folder, **{"environment/repository/a.py": "", "solution/fix.patch": "x"})
    # What the link leads to has all that is looked for there.
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if (folder / name).exists():
        (folder / name).rename(tmp_path / "private")
    else:
        (tmp_path / "private").write_text("x")
    (folder / name).symlink_to(tmp_path / "private")
    with pytest.raises(UsageError, match="is a symbolic link"):
        read_everything(folder, tmp_path / "repository.git")


def read_everything(folder: Path, repository: Path) -> None:
    task = read_task_folder(folder)
    task.hidden_files()
    task.solution()
    open_task_repository(task, repository)


@pytest.mark.attack
@pytest.mark.parametrize(
    "image", ["resolver-prepared:0123456789ab", f"sha256:{'0' * 64}", "a\nRUN evil"]
)
def test_a_task_can_t_name_an_image_that_only_the_engine_has(image: str) -> None:
    """A task from outside names a kept image of a repository, or a line of a Dockerfile, as its
    image: it is refused."""
    with pytest.raises(UsageError, match=r"task.toml: environment.docker_image: "):
        parse_task_config(f"[environment]\ndocker_image = {json.dumps(image)}\n")


def test_a_suite_is_a_task_or_a_folder_of_tasks(tmp_path: Path) -> None:
    make_task(tmp_path / "b")
    make_task(tmp_path / "a")
    assert [task.id for task in read_suite(tmp_path)] == ["a", "b"]
    assert [task.id for task in read_suite(tmp_path / "b")] == ["b"]
    with pytest.raises(UsageError, match="has no tasks"):
        read_suite(tmp_path / "nothing")
