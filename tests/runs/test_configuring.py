"""What a run reads from its clone before it starts to work."""

from pathlib import Path

import pytest

from resolver.errors import WorkspaceError
from resolver.runs.common import environment_secrets
from resolver.runs.prepare import _clone_workspace, clone, configure
from resolver.runs.stages import AcceptedRun, PreparedRun, RunRequest, RunTask
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.parts.memory_forge import MemoryForge
from tests.parts.runs import git, make_checkout
from tests.runs.plain_values import run_log, run_request
from tests.trace import sample

NOTES = "---\ndescription: Writes notes.\nmodel: openai/small\n---\nWrite notes.\n"


def prepared(folder: Path, files: dict[str, str], **settings: str) -> PreparedRun:
    """Configure a request in an issue, as it is configured on GitHub, from a local repository."""
    checkout = make_checkout(folder / "calc", {"calc.py": "x = 1\n", **files})
    git(checkout, "branch", "develop")
    environment = {f"RESOLVER_{name.upper()}": value for name, value in settings.items()}
    return configured(run_request(folder, **environment), checkout, folder)


def configured(request: RunRequest, checkout: Path, folder: Path) -> PreparedRun:
    task = reports.task(request.trigger, source=str(checkout), base_branch="")
    settings = request.load_settings({})
    run_task = RunTask(request, task)
    cloned = clone(run_task, settings, folder / "clone.git")
    forge = MemoryForge(folder / "issue.md", "")
    return configure(AcceptedRun(), run_task, cloned, forge, folder)


def test_what_is_wrong_in_the_repositorys_files_becomes_a_warning(tmp_path: Path) -> None:
    made = prepared(
        tmp_path,
        {
            ".github/resolver.yml": "max_iterations: 7\n",
            ".agents/agents/bad.md": "---\ndescription: x\ntools: execute_bsh\n---\nDo it.\n",
            ".agents/skills/bad.md": "---\nname: bad\ntriggers: {x: y}\n---\nText",
        },
    )
    assert made.settings.max_iterations == 7
    agent, skill = made.warnings
    assert ".agents/agents/bad.md:3" in agent and ".agents/skills/bad.md:3" in skill


def test_a_missing_base_branch_ends_the_run_with_the_setting_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError) as raised:
        prepared(tmp_path, {".github/resolver.yml": "base_branch: nowhere\n"})
    assert "there is no branch nowhere" in raised.value.what
    assert "base_branch" in raised.value.what + raised.value.next_step


def test_a_model_that_the_operator_has_not_named_is_not_the_agents(tmp_path: Path) -> None:
    files = {".agents/agents/notes.md": NOTES}
    [agent] = prepared(tmp_path / "1", files).agents.agents
    assert (agent.model, agent.denied_model) == ("", "openai/small")
    [agent] = prepared(
        tmp_path / "2", files, model_options="{fallbacks: [openai/small]}"
    ).agents.agents
    assert agent.model == "openai/small"


def test_a_resumed_run_on_another_branch_trusts_the_files_of_the_default_branch(
    github: GitHubServer, tmp_path: Path
) -> None:
    """The commit that a log started from may be of any branch, whose settings do not count."""
    github.create_repository("octo/demo", {"trusted.txt": "of main\n"})
    base = github.commit("octo/demo", "develop", {"trusted.txt": "of develop\n"})
    request = run_request(tmp_path, GITHUB_SERVER_URL=github.server_url)
    settings = request.load_settings({})
    source = settings.clone_url("octo/demo")
    task = reports.task(request.trigger, source=source, base_branch="develop")
    workspace = _clone_workspace(
        RunTask(request, task, base=base), settings, tmp_path / "clone.git", None
    )
    assert workspace.base == base
    assert workspace.read("trusted.txt") == b"of develop\n"
    assert workspace.read_trusted("trusted.txt") == b"of main\n"


def test_a_resumed_run_has_the_agent_of_its_log_and_not_that_of_the_settings(
    tmp_path: Path,
) -> None:
    counter = "---\ndescription: Counts.\nread_only: true\n---\nCount.\n"
    checkout = make_checkout(tmp_path / "calc", {".agents/agents/counter.md": counter})
    request = run_request(tmp_path, RESOLVER_AGENT="CodeActAgent")
    task = reports.task(request.trigger, source=str(checkout), base_branch="")
    started = sample.started().model_copy(update={"agent": "counter", "task": task})
    with run_log(tmp_path / "events.jsonl") as log:
        log.stream.add(started)
        run_task = RunTask(request, task, log=log)
        cloned = clone(run_task, request.load_settings({}), tmp_path / "clone.git")
        forge = MemoryForge(tmp_path / "issue.md", "")
        made = configure(AcceptedRun(), run_task, cloned, forge, tmp_path)
    assert made.settings.agent == "counter"


def test_the_path_of_a_key_is_no_secret_and_the_key_is(tmp_path: Path) -> None:
    (tmp_path / "app.pem").write_text("pem")
    path, key = str(tmp_path / "app.pem"), "sk-canary-2f9a1c"
    environment = {"RESOLVER_APP_PRIVATE_KEY": path, "OPENAI_API_KEY": key}
    assert environment_secrets(environment) == (key,)
