"""Tests of reading and writing tasks in Harbor's format."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import UsageError
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
def test_a_symbolic_link_in_a_task_is_not_followed(tmp_path: Path) -> None:
    """A task from outside names a file of this machine as its hidden test: it is not read."""
    make_task(tmp_path / "one", **{"environment/repository/a.py": ""})
    hidden = tmp_path / "one/tests/files/tests"
    (hidden / "test_a.py").unlink()
    (hidden / "test_a.py").symlink_to("/etc/passwd")
    with pytest.raises(UsageError, match="is a symbolic link"):
        read_task_folder(tmp_path / "one").hidden_files()
    (hidden / "test_a.py").unlink()
    hidden.rmdir()
    hidden.symlink_to("/etc")
    with pytest.raises(UsageError, match="is a symbolic link"):
        read_task_folder(tmp_path / "one").hidden_files()


def test_a_suite_is_a_task_or_a_folder_of_tasks(tmp_path: Path) -> None:
    make_task(tmp_path / "b")
    make_task(tmp_path / "a")
    assert [task.id for task in read_suite(tmp_path)] == ["a", "b"]
    assert [task.id for task in read_suite(tmp_path / "b")] == ["b"]
    with pytest.raises(UsageError, match="has no tasks"):
        read_suite(tmp_path / "nothing")
