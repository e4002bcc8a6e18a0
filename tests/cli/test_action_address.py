"""Tests of which Action a workflow that `resolver init` writes uses."""

import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from resolver import __version__
from resolver.cli.agent_workflow import PLACEHOLDER, action_address, installed_from
from resolver.errors import UsageError


def package(folder: Path, metadata: str = "", origin: object = None) -> Distribution:
    folder = folder / "resolver_agent.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Name: resolver-agent\n{metadata}")
    if origin is not None:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    return Distribution.at(folder)


def test_a_package_from_git_names_its_commit(tmp_path: Path) -> None:
    origin = {"url": "https://github.com/acme/resolver.git", "vcs_info": {"commit_id": "1a2b"}}
    assert installed_from(package(tmp_path, origin=origin)) == "acme/resolver@1a2b"


def test_the_package_of_a_release_names_its_repository_and_tag(tmp_path: Path) -> None:
    urls = "Project-URL: Repository, https://github.com/{}/resolver\n"
    released = package(tmp_path, urls.format("acme"))
    assert installed_from(released) == f"acme/resolver@v{__version__}"


@pytest.mark.parametrize("origin", [None, {"url": "file:///srv/resolver", "dir_info": {}}])
def test_any_other_package_has_an_owner_to_replace(tmp_path: Path, origin: object) -> None:
    urls = "Project-URL: Repository, https://github.com/OWNER/resolver\n"
    assert installed_from(package(tmp_path, urls, origin)) == PLACEHOLDER


def test_an_address_without_a_ref_is_refused() -> None:
    with pytest.raises(UsageError, match="does not have the form"):
        action_address("octo/resolver")
