"""Tests of devcontainer.json, as people and editors write it."""

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


def parsed(text: str) -> DevContainer:
    found = read_devcontainer({FILES[0]: text.encode()}.get)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "image", "script"),
    [
        ('// mine\n{"image": "debian:12", /* why */ "postCreateCommand": "make deps",}',
         "debian:12", "make deps"),
        ('{"onCreateCommand": ["echo", "a b"], "postCreateCommand": {"x": "one", "y": ["two"]}}',
         None, "echo 'a b'\none\ntwo"),
        # No variable of this machine is inserted.
        ('{"image": "i:${localEnv:PATH}${localEnv:NONE:default}${devcontainerId}"}',
         "i:default", None),
        ('{"postCreateCommand": "${containerWorkspaceFolder}/a"}', None, "./a"),
    ],
)  # fmt: skip
def test_image_and_commands_are_read(text: str, image: str | None, script: str | None) -> None:
    assert parsed(text) == DevContainer(FILES[0], image, script)


def test_ignored_properties_are_named() -> None:
    assert parsed('{"image": "i", "features": {"x": {}}, "runArgs": []}').unused == ("features",)


def test_the_folder_wins_over_the_file_in_the_root() -> None:
    files = {FILES[0]: b'{"image": "one"}', FILES[1]: b'{"image": "two"}'}
    assert read_devcontainer(files.get) == DevContainer(FILES[0], "one")
    assert read_devcontainer({}.get) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"image": 3}', "image"),
        ("[" * 10_000, "not JSON"),
        # Parsing it would take long.
        ('{"image": "debian:12"}' + " " * MAX_CONTAINER_BYTES, "more than 65536 bytes"),
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
