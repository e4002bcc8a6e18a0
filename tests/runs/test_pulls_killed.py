"""Runs on pull requests that are killed (SIGKILL) and resumed: one commit, one comment."""

from pathlib import Path
from typing import Any

import pytest

from tests.parts.github import GitHubServer
from tests.parts.killer import Killer
from tests.parts.model_endpoint import Answer, ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish

REPOSITORY = "octo/calc"
KILLED = -9
LINES = "".join(f"# line {n}\n" for n in range(1, 31))
SCRIPT = [bash("sed -i 's/# line 10$/# ten/' lines.py"), finish("Say ten")]


def next_answer(body: dict[str, Any]) -> Answer:
    return SCRIPT[sum(message["role"] == "assistant" for message in body["messages"])]


@pytest.fixture
def killer(
    command_line: CommandLine,
    github: GitHubServer,
    model_endpoint: ModelEndpoint,
    tmp_path: Path,
) -> Killer:
    model_endpoint.answer_with(next_answer)
    github.create_repository(REPOSITORY, {"lines.py": LINES})
    github.add_user("resolver-bot")
    github.grant("resolver-bot", REPOSITORY, "write")
    return Killer(
        tmp_path,
        {
            **command_line.environment,
            "GITHUB_TOKEN": github.token_for("resolver-bot", REPOSITORY),
            **github.addresses,
            "RESOLVER_PROGRESS_COMMENTS": "false",
        },
    )


def commits(github: GitHubServer, start: str) -> int:
    git = github.repository(REPOSITORY).git
    return int(git.text("rev-list", "--count", f"{start}..half"))


def test_a_run_killed_at_each_step_of_its_push_pushes_once_on_top_of_others(
    github: GitHubServer, killer: Killer, tmp_path: Path
) -> None:
    """Whole runs, because each is killed at another step that others can see."""
    head = github.commit(REPOSITORY, "half", {"half.py": "x = 1\n"}, "half", "mona")
    pull = github.create_pull(REPOSITORY, "half", "Add half", "", author="mona")
    output = tmp_path / "output"
    start = ("resolve", f"{REPOSITORY}#{pull.number}", "--output", output)
    resume = ("resolve", "--resume", output)
    assert killer.run(*start, audit="subprocess.Popen", word="'push'") == KILLED, killer.printed
    assert commits(github, head) == 0
    github.commit(REPOSITORY, "half", {"more.py": "x = 1\n"}, "more", "mona")
    comments = f"POST /api/v3/repos/{REPOSITORY}/issues/{pull.number}/comments "
    ended = killer.run(*resume, audit="http.client.send", word=comments)
    assert ended == KILLED, killer.printed
    assert commits(github, head) == 2
    assert killer.run(*resume) == 0, killer.printed
    assert commits(github, head) == 2
    comment = [c for c in pull.comments if c.author.login == "resolver-bot"]
    assert len(comment) == 1 and "Resolver pushed the commit" in comment[0].body
    assert github.repository(REPOSITORY).git.text("show", "half:lines.py").count("# ten") == 1
