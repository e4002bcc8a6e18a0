"""Tests of scripts/release.sh with a real engine, registry and git server."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.parts.github import GitHubServer
from tests.parts.image_registry import ImageRegistry
from tests.parts.runs import git

ROOT = Path(__file__).parents[2]
DOCKERFILE = 'ARG BASE=none\nFROM ${BASE}\nENTRYPOINT ["/bin/sh", "-c", "echo 9.8.7"]\n'

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture
def checkout(tmp_path: Path, github: GitHubServer) -> Path:
    """A small repository like this one, as a job of octo/Resolver has checked it out."""
    files = {
        "action.yml": (ROOT / "action.yml").read_text(),
        "Dockerfile": DOCKERFILE,
        "deploy/browser.Dockerfile": DOCKERFILE,
        "resolver/__init__.py": '__version__ = "9.8.7"\n',
        "README.md": (
            "uses: OWNER/resolver@v9.8.7, ghcr.io/OWNER/resolver:9.8.7\n"
            "<!-- Only on branches: -->\n`OWNER` is an account.\n<!-- end -->\n"
        ),
        "pyproject.toml": 'Repository = "https://github.com/OWNER/resolver"\n',
    }
    github.create_repository("octo/Resolver", files)
    folder = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(github.repository("octo/Resolver").git_dir), str(folder))
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/release.sh", folder / "scripts")
    return folder


def release(
    checkout: Path, github: GitHubServer, registry: str, *arguments: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    token = github.token_for("octo")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(checkout.parent),
        "GITHUB_REPOSITORY": "octo/Resolver",
        "GITHUB_SERVER_URL": github.server_url,
        "REGISTRY": registry,
        "TOKEN": token,
        "ACTOR": "octo",
        "GITHUB_OUTPUT": str(checkout.parent / "outputs"),
        "DOCKER_BUILDKIT": "0",
        **variables,
        **{n: v for n, v in os.environ.items() if n == "DOCKER_HOST"},
    }
    done = subprocess.run(
        ["scripts/release.sh", *arguments],
        cwd=checkout, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert token not in done.stdout + done.stderr
    return done


def read_outputs(checkout: Path) -> dict[str, str]:
    """Return the outputs of the steps; of two with one name, that of the later step."""
    lines = (checkout.parent / "outputs").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_a_release_is_an_image_and_a_tag_whose_action_takes_it(
    checkout: Path,
    github: GitHubServer,
    registry: ImageRegistry,
) -> None:
    pushed, address = registry, registry.address
    (checkout / "Dockerfile").write_text(DOCKERFILE.replace("none", registry.name))
    done = release(checkout, github, address, "image", "9.8.7")
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = read_outputs(checkout)
    assert outputs["image"] == f"{address}/octo/resolver"
    [name] = [name for name in pushed.manifests if name.startswith("9.8.7-")]
    architecture = name.removeprefix("9.8.7-")
    assert pushed.manifests[name] == pushed.manifests[outputs["digest"]]
    manifest = json.loads(pushed.manifests[name])
    assert f"{name}: " in done.stdout and " MB, unpacked" in done.stdout
    labels = json.loads(pushed.blobs[manifest["config"]["digest"]])["config"]["Labels"]
    assert labels["org.opencontainers.image.base.name"] == registry.name
    assert labels["org.opencontainers.image.base.digest"] == (
        f"sha256:{hashlib.sha256(pushed.manifests['1']).hexdigest()}"
    )

    of_one_architecture = outputs["digest"]
    done = release(checkout, github, address, "index", "9.8.7", of_one_architecture)
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = read_outputs(checkout)
    assert pushed.manifests["9.8.7"] == pushed.manifests[outputs["digest"]]
    [entry] = json.loads(pushed.manifests["9.8.7"])["manifests"]
    assert entry["digest"] == of_one_architecture
    assert entry["platform"]["architecture"] == architecture
    bare = github.repository("octo/Resolver").git
    assert bare.text("tag") == "", "nothing is tagged before it is signed"

    done = release(checkout, github, address, "tag", "9.8.7", outputs["digest"])
    assert done.returncode == 0, done.stdout + done.stderr
    action = yaml.safe_load(bare.text("show", "v9.8.7:action.yml"))
    assert action["runs"]["image"] == f"docker://{outputs['image']}@{outputs['digest']}"
    changed = bare.text("diff", "--name-only", "main", "v9.8.7").split()
    assert changed == ["README.md", "action.yml", "pyproject.toml"]
    readme = bare.text("show", "v9.8.7:README.md")
    assert readme.strip() == f"uses: octo/Resolver@v9.8.7, {outputs['image']}:9.8.7"
    assert f'"{github.server_url}/octo/Resolver"' in bare.text("show", "v9.8.7:pyproject.toml")
    assert "Dockerfile" in bare.text("show", "main:action.yml"), "the branch has changed"

    for arguments in (
        ("package", "9.8.7"),
        ("browser", "9.8.7"),
        ("image", "9.8.7"),
        ("tag", "9.8.7", outputs["digest"]),
    ):
        again = release(checkout, github, address, *arguments)
        assert again.returncode == 2
        assert "v9.8.7 exists already" in again.stderr
