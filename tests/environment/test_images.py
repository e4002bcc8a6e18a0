"""Tests of the sandbox's image: named, or described by the repository."""

import pytest

from resolver.errors import UsageError
from resolver.runtime.environment.images import requested_image


def test_an_image_name_is_unchanged() -> None:
    assert requested_image("python:3.12", {}.get) == "python:3.12"


@pytest.mark.parametrize(
    ("files", "said"),
    [({}, "there is none of"), ({".devcontainer.json": b"{}"}, "names no image")],
)
def test_a_devcontainer_without_an_image_is_reported(files: dict[str, bytes], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        requested_image("devcontainer", files.get)


@pytest.mark.parametrize("image", ["sha256:395f", "resolver-prepared:1", "not an image"])
def test_a_devcontainer_names_a_registry_s_image(image: str) -> None:
    files = {".devcontainer.json": f'{{"image": "{image}"}}'.encode()}
    with pytest.raises(UsageError, match=r"\.devcontainer\.json, image"):
        requested_image("devcontainer", files.get)
    assert requested_image("devcontainer", {".devcontainer.json": b'{"image": "ab"}'}.get) == (
        "ab:latest"
    )
