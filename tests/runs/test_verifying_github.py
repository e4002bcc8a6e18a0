"""Whole runs whose verification GitHub shows at the published commit."""

from resolver.github.comments import check_run
from tests.parts.github import GitHubServer
from tests.parts.model_endpoint import ModelEndpoint
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.test_github import REPOSITORY, Scenario
from tests.runs.test_verifying import BREAK, FILES, FIX, OLD


def test_a_broken_test_is_annotated_on_the_published_commit(
    github: GitHubServer, command_line: CommandLine, model_endpoint: ModelEndpoint
) -> None:
    """A whole run, because what a check reports has to reach GitHub's interface for check runs."""
    scenario = Scenario(github, command_line, model_endpoint)
    github.commit(REPOSITORY, "main", FILES)
    app = github.add_app("our-agent", REPOSITORY)
    command_line.environment.pop("GITHUB_TOKEN")
    scenario.endpoint.script(bash(FIX), bash(BREAK), finish("Add instead of subtract"))
    done = scenario.action(
        github.event_issue_comment(scenario.mention()),
        RESOLVER_APP_ID=str(app.id),
        RESOLVER_APP_PRIVATE_KEY=app.private_key,
        RESOLVER_VERIFY="true",
        RESOLVER_VERIFICATION_ROUNDS="0",
    )
    assert done.exit_code == 0, done.stderr
    [branch] = scenario.branches()
    published = scenario.repository.git.text("rev-parse", branch).strip()
    [run] = scenario.repository.check_runs
    assert (run.name, run.head_sha) == (check_run.NAME, published)
    assert (run.values["status"], run.values["conclusion"]) == ("completed", "failure")
    output = run.values["output"]
    assert output["title"] == "Not verified" and OLD in output["summary"]
    [note] = output["annotations"]
    assert (note["path"], note["start_line"]) == ("tests/test_calc.py", 8)
    assert note["title"] == OLD and "9 != 6" in note["message"]
