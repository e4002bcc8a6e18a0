"""Tests of fetching what GitHub publishes: pinned, cached, and required in CI."""

import base64
import hashlib
import tarfile
from pathlib import Path

import pytest

from tests.parts import published as source


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An npm package's archive with one file."""
    content = tmp_path / "description.json"
    content.write_text("{}")
    archive = tmp_path / "package.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(content, "package/description.json")
    return archive


def pinned(integrity: str) -> source.PublishedFile:
    return source.PublishedFile("./nowhere", "1.0.0", integrity, "package/description.json")


def test_one_file_of_the_pinned_package_is_kept(package: Path, tmp_path: Path) -> None:
    digest = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    place = tmp_path / "kept.json"
    source.keep(pinned(f"sha512-{digest}"), package, place)
    assert place.read_text() == "{}"


def test_a_package_that_is_not_what_was_pinned_is_not_used(package: Path, tmp_path: Path) -> None:
    place = tmp_path / "kept.json"
    with pytest.raises(source.Unavailable, match="not what was pinned"):
        source.keep(pinned("sha512-other"), package, place)
    assert not place.exists()


def test_an_unavailable_package_skips_a_test_and_fails_it_in_ci(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="npm"):
        source.require(pinned("sha512-x"), cache=tmp_path, skip=False)
    with pytest.raises(pytest.skip.Exception, match="npm"):
        source.require(pinned("sha512-x"), cache=tmp_path, skip=True)


def test_a_failed_download_is_remembered(tmp_path: Path) -> None:
    with pytest.raises(source.Unavailable) as first:
        source.published(pinned("sha512-y"), cache=tmp_path)
    with pytest.raises(source.Unavailable) as second:
        source.published(pinned("sha512-y"), cache=tmp_path)
    assert first.value is second.value
