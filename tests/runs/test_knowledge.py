"""Tests of what a run knows before it starts: history, and skills of the owner's repositories."""

from pathlib import Path

import pytest

from resolver.config.settings import load_settings
from resolver.git.git import Credential
from resolver.git.workspace import Workspace
from resolver.models.run import Trigger
from resolver.runs.wiring.knowledge import read_knowledge
from tests.parts.github import GitHubServer
from tests.runs.test_slash_commands import trigger

SKILL = {".agents/skills/house.md": "---\ntriggers: [subtracts]\n---\nHOUSE-WORD"}


@pytest.mark.parametrize("says_so", [True, False])
@pytest.mark.parametrize("is_private", [True, False])
def test_private_skills_are_for_private_repositories(
    github: GitHubServer, tmp_path: Path, *, is_private: bool, says_so: bool
) -> None:
    """says_so: GitHub says if the repository is public; otherwise git asks for it without a
    token."""
    github.create_repository("octo/calc", {"calc.py": "x = 1\n"}, private=is_private)
    github.create_repository("octo/.github", SKILL, private=True)
    for repository in ("octo/calc", "octo/.github"):
        github.grant("resolver-bot", repository, "read")
    settings = load_settings({}, {"GITHUB_SERVER_URL": github.server_url}, {})
    token = github.token_for("resolver-bot", "octo/calc", "octo/.github")
    credential = Credential(github.server_url, token)
    workspace = Workspace.clone(
        settings.clone_url("octo/calc"), tmp_path / "clone", credential=credential
    )
    known = read_knowledge(
        workspace,
        settings,
        on("octo/calc"),
        credential,
        tmp_path,
        lambda: not is_private if says_so else None,
    )
    assert (known.library.skill("house") is not None) is is_private


def test_skills_of_the_owners_two_repositories_are_named_by_them_and_the_nearest_wins(
    github: GitHubServer, tmp_path: Path
) -> None:
    own = {".agents/skills/adding.md": "---\ntriggers: [subtracts]\n---\nOWN-WORD"}
    shared = {**SKILL, ".agents/skills/adding.md": "---\ntriggers: [subtracts]\n---\nSHARED-WORD"}
    sums = {"skills/sums/SKILL.md": "---\nname: sums\ntriggers: [subtracts]\n---\nSUMS-WORD"}
    github.create_repository("octo/calc", own)
    github.create_repository("octo/.github", {**shared, "AGENTS.md": "SHARED-INSTRUCTIONS"})
    github.create_repository("octo/.agents", sums)
    settings = load_settings({}, {"GITHUB_SERVER_URL": github.server_url}, {})
    workspace = Workspace.clone(settings.clone_url("octo/calc"), tmp_path / "clone")
    library = read_knowledge(
        workspace, settings, on("octo/calc"), None, tmp_path, lambda: True
    ).library
    found = {name: library.skill(name) for name in ("house", "sums", "adding")}
    assert {name: skill and (skill.body, skill.source) for name, skill in found.items()} == {
        "house": ("HOUSE-WORD", "octo/.github: .agents/skills/house.md"),
        "sums": ("SUMS-WORD", "octo/.agents: skills/sums/SKILL.md"),
        "adding": ("OWN-WORD", ".agents/skills/adding.md"),
    }
    assert library.always == ()


def on(repository: str) -> Trigger:
    return trigger().model_copy(update={"repository": repository})
