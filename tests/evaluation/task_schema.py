"""Harbor's published schema of task.toml, and the execution of a task's scripts on this machine.

The schema is what `harbor task schema` of Harbor 0.26 prints.
"""

import json
import os
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMA = json.loads(Path(__file__).with_name("harbor-task-1.4.schema.json").read_text())

# Harbor ignores what it doesn't know; its linter does not.
for _part in (SCHEMA, *SCHEMA["$defs"].values()):
    if "properties" in _part:
        _part.setdefault("additionalProperties", False)


def check_task(folder: Path) -> dict[str, Any]:
    """Check the files of a task, and return its configuration."""
    config = tomllib.loads((folder / "task.toml").read_text())
    Draft202012Validator(SCHEMA).validate(config)
    assert config["schema_version"] == "1.4"
    assert (folder / "instruction.md").read_text().strip()
    assert (folder / "environment/Dockerfile").read_text().startswith(("FROM ", "# "))
    for script in ("tests/test.sh", "solution/solve.sh"):
        assert (folder / script).stat().st_mode & 0o111
    return config


def execute_script(
    script: Path, repository: Path, logs: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Execute a script of a task on a repository that is in another folder than the container's."""
    text = script.read_text().replace("/testbed", str(repository)).replace("/logs", str(logs))
    text = text.replace('$(dirname "$0")', str(script.parent))
    variables = {**os.environ, **(environment or {})}
    subprocess.run(["bash", "-c", text], env=variables, capture_output=True, check=True)


def reward_of(
    task: Path, repository: Path, logs: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Return what the task's verifier writes for the repository."""
    execute_script(task / "tests/test.sh", repository, logs, environment)
    return (logs / "verifier/reward.txt").read_text().strip()
