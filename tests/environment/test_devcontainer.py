"""Tests of devcontainer.json, as people and editors write it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import UsageError
from resolver.runtime.environment.plan import (
    FILES,
    MAX_CONTAINER_BYTES,
    DevContainer,
    read_devcontainer,
)


def reading(**files: bytes) -> Callable[[str], bytes | None]:
    return files.get


def parsed(text: str, path: str = FILES[0]) -> DevContainer:
    found = read_devcontainer({path: text.encode()}.get)
    assert found is not None
    return found


def test_comments_and_trailing_commas_are_read() -> None:
    found = parsed('// mine\n{"image": "debian:12", /* why */ "postCreateCommand": "make deps",}')
    assert (found.image, found.script) == ("debian:12", "make deps")


def test_a_file_that_takes_long_to_parse_is_refused() -> None:
    with pytest.raises(UsageError, match="more than 65536 bytes"):
        parsed('{"image": "debian:12"}' + " " * MAX_CONTAINER_BYTES)


def test_a_repository_may_have_no_devcontainer() -> None:
    assert read_devcontainer(reading()) is None


def test_the_folder_wins_over_the_file_in_the_root() -> None:
    files = {FILES[0]: b'{"image": "one"}', FILES[1]: b'{"image": "two"}'}
    found = read_devcontainer(files.get)
    assert found is not None
    assert found.image == "one"


def test_each_form_of_a_command_becomes_bash() -> None:
    text = '{"onCreateCommand": ["echo", "a b"], "postCreateCommand": {"x": "one", "y": ["two"]}}'
    assert parsed(text).script.splitlines() == ["echo 'a b'", "one", "two"]


def test_no_local_environment_variable_is_inserted() -> None:
    text = '{"image": "i:${localEnv:PATH}${localEnv:NONE:default}${devcontainerId}"}'
    assert parsed(text).image == "i:default"
    assert parsed('{"postCreateCommand": "${containerWorkspaceFolder}/a"}').script == "./a"


def test_ignored_properties_are_named() -> None:
    assert parsed('{"image": "i", "features": {"x": {}}, "runArgs": []}').unused == ("features",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"image": 3}', "image"),
        ("[" * 10_000, "not JSON"),
    ],
)
def test_an_unreadable_file_is_named_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        parsed(text)
    assert FILES[0] in caught.value.what


@given(st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)))
def test_any_bytes_give_a_devcontainer_or_a_clear_error(data: bytes) -> None:
    try:
        read_devcontainer({FILES[0]: data}.get)
    except UsageError as error:
        assert FILES[0] in error.what
