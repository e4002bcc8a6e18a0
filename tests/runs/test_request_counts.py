"""The number of requests to GitHub that each story takes, in a job of GitHub Actions.

Whole runs, because all stages share what was read: any of them could read it again. Not counted
are edits of progress and polls for comments, of which a run has as many as it is long.
"""

from typing import Any

import pytest

from tests.action.scenario import ACTIONS, permissions
from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, Ended, bash, finish
from tests.runs.test_github import FIX, REPOSITORY, SELDOM, SUMMARY, Scenario


class CountedScenario(Scenario):
    """`mona` maintains the repository. Resolver has the token of a job of GitHub Actions."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        github.add_user(ACTIONS, type="Bot")
        token = github.token_for(ACTIONS, REPOSITORY, permissions=permissions())
        line.environment["GITHUB_TOKEN"] = self.token = token
        self.events = Events(github, REPOSITORY)
        self.started_at = 0

    def says(self, issue: Issue, text: str) -> Ended:
        """The job of a comment of mona's."""
        self.github.advance(5)
        comment = self.github.add_comment(issue, text, "mona")
        return self.acts(self.github.event_issue_comment(comment), "issue_comment")

    def acts(self, event: dict[str, Any], name: str, **environment: str) -> Ended:
        """The job of an event. Only its requests are counted."""
        self.started_at = len(self.github.requests)
        done = self.action(event, name, **SELDOM, **environment)
        assert done.exit_code in {0, 3}, done.stdout + done.stderr
        return done

    def mention(self) -> Issue:
        self.endpoint.script(FIX, finish(SUMMARY))
        self.says(self.issue, "@agent please fix this")
        [pull] = self.pulls()
        return pull

    def mention_in_a_long_conversation(self) -> None:
        for number in range(41):
            self.github.add_comment(self.issue, f"It is also wrong in case {number}.", "zoe")
        self.mention()

    def question(self) -> None:
        self.endpoint.script(finish("It subtracts because of a typo."))
        self.says(self.issue, "@agent what does it do?")

    def review_of_three_threads(self) -> None:
        pull = self.mention()
        self.github.advance(5)
        lines = [("calc.py", 2, f"Please change this {n}") for n in range(3)]
        review = self.github.submit_review(pull, "@agent please do this", "mona", lines)
        threads = [{"id": f"T{n}", "addressed": True, "answer": "Done."} for n in (1, 2, 3)]
        done = {"title": "Swap them", "message": "Swap them", "threads": threads}
        self.endpoint.script(bash("sed -i 's/a + b/b + a/' calc.py"), tool_call("finish", done))
        self.acts(self.github.event_review(review), "pull_request_review")
        assert len([c for c in pull.review_comments if c.author.login == ACTIONS]) == 3

    def failing_check(self) -> None:
        pull = self.mention()
        assert pull.pull is not None
        self.github.advance(5)
        tip = self.repository.git.tip(pull.pull.head)
        self.github.end_check(REPOSITORY, tip, "CI", log="1 failed")
        self.endpoint.script(bash("echo '# more' >> calc.py"), finish("Mend the check"))
        event = self.events.workflow_failed(pull.pull.head, ACTIONS, "CI")
        self.acts(event, "workflow_run", RESOLVER_FIX_FAILING_CHECKS="own")
        assert self.repository.git.tip(pull.pull.head) != tip

    def update(self) -> None:
        pull = self.mention()
        assert pull.pull is not None
        tip = self.repository.git.tip(pull.pull.head)
        self.github.commit(REPOSITORY, "main", {"later.py": "1\n"}, "meanwhile")
        self.says(pull, "@agent update")
        assert self.repository.git.tip(pull.pull.head) != tip

    def sweep_of_five(self) -> None:
        for number in range(5):
            issue = self.github.create_issue(REPOSITORY, f"Wrong {number}", "It is.", author="zoe")
            self.github.add_label(issue, "agent", "mona")
            self.github.advance(2)

        def reply(body: dict[str, Any]) -> Answer:
            has_worked = any(message["role"] == "tool" for message in body["messages"])
            return finish(SUMMARY) if has_worked else bash("echo '# right' >> calc.py")

        self.endpoint.answer_with(reply)
        self.started_at = len(self.github.requests)
        output = self.line.folder / "swept"
        done = self.line.call("sweep", REPOSITORY, "--output", output, **SELDOM)
        assert done.exit_code == 0 and len(self.pulls()) == 5, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("story", "max_api", "max_git"),
    [
        ("mention", 11, 8),
        ("mention_in_a_long_conversation", 11, 8),
        ("question", 8, 6),
        ("review_of_three_threads", 25, 15),
        ("failing_check", 24, 15),
        ("update", 20, 15),
        ("sweep_of_five", 68, 40),
    ],
)
def test_a_story_takes_few_requests(
    story: str,
    max_api: int,
    max_git: int,
    github: GitHubServer,
    command_line: CommandLine,
    model_endpoint: ModelEndpoint,
) -> None:
    scenario = CountedScenario(github, command_line, model_endpoint)
    getattr(scenario, story)()
    made = github.requests[scenario.started_at :]
    shown = [f"{r.kind} {r.method} {r.path} {r.status}" for r in made]
    api = sum(r.kind in {"rest", "graphql"} for r in made)
    git = sum(r.kind == "git" for r in made)
    assert api <= max_api and git <= max_git, "\n".join([f"{api} API, {git} git", *shown])
    assert not [line for line in shown if not line.endswith((" 200", " 201", " 302"))]
