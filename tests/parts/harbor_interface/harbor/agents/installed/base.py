"""The base class of agents that are installed in the container of a task."""

import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any


def with_prompt_template(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


class BaseInstalledAgent:
    def __init__(
        self,
        logs_dir: Path,
        model_name: str | None = None,
        extra_env: dict[str, str] | None = None,
        environment_logs_dir: PurePosixPath | None = None,
    ) -> None:
        self.logs_dir, self.model_name = logs_dir, model_name
        self.environment_logs_dir = environment_logs_dir or PurePosixPath("/logs/agent")
        self._extra_env = extra_env or {}

    def _get_env(self, key: str) -> str | None:
        return self._extra_env.get(key) or os.environ.get(key)

    async def ensure_system_dependencies(self, environment: Any, names: tuple[str, ...]) -> None:
        for name in names:
            await environment.exec(f"command -v {name}", user="root")

    async def exec_as_root(self, environment: Any, command: str) -> None:
        await environment.exec(command, user="root")

    async def exec_as_agent(self, environment: Any, command: str, env: dict[str, str]) -> None:
        await environment.exec(command, env=env)
