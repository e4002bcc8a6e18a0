"""What a run on a local checkout imports before its first model request, and what only later."""

import json
import subprocess
import sys
from pathlib import Path

from tests.parts.runs import make_checkout

RUN = """
import json, os, sys
from pathlib import Path
from resolver.cli import resolve
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
result = run_pipeline(request, LocalForge(folder / "issue.md", "main"))
found = {"exit_code": result.exit_code, "before": sorted(before), "all": sorted(sys.modules)}
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
    "github",  # PyGithub, which takes as long as 70 modules of Resolver
}


def test_what_follows_the_work_or_needs_github_is_not_imported_before_the_first_request(
    tmp_path: Path,
) -> None:
    make_checkout(tmp_path / "calc", {"calc.py": "def add(a, b):\n    return a - b\n"})
    (tmp_path / "issue.md").write_text("# add() subtracts\n")
    (tmp_path / "script.yml").write_text(
        "- calls: [{execute_bash: {command: \"sed -i 's/a - b/a + b/' calc.py\"}}]\n"
        "- calls: [{finish: {message: Make add add, task_completed: 'true'}}]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    before = set(found["before"])
    assert found["exit_code"] == 0
    assert "resolver.controller.controller" in before
    assert before & (LATER | ONLY_ON_GITHUB) == set()
    assert set(found["all"]) >= LATER
