"""`action_address`: which Action a workflow that `resolver init` writes takes."""

from pathlib import Path

import pytest

from resolver import __version__
from resolver.cli.action_address import action_address, address_of_release
from resolver.errors import UsageError
from tests.parts.runs import git, make_checkout


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return the package's folder in a checkout with one commit."""
    return make_checkout(tmp_path / "source", {"resolver/__init__.py": ""}) / "resolver"


def publish(package: Path, url: str) -> str:
    """Make HEAD the tip of the origin's default branch, as after a clone, and return it."""
    git(package, "remote", "add", "origin", url)
    git(package, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(package, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    return git(package, "rev-parse", "HEAD")


def test_a_checkout_is_known_by_its_origin_and_the_newest_pushed_commit(package: Path) -> None:
    pushed = publish(package, "git@github.com:acme/resolver.git")
    git(package, "commit", "-q", "--allow-empty", "-m", "Not pushed")
    assert action_address(None, {}, package) == f"acme/resolver@{pushed}"


def test_the_action_of_a_job_is_known(package: Path) -> None:
    job = {"GITHUB_ACTION_REPOSITORY": "acme/resolver", "GITHUB_ACTION_REF": "v0.1.0"}
    assert action_address(None, job, package) == "acme/resolver@v0.1.0"


@pytest.mark.parametrize("url", ["", "/srv/git/resolver"])
def test_an_unknown_address_is_a_clear_error(package: Path, url: str) -> None:
    if url:
        publish(package, url)
    other = {"GITHUB_ACTION_REPOSITORY": "actions/setup-python", "GITHUB_ACTION_REF": "v5"}
    with pytest.raises(UsageError) as error:
        action_address(None, other, package)
    assert "--action OWNER/resolver@REF" in error.value.next_step


def test_an_installed_package_is_not_taken_for_the_checkout_around_it(package: Path) -> None:
    publish(package, "https://github.com/acme/shop")
    installed = package.parent / ".venv/lib/resolver"
    with pytest.raises(UsageError, match="not known"):
        action_address(None, {}, installed)


def test_the_package_of_a_release_names_its_repository_and_tag() -> None:
    urls = ["Issues, https://github.com/acme/other", "Repository, https://github.com/acme/resolver"]
    assert address_of_release(urls) == f"acme/resolver@v{__version__}"
