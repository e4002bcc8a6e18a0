"""Tests of which Action a workflow that `resolver init` writes uses."""

import json
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from resolver import __version__
from resolver.cli.agent_workflow import PLACEHOLDER, installed_from


def package(folder: Path, metadata: str = "", origin: object = None) -> Distribution:
    folder = folder / "resolver_agent.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Name: resolver-agent\n{metadata}")
    if origin is not None:
        (folder / "direct_url.json").write_text(json.dumps(origin))
    return Distribution.at(folder)


OURS = "Project-URL: Repository, https://github.com/{}/resolver\n"
GIT = {"url": "https://github.com/acme/resolver.git", "vcs_info": {"commit_id": "1a2b"}}
FOLDER = {"url": "file:///srv/resolver", "dir_info": {}}


@pytest.mark.parametrize(
    ("metadata", "origin", "address"),
    [
        ("", GIT, "acme/resolver@1a2b"),
        (OURS.format("acme"), None, f"acme/resolver@v{__version__}"),
        (OURS.format("OWNER"), None, PLACEHOLDER),
        (OURS.format("OWNER"), FOLDER, PLACEHOLDER),
    ],
    ids=["from git", "a release", "a branch", "a folder"],
)
def test_the_action_is_where_the_package_is_from(
    tmp_path: Path, metadata: str, origin: object, address: str
) -> None:
    assert installed_from(package(tmp_path, metadata, origin)) == address
