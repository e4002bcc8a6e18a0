"""What a run imports before its first model request, only later, and never."""

import json
import subprocess
import sys
from pathlib import Path

from tests.parts.runs import make_checkout

RUN = """
import json, os, sys
from pathlib import Path
from resolver.cli import resolve
from resolver.config.startup import import_lazy_modules
from resolver.config.settings import load_settings
from resolver.events.lifecycle import ModelReplied
from resolver.events.stream import utc_now
from resolver.github.local_forge import LocalForge, local_trigger
from resolver.runs.common import open_host
from resolver.runs.output import Output
from resolver.runs.pipeline import run_pipeline
from resolver.runs.stages import RunRequest

folder, before = Path(sys.argv[1]), set()

def note(event):
    if isinstance(event, ModelReplied) and not before:
        before.update(sys.modules)

if sys.argv[2] == "server":
    from resolver.cli import worker
    import_lazy_modules()
environment = {
    "HOME": str(folder),
    "PATH": os.environ["PATH"],
    "LLM_MODEL": f"scripted:{folder / 'script.yml'}",
    "RESOLVER_RUNTIME": "local",
}
request = RunRequest(
    trigger=local_trigger(folder / "calc", run="1", login="ada", at=utc_now()),
    run="1",
    output=Output(folder / "output"),
    load_settings=lambda repository: load_settings({}, environment, repository),
    host=open_host(environment),
    progress=note,
)
start = set(sys.modules)
result = run_pipeline(request, LocalForge(folder / "issue.md", "main"))
found = {"start": start, "before": before, "all": set(sys.modules)}
found = {name: sorted(modules) for name, modules in found.items()}
found["exit_code"] = result.exit_code
(folder / "found.json").write_text(json.dumps(found))
"""

LATER = {
    "resolver.publishing.commit_builder",
    "resolver.publishing.pull_request",
    "resolver.publishing.update_branch",
    "resolver.github.comments.comment_text",
    "resolver.github.comments.pull_request_text",
    "resolver.runs.verify",
    "resolver.trace.html",
    "resolver.verification.verify",
    "resolver.verification.suspicious_code",
}
"""Modules with what follows the agent's work, each with many others that only it needs."""

ONLY_ON_GITHUB = {
    "resolver.github.github_forge",
    "resolver.github.client.access",
    "resolver.github.client.app",
    "resolver.github.events.parse",
    "resolver.runs.quotas.dashboard",
    "github",  # PyGithub, which takes as long as 70 modules of Resolver, and 5 MB
}

WEB = {"fastapi", "starlette"}
"""What only `resolver serve` needs, not `resolver worker`: 10 MB."""


def imported_by_a_run(folder: Path, where: str) -> dict[str, set[str]]:
    """The modules that a process has imported at the start of a run, before its first request to
    the model, and in the end. where: "command line" or "server"."""
    make_checkout(folder / "calc", {"calc.py": "def add(a, b):\n    return a - b\n"})
    (folder / "issue.md").write_text("# add() subtracts\n")
    (folder / "script.yml").write_text(
        "- calls: [{execute_bash: {command: \"sed -i 's/a - b/a + b/' calc.py\"}}]\n"
        "- calls: [{finish: {message: Make add add, task_completed: 'true'}}]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder), where], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((folder / "found.json").read_text())
    assert found.pop("exit_code") == 0
    return {name: set(modules) for name, modules in found.items()}


def test_what_follows_the_work_is_imported_after_the_first_request_and_pygithub_never(
    tmp_path: Path,
) -> None:
    """A whole run in a process of its own, because a module is imported once by each process."""
    found = imported_by_a_run(tmp_path, "command line")
    assert "resolver.controller.controller" in found["before"]
    assert found["before"] & LATER == set()
    assert found["all"] >= LATER
    assert found["all"] & ONLY_ON_GITHUB == set()


def test_a_run_on_a_server_imports_nothing_before_its_first_request(tmp_path: Path) -> None:
    """A whole run in a process of its own, because a module is imported once by each process."""
    found = imported_by_a_run(tmp_path, "server")
    assert found["start"] >= LATER | ONLY_ON_GITHUB | {"docker"}
    # Python imports a codec when a text is first read in it.
    imported = found["before"] - found["start"]
    assert {name for name in imported if not name.startswith("encodings.")} == set()
    assert found["all"] & WEB == set()


def test_the_action_does_not_import_what_follows_the_work_at_its_start() -> None:
    code = (
        "import json, sys, resolver.cli.action, resolver.github.github_forge;"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(json.loads(done.stdout))
    assert "resolver.runs.pipeline" in imported
    assert imported & {*LATER, "resolver.entrypoints.sweep_job"} == set()
