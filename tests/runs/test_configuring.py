"""What a run reads from its clone before it starts to work."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resolver.config.settings import load_settings
from resolver.git.workspace import Workspace
from resolver.github.github_forge import GitHubForge
from resolver.models.pull_request import OpenPullRequest
from resolver.models.run import Publication, Trigger
from resolver.runs.common import environment_secrets
from resolver.runs.prepare import (
    _at_starting_branch,
    _clone_workspace,
    clone,
    configure,
    find_finished_work,
    find_pushed_work,
)
from resolver.runs.stages import AcceptedRun, PreparedRun, PublishedRun, RunRequest, RunTask
from resolver.runs.wiring.knowledge import read_skills
from tests.github import reports
from tests.parts.github import GitHubServer
from tests.parts.memory_forge import MemoryForge
from tests.parts.runs import git, make_checkout
from tests.runs.plain_values import PULL, prepared_run, run_log, run_request
from tests.trace import sample

NOTES = "---\ndescription: Writes notes.\nmodel: openai/small\n---\nWrite notes.\n"


def prepared(folder: Path, files: dict[str, str], **settings: str) -> PreparedRun:
    """Configure a request in an issue, as it is configured on GitHub, from a local repository."""
    checkout = make_checkout(folder / "calc", {"calc.py": "x = 1\n", **files})
    git(checkout, "branch", "develop")
    environment = {f"RESOLVER_{name.upper()}": value for name, value in settings.items()}
    request = run_request(folder, **environment)
    task = reports.task(request.trigger, source=str(checkout), base_branch="")
    run_task = RunTask(request, task)
    cloned = clone(run_task, request.load_settings({}), folder / "clone.git")
    forge = MemoryForge(folder / "issue.md", "")
    return configure(AcceptedRun(), run_task, *cloned, forge, folder)


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


def test_a_model_that_the_operator_has_not_named_is_not_the_agents(tmp_path: Path) -> None:
    files = {".agents/agents/notes.md": NOTES}
    [agent] = prepared(tmp_path / "1", files).agents.agents
    assert (agent.model, agent.denied_model) == (None, "openai/small")
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
        made = configure(AcceptedRun(), run_task, *cloned, forge, tmp_path)
    assert made.settings.agent == "counter"


def test_the_path_of_a_key_is_no_secret_and_the_key_is(tmp_path: Path) -> None:
    (tmp_path / "app.pem").write_text("pem")
    path, key = str(tmp_path / "app.pem"), "sk-canary-2f9a1c"
    environment = {"RESOLVER_APP_PRIVATE_KEY": path, "OPENAI_API_KEY": key}
    assert environment_secrets(environment) == (key,)


NAME = "octo/demo"
BRANCH = "agent/issue-12-it-breaks"


class FollowingForge(MemoryForge):
    """A forge with this open pull request of Resolver for the issue."""

    def __init__(self, pull: OpenPullRequest | None) -> None:
        super().__init__(Path("issue.md"), "main")
        self._pull = pull

    def of_issue(self, trigger: Trigger, prefix: str) -> OpenPullRequest | None:  # type: ignore[override]
        assert prefix == "agent/issue-12-"
        return self._pull


class Repository:
    """A repository with an open pull request whose branch got a commit after the request."""

    def __init__(self, github: GitHubServer, folder: Path) -> None:
        github.create_repository(NAME, {"calc.py": "1\n"})
        github.commit(NAME, "next", {"calc.py": "next\n"})
        head = github.commit(NAME, BRANCH, {"calc.py": "2\n"})
        number = github.create_pull(NAME, BRANCH, "Fix it", "").number
        github.commit(NAME, BRANCH, {"late.py": "1\n"})
        self.pull = OpenPullRequest(
            number=number,
            title="Fix it",
            branch=BRANCH,
            head=head,
            base_branch="main",
            moved="it was pushed to after the request",
        )
        url = f"{github.server_url}/{NAME}.git"
        workspace = Workspace.clone(url, folder / "clone.git", branch="main")
        prepared = prepared_run(run_request(folder))
        self.prepared = replace(prepared, workspace=workspace)
        self.main = workspace.base

    def started(self, pull: OpenPullRequest | None, prepared: PreparedRun) -> PreparedRun:
        return _at_starting_branch(prepared, FollowingForge(pull))


@pytest.fixture
def repository(github: GitHubServer, tmp_path: Path) -> Repository:
    return Repository(github, tmp_path)


def test_it_starts_from_the_open_pull_request_as_it_was_at_the_request(
    repository: Repository,
) -> None:
    started = repository.started(repository.pull, repository.prepared)
    workspace, task = started.workspace, started.task
    assert (workspace.base, workspace.branch) == (repository.pull.head, BRANCH)
    assert workspace.read("calc.py") == b"2\n" and workspace.read("late.py") is None
    assert workspace.trusted.base == repository.main, "settings come from the default branch"
    assert (task.follows, task.base_branch) == (repository.pull, "main")
    assert task.left_out[-1] == (
        f"pull request #{repository.pull.number}: it was pushed to after the request"
    )


def test_without_one_it_starts_from_the_branch_of_the_settings(repository: Repository) -> None:
    prepared = repository.prepared
    assert repository.started(None, prepared) == prepared
    settings = prepared.settings.model_copy(update={"base_branch": "next"})
    started = repository.started(None, replace(prepared, settings=settings))
    assert started.workspace.read("calc.py") == b"next\n"
    assert (started.task.base_branch, started.task.follows) == ("next", None)


def test_a_pull_request_from_the_branch_of_the_settings_is_not_added_to(
    repository: Repository,
) -> None:
    prepared = repository.prepared
    settings = prepared.settings.model_copy(update={"base_branch": BRANCH})
    started = repository.started(repository.pull, replace(prepared, settings=settings))
    assert started.task.follows is None and started.task.base_branch == BRANCH


PUBLISHED = Publication(branch="agent/12", commit="d" * 40, pull_request=PULL)


class EarlierWorkForge(MemoryForge):
    """A forge on which an earlier run with the same key has published something."""

    def __init__(self, folder: Path, publication: Publication | None) -> None:
        super().__init__(folder / "issue.md", "main")
        self._publication = publication

    def find_publication(self, trigger: Trigger) -> Publication | None:
        return self._publication

    def pushed(self, trigger: Trigger, run: str, prefix: str) -> Any:
        return self._publication


ADDED = PUBLISHED.model_copy(update={"how": "added"})


@pytest.mark.parametrize(
    ("find", "publication", "kind", "expected"),
    [
        (find_finished_work, PUBLISHED, "new", "earlier"),
        (find_finished_work, PUBLISHED, "resumed", "its own"),
        # A commit on an existing branch is found again when it is pushed.
        (find_finished_work, ADDED, "resumed", None),
        (find_finished_work, PUBLISHED, "dry", None),
        (find_finished_work, None, "new", None),
        (find_pushed_work, ADDED, "new", "earlier"),
        (find_pushed_work, ADDED, "resumed", None),
        (find_pushed_work, ADDED, "dry", None),
    ],
)
def test_published_work_is_taken_over_and_a_resumed_run_publishes_what_is_missing(
    tmp_path: Path,
    find: Callable[[RunRequest, GitHubForge], PublishedRun | None],
    publication: Publication | None,
    kind: str,
    expected: str | None,
) -> None:
    request = replace(run_request(tmp_path), resume=kind == "resumed", publish=kind != "dry")
    if request.resume:
        request.output.log.write_text("{}\n")
    found = find(request, EarlierWorkForge(tmp_path, publication))
    assert (found is None) is (expected is None)
    if found is not None:
        assert found.publication.repeated is (expected == "earlier")


SKILL = {".agents/skills/house.md": "---\ntriggers: [subtracts]\n---\nHOUSE-WORD"}


def test_skills_of_the_owners_two_repositories_are_named_by_them_and_the_nearest_wins(
    github: GitHubServer, tmp_path: Path
) -> None:
    own = {".agents/skills/adding.md": "---\ntriggers: [subtracts]\n---\nOWN-WORD"}
    shared = {**SKILL, ".agents/skills/adding.md": "---\ntriggers: [subtracts]\n---\nSHARED-WORD"}
    sums = {"skills/sums/SKILL.md": "---\nname: sums\ntriggers: [subtracts]\n---\nSUMS-WORD"}
    github.create_repository("octo/calc", own)
    github.create_repository("octo/.github", {**shared, "AGENTS.md": "SHARED-INSTRUCTIONS"})
    github.create_repository("octo/.agents", sums)
    settings = load_settings({}, {"GITHUB_SERVER_URL": github.server_url}, {})
    workspace = Workspace.clone(settings.clone_url("octo/calc"), tmp_path / "clone")
    library = read_skills(
        workspace,
        settings,
        reports.trigger(repository="octo/calc"),
        None,
        tmp_path,
        (".agents", ".github"),
    )
    found = {name: library.skill(name) for name in ("house", "sums", "adding")}
    assert {name: skill and (skill.body, skill.source) for name, skill in found.items()} == {
        "house": ("HOUSE-WORD", "octo/.github: .agents/skills/house.md"),
        "sums": ("SUMS-WORD", "octo/.agents: skills/sums/SKILL.md"),
        "adding": ("OWN-WORD", ".agents/skills/adding.md"),
    }
    assert library.always == []
