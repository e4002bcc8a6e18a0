"""Tests of `resolver doctor OWNER/NAME`: permissions, obstacles, and whether CI starts."""

import os
from typing import Any

import pytest

from resolver.cli.main import run
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import App

NAME = "octo/demo"


def read_findings(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if line.startswith("         -> "):
            found[-1]["next_step"] = line.removeprefix("         -> ")
        else:
            mark, what = line[:9].strip(), line[9:]
            required = mark != "note"
            found.append(
                {"what": what, "good": mark == "ok", "required": required, "next_step": None}
            )
    return found


@pytest.fixture
def doctor(github: GitHubServer, capsys: pytest.CaptureFixture[str]) -> Any:
    """Examines the repository: the exit code, the findings that are not good, the words of all."""

    def call(token: str = "", **environment: str) -> tuple[int, dict[str, Any], list[str]]:
        given = {
            "DOCKER_HOST": "tcp://127.0.0.1:1",
            "PATH": os.environ["PATH"],
            "LLM_MODEL": "openai/x",
            "LLM_API_KEY": "k" * 20,
            "GITHUB_TOKEN": token,
            **github.addresses,
            **environment,
        }
        code = run(["doctor", NAME, "--runtime", "local"], given)
        found = read_findings(capsys.readouterr().out)
        bad = {f["what"]: f for f in found if not f["good"] and "Docker" not in f["what"]}
        assert all(f["next_step"] for f in bad.values()), bad
        return code, bad, [f["what"] for f in found]

    return call


def repository(github: GitHubServer, role: str = "write", **files: str) -> None:
    github.create_repository(NAME, {"README.md": "x\n", **files}, private=True)
    github.grant("mona", NAME, role)


def test_a_good_classic_token_is_enough(github: GitHubServer, doctor: Any) -> None:
    repository(github)
    code, bad, seen = doctor(github.token_for("mona", scopes=("repo", "workflow")))
    assert (code, bad) == (0, {})
    assert "account: mona" in seen
    assert "contents: write: allowed" in seen
    assert ".github/resolver.yml: not found, so the defaults apply" in seen


@pytest.mark.parametrize("lacking", ["contents", "pull_requests"])
def test_a_permission_that_a_fine_grained_token_lacks_is_reported(
    github: GitHubServer, doctor: Any, lacking: str
) -> None:
    repository(github)
    given = {"metadata": "read", "contents": "write", "pull_requests": "write", "issues": "write"}
    token = github.token_for("mona", permissions={**given, lacking: "read"})
    code, bad, _ = doctor(token)
    assert code == 1
    name = lacking.replace("_", "-")
    assert f"`{name}: write`" in bad[f"{name}: write: no"]["next_step"]


def test_a_broken_settings_file_is_reported(github: GitHubServer, doctor: Any) -> None:
    repository(github, **{".github/resolver.yml": "max_budget: many\n"})
    code, bad, _ = doctor(github.token_for("mona"))
    assert code == 1
    assert any(".github/resolver.yml:1, max_budget" in what for what in bad)


def test_actions_that_may_not_open_pull_requests_are_reported(
    github: GitHubServer, doctor: Any
) -> None:
    repository(github, "admin")
    github.repository(NAME).actions_may_create_pulls = False
    code, bad, _ = doctor(github.token_for("mona"))
    assert code == 0
    assert "Settings, Actions" in bad["Actions may open pull requests: no"]["next_step"]


def test_a_rule_in_the_way_is_reported(github: GitHubServer, doctor: Any) -> None:
    repository(github)
    github.repository(NAME).rules = [("agent/*", "required_signatures"), ("main", "creation")]
    code, bad, _ = doctor(github.token_for("mona"))
    assert code == 1
    [result] = [f for what, f in bad.items() if what.startswith("rules:")]
    assert "signed_commits: true" in result["next_step"]
    code, bad, _ = doctor(github.token_for("mona"), RESOLVER_SIGNED_COMMITS="true")
    assert code == 0, bad


def test_all_rules_of_a_renamed_repository_are_read(github: GitHubServer, doctor: Any) -> None:
    repository(github)
    token = github.token_for("mona")
    github.move_repository(NAME, "octo/renamed")
    assert doctor(token)[0] == 0
    [asked] = [request for request in github.requests if "/rules/" in request.path]
    assert asked.path.startswith("/repos/octo/renamed/") and asked.query == {"per_page": "100"}


def by_app(app: App) -> dict[str, str]:
    return {"RESOLVER_APP_ID": str(app.id), "RESOLVER_APP_PRIVATE_KEY": app.private_key}


def test_what_an_app_lacks_is_reported(github: GitHubServer, doctor: Any) -> None:
    repository(github)
    app = github.add_app("our-agent", NAME, permissions={"metadata": "read", "contents": "write"})
    code, bad, _ = doctor(**by_app(app))
    assert code == 1
    said = "\n".join(bad)
    assert "the App asks for what every run needs, but not issues: write, pull_requests" in said
    assert "the installation on octo/demo has what every run needs, but not issues" in said
    assert "checks: read" in said
    assert "events of the App: not pull_request" in said
