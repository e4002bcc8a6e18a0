"""Runs Resolver's adapter for Harbor on a task, as a trial of Harbor does. The container is a
folder of this machine. Executed in a process of its own, with Harbor's interface on its path.

usage: python harbor_trial.py TASK LOGS REPOSITORY
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

from resolver.evaluation.harbor_agent import ResolverAgent


class FolderEnvironment:
    """Executes commands in a folder, and fails if one of them does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def exec(self, command: str, env: dict[str, str] | None = None, user: str = "") -> None:
        given = {"env": {**os.environ, **env}} if env else {}
        options: dict[str, Any] = {"cwd": self.folder, "stdout": sys.stderr, **given}
        subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], check=True, **options)


async def run_trial(instruction: str, logs: Path, repository: Path) -> dict[str, Any]:
    agent = ResolverAgent(logs, environment_logs_dir=PurePosixPath(logs))
    environment, context = FolderEnvironment(repository), SimpleNamespace()
    await agent.install(environment)
    await agent.run(instruction, environment, context)
    agent.populate_context_post_run(context)
    return {"name": agent.name(), **vars(context)}


if __name__ == "__main__":
    task, logs, repository = map(Path, sys.argv[1:])
    text = (task / "instruction.md").read_text()
    print(json.dumps(asyncio.run(run_trial(text, logs, repository))))
