"""Lets Harbor run Resolver as an installed agent, on any task in Harbor's format:

    harbor run --agent resolver.evaluation.harbor_agent:ResolverAgent --model MODEL \\
        --ak package=REQUIREMENT --path SUITE

Only Harbor imports this module, so Resolver does not depend on it. Resolver runs in the container
of the task with the local runtime. Its log becomes the trajectory in ATIF that Harbor keeps.

Source: https://www.harborframework.com/docs/agents
"""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, with_prompt_template

from resolver.config.templates import render

INSTALL_FOLDER = "/opt/resolver-agent"
UPLOAD_FOLDER = "/tmp"  # noqa: S108 - in the container of the task

FORWARDED = ("LLM_API_KEY", "LLM_BASE_URL", "AZURE_API_VERSION", "AWS_REGION_NAME")
"""Variables of Harbor's process that Resolver gets, and those that start with `RESOLVER_`."""


class ResolverAgent(BaseInstalledAgent):
    """Resolver as an agent of Harbor.

    package: what pip installs in the container: a requirement, or the path of a wheel on this
    machine. An image that has the command `resolver` needs none.
    """

    capabilities = AgentCapabilities(atif=True)

    def __init__(self, *args: Any, package: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._package = package

    @staticmethod
    def name() -> str:
        """Return the name of the agent in Harbor's results."""
        return "resolver"

    def get_version_command(self) -> str:
        """Return the command whose output is the agent's version."""
        return f"PATH={INSTALL_FOLDER}/bin:$PATH resolver --version"

    def parse_version(self, stdout: str) -> str:
        """Return the version in the output of that command."""
        return (stdout.removeprefix("resolver ").split() or [""])[0]

    async def install(self, environment: Any) -> None:
        """Install git and Resolver in the container."""
        await self.ensure_system_dependencies(environment, ("git",))
        package = self._package
        if package.endswith(".whl") and Path(package).is_file():
            remote = f"{UPLOAD_FOLDER}/{Path(package).name}"
            await environment.upload_file(Path(package), remote)
            package = remote
        script = _render_script("install", package=package)
        await self.exec_as_root(environment, command=script)

    @with_prompt_template
    async def run(self, instruction: str, environment: Any, context: Any) -> None:  # noqa: ARG002
        """Resolve the task in the container's working directory."""
        logs = str(self.environment_logs_dir)
        script = _render_script("run", instruction=instruction, logs=logs)
        await self.exec_as_agent(environment, command=script, env=self._variables())

    def populate_context_post_run(self, context: Any) -> None:
        """Report tokens and cost of the run, as its trajectory has them."""
        try:
            trajectory = json.loads((self.logs_dir / "trajectory.json").read_bytes())
        except (OSError, ValueError):
            return
        context.n_input_tokens = _total(trajectory, "total_prompt_tokens")
        context.n_cache_tokens = _total(trajectory, "total_cached_tokens")
        context.n_output_tokens = _total(trajectory, "total_completion_tokens")
        # In ATIF, the cost of a trajectory includes that of its subagents; the tokens don't.
        context.cost_usd = trajectory["final_metrics"].get("total_cost_usd")

    def _variables(self) -> dict[str, str]:
        """Return the environment of Resolver: its model, its settings and its key."""
        names = {*FORWARDED, *(name for name in os.environ if name.startswith("RESOLVER_"))}
        found = {name: self._get_env(name) for name in sorted(names)}
        model = self.model_name or self._get_env("LLM_MODEL") or ""
        provider = model.partition("/")[0].upper().replace("-", "_")
        key = found["LLM_API_KEY"] or self._get_env(f"{provider}_API_KEY")
        return {
            # The container is the sandbox that Harbor gave; there is no engine in it.
            "RESOLVER_RUNTIME": "local",
            **{name: value for name, value in found.items() if value},
            "LLM_MODEL": model,
            **({"LLM_API_KEY": key} if key else {}),
        }


def _total(trajectory: dict[str, Any], name: str) -> int:
    """Return a number of tokens of a trajectory and of its subagents."""
    nested = trajectory.get("subagent_trajectories", ())
    return int(trajectory["final_metrics"][name]) + sum(
        _total(subagent, name) for subagent in nested
    )


def _render_script(name: str, **values: str) -> str:
    """Return a script. values: texts of others; they are quoted for the shell."""
    quoted = {key: shlex.quote(value) for key, value in values.items()}
    return render(f"eval/harbor_{name}.sh.j2", folder=INSTALL_FOLDER, **quoted)
