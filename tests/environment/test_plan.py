"""Tests of finding a repository's setup, and when it has to run again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.config.templates import render
from resolver.errors import UsageError
from resolver.runtime.environment.plan import COPILOT, SetupPlan, find_setup

STEPS = b"""
on: workflow_dispatch
jobs:
  copilot-setup-steps:
    runs-on: ubuntu-latest
    env: {LEVEL: job}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-node@v5
        with: {node-version: 22}
      - run: npm ci
        working-directory: web app
        env: {TOKEN: "${{ secrets.TOKEN }}", MODE: test}
      - name: second
        run: |
          make deps
          echo "A=b" >> "$GITHUB_ENV"
"""


@pytest.mark.parametrize(
    ("present", "source"),
    [
        (0, ".agents/setup.sh"),
        (1, ".openhands/setup.sh"),
        (2, ".github/workflows/copilot-setup-steps.yml"),
        (3, ".devcontainer/devcontainer.json"),
    ],
)
def test_the_first_existing_source_wins(present: int, source: str) -> None:
    places = {
        ".agents/setup.sh": b"one",
        ".openhands/setup.sh": b"two",
        COPILOT[0]: STEPS,
        ".devcontainer/devcontainer.json": b'{"postCreateCommand": "four"}',
    }
    files = dict(list(places.items())[present:])
    found = find_setup(files.get)
    assert found is not None
    assert found.source == source


def test_the_setting_wins_over_all_files() -> None:
    places = {".agents/setup.sh": b"x", ".github/resolver.yml": b"setup: make setup"}
    assert find_setup(places.get, "make setup") == SetupPlan(".github/resolver.yml", "make setup")


@pytest.mark.parametrize("repository", [None, b"setup: make other", b"[1]", b"a: b: c"])
def test_the_operators_setup_is_distinguished_from_the_repositorys(
    repository: bytes | None,
) -> None:
    places = {".github/resolver.yml": repository, ".agents/setup.sh": b"x"}
    found = find_setup(places.get, "make setup")
    assert found == SetupPlan("RESOLVER_SETUP", "make setup", by_operator=True)
    assert render("run/setup.md.j2", plan=found).startswith("The operator's setup, from RESOLVER_")


def test_without_any_source_there_is_no_setup() -> None:
    assert find_setup({}.get, "  \n") is None
    assert find_setup({".devcontainer.json": b'{"image": "x"}'}.get) is None


def test_run_steps_keep_their_folder_and_their_order() -> None:
    found = find_setup({COPILOT[0]: STEPS}.get)
    assert found is not None
    assert "cd 'web app'\nnpm ci" in found.script
    assert found.script.index("npm ci") < found.script.index("make deps")
    uses, variables = found.left_out
    assert (uses, variables) == (
        "the step that uses actions/setup-node@v5",
        "the variables in `env`",
    )


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"jobs: {}", b"jobs: {copilot-setup-steps: 3}", b"\xff"]
)
def test_unreadable_steps_are_reported(text: bytes) -> None:
    with pytest.raises(UsageError, match="copilot-setup-steps"):
        find_setup({COPILOT[0]: text}.get)


@given(st.binary(max_size=200))
def test_any_steps_file_gives_a_plan_or_a_clear_error(data: bytes) -> None:
    try:
        find_setup({COPILOT[0]: data}.get)
    except UsageError as error:
        assert COPILOT[0] in error.what
