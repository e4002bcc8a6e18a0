"""`resolver publish`: what a run has made becomes public later, without a model or a sandbox.

Whole runs, because another process publishes what the first has left.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout
from tests.runs.test_github import Scenario

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
NOWHERE = {"LLM_MODEL": "", "LLM_BASE_URL": "http://127.0.0.1:1", "RESOLVER_RUNTIME": "docker",
           "DOCKER_HOST": "tcp://127.0.0.1:1"}  # fmt: skip
"""Neither a model nor an engine answers."""


@pytest.fixture
def scenario(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> Iterator[Scenario]:
    return Scenario(github, command_line, model_endpoint)


def test_a_change_that_was_looked_at_is_published_as_it_was(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """Whole runs, because the tree that one process has stored is what another one pushes."""
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(bash("sed -i 's/a - b/a + b/' calc.py"), finish("Make add add"))
    made = command_line.resolve(checkout, "--no-publish")
    assert (made.exit_code, git(checkout, "branch", "--list", "agent/*")) == (0, "")
    assert f"resolver publish {made.output}" in made.stderr
    done = command_line.call("publish", made.output, **NOWHERE)
    assert done.exit_code == 0, done.stderr
    [branch] = git(checkout, "branch", "--list", "agent/*", "--format=%(refname:short)").split()
    assert git(checkout, "rev-parse", f"{branch}^{{tree}}") == made.outcome["tree"]
    resumed = (made.output / "trace.md").read_text(encoding="utf-8")
    assert "the run had ended, and its change is published" in resumed
    assert "cut off" not in resumed
    again = command_line.call("publish", made.output, **NOWHERE)
    assert again.exit_code == 0 and "has already finished" in again.stderr
    assert len(model_endpoint.requests) == 2


@pytest.mark.attack
def test_a_bundle_that_was_tampered_with_is_refused(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """The kept change of a run is damaged before it is published: refused."""
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(bash("sed -i 's/a - b/a + b/' calc.py"), finish("Make add add"))
    made = command_line.call_resolve(checkout, "--no-publish")
    subprocess.run(["truncate", "-s", "-20", made.output / "change.bundle"], check=True)
    done = command_line.call("publish", made.output, **NOWHERE)
    assert done.exit_code == 1
    assert git(checkout, "branch", "--list", "agent/*") == ""


def test_a_change_that_holds_a_secret_is_not_kept(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """A whole run, because the secret comes out of the sandbox in a change."""
    checkout = make_checkout(tmp_path / "calc", FILES)
    key = command_line.environment["LLM_API_KEY"]
    turned = f"print('{key[::-1]}'[::-1])"
    model_endpoint.script(bash(f'python3 -c "{turned}" > leak.txt'), finish("Leak"))
    made = command_line.call_resolve(checkout, "--no-publish")
    assert made.exit_code == 5
    assert not (made.output / "change.bundle").exists()
