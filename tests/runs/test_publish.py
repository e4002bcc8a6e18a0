"""`resolver publish`: what a run has made becomes public later, without a model or a sandbox.

Whole runs, because another process publishes what the first has left.
"""

from pathlib import Path

from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish, git, make_checkout

FILES = {"calc.py": "def add(a, b):\n    return a - b\n"}
NOWHERE = {"LLM_MODEL": "", "LLM_BASE_URL": "http://127.0.0.1:1", "RESOLVER_RUNTIME": "docker",
           "DOCKER_HOST": "tcp://127.0.0.1:1"}  # fmt: skip
"""Neither a model nor an engine answers."""


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".lock"}


def test_a_change_that_was_looked_at_is_published_as_it_was(
    command_line: CommandLine, model_endpoint: ModelEndpoint, tmp_path: Path
) -> None:
    """Whole runs, because the tree that one process has stored is what another one pushes."""
    checkout = make_checkout(tmp_path / "calc", FILES)
    model_endpoint.script(bash("sed -i 's/a - b/a + b/' calc.py"), finish("Make add add"))
    made = command_line.call_resolve(checkout, "--no-publish", "--draft", "never")
    assert (made.exit_code, git(checkout, "branch", "--list", "agent/*")) == (0, "")
    assert f"resolver publish {made.output}" in made.stderr
    kept = files_of(made.output)
    protected = {"RESOLVER_PROTECTED_PATHS": "calc.py"}
    failed = command_line.call("publish", made.output, **NOWHERE, **protected)
    assert failed.exit_code == 5, failed.stderr
    assert files_of(made.output) == kept
    done = command_line.call("publish", made.output, **NOWHERE)
    assert done.exit_code == 0, done.stderr
    assert not made.outcome["pull_request"]["draft"], "the settings are those of the run"
    [branch] = git(checkout, "branch", "--list", "agent/*", "--format=%(refname:short)").split()
    assert git(checkout, "rev-parse", f"{branch}^{{tree}}") == made.outcome["tree"]
    resumed = (made.output / "trace.md").read_text(encoding="utf-8")
    assert "the run had ended, and its change is to be published" in resumed
    assert "cut off" not in resumed
    again = command_line.call("publish", made.output, **NOWHERE)
    assert again.exit_code == 0 and "has already finished" in again.stderr
    assert len(model_endpoint.requests) == 2
