"""The number of requests to GitHub that each story takes, in a job of GitHub Actions.

Whole runs, because all stages share what was read: any of them could read it again. Not counted
are edits of progress and polls for comments, of which a run has as many as it is long.
"""

from typing import Any

from tests.action.scenario import ACTIONS, permissions
from tests.parts.events import Events
from tests.parts.github import GitHubServer
from tests.parts.github_server.state import Issue
from tests.parts.model_endpoint import Answer, ModelEndpoint, tool_call
from tests.parts.runs import CommandLine, bash, finish
from tests.runs.scenario import FIX, REPOSITORY, SELDOM, SUMMARY, Scenario


class CountedScenario(Scenario):
    """`mona` maintains the repository. Resolver has the token of a job of GitHub Actions."""

    def __init__(self, github: GitHubServer, line: CommandLine, endpoint: ModelEndpoint) -> None:
        super().__init__(github, line, endpoint)
        github.add_user(ACTIONS, type="Bot")
        token = github.token_for(ACTIONS, REPOSITORY, permissions=permissions())
        line.environment["GITHUB_TOKEN"] = self.token = token
        self.events = Events(github, REPOSITORY)
        self.started_at = 0

    def says(self, issue: Issue, text: str) -> None:
        """The job of a comment of mona's."""
        self.github.advance(5)
        comment = self.github.add_comment(issue, text, "mona")
        self.acts(self.github.event_issue_comment(comment), "issue_comment")

    def acts(self, event: dict[str, Any], name: str, **environment: str) -> None:
        """The job of an event. Only its requests are counted."""
        self.started_at = len(self.github.requests)
        done = self.action(event, name, **SELDOM, **environment)
        assert done.exit_code in {0, 3}, done.stdout + done.stderr

    def mention(self) -> Issue:
        self.endpoint.script(FIX, finish(SUMMARY))
        self.says(self.issue, "@agent please fix this")
        [pull] = self.pulls()
        return pull

    def require(self, *, api: int, git: int) -> None:
        """Require that the last job made at most so many requests, and none that failed."""
        made = self.github.requests[self.started_at :]
        shown = [f"{r.kind} {r.method} {r.path} {r.status}" for r in made]
        of_api = sum(r.kind in {"rest", "graphql"} for r in made)
        of_git = sum(r.kind == "git" for r in made)
        counted = "\n".join([f"{of_api} API, {of_git} git", *shown])
        assert of_api <= api and of_git <= git, counted
        assert not [line for line in shown if not line.endswith((" 200", " 201", " 302"))]


SCENARIO = CountedScenario


def test_a_question_is_answered_with_few_requests(scenario: CountedScenario) -> None:
    answer = {"message": "It subtracts: see `calc.py:2`.", "reason": "answered"}
    scenario.endpoint.script(bash("cat calc.py"), tool_call("finish", answer))
    scenario.says(scenario.issue, "@agent what does it do?")
    [comment] = [c.body for c in scenario.issue.comments if c.author.login == ACTIONS]
    assert " ending=answer" in comment
    assert "`calc.py:2`" in comment and "Nothing was changed" in comment
    assert scenario.pulls() == [] and scenario.branches() == []
    scenario.require(api=10, git=6)


def test_each_job_of_an_issue_and_of_its_pull_request_takes_few_requests(
    scenario: CountedScenario,
) -> None:
    """A long conversation, a review of three threads, a failing check, and an update."""
    github = scenario.github
    for number in range(41):
        github.add_comment(scenario.issue, f"It is also wrong in case {number}.", "zoe")
    pull = scenario.mention()
    assert pull.pull is not None
    scenario.require(api=11, git=8)

    github.advance(5)
    lines = [("calc.py", 2, f"Please change this {n}") for n in range(3)]
    review = github.add_review(pull, "@agent please do this", "mona", comments=lines)
    threads = [{"id": f"T{n}", "addressed": True, "answer": "Done."} for n in (1, 2, 3)]
    done = {"title": "Swap them", "message": "Swap them", "threads": threads}
    scenario.endpoint.script(bash("sed -i 's/a + b/b + a/' calc.py"), tool_call("finish", done))
    scenario.acts(scenario.events.review(review), "pull_request_review")
    assert len([c for c in pull.review_comments if c.author.login == ACTIONS]) == 3
    scenario.require(api=25, git=15)

    github.advance(5)
    tip = scenario.repository.git.tip(pull.pull.head)
    github.end_check(REPOSITORY, tip, "CI", log="1 failed")
    scenario.endpoint.script(bash("echo '# more' >> calc.py"), finish("Mend the check"))
    event = scenario.events.workflow_failed(pull.pull.head, ACTIONS, "CI")
    scenario.acts(event, "workflow_run", RESOLVER_FIX_FAILING_CHECKS="own")
    mended = scenario.repository.git.tip(pull.pull.head)
    assert mended != tip
    scenario.require(api=24, git=15)

    github.commit(REPOSITORY, "main", {"later.py": "1\n"}, "meanwhile")
    scenario.says(pull, "@agent update")
    assert scenario.repository.git.tip(pull.pull.head) != mended
    scenario.require(api=20, git=15)


def test_a_dispatch_that_names_nothing_sweeps_with_few_requests(scenario: CountedScenario) -> None:
    github = scenario.github
    issues = [github.create_issue(REPOSITORY, f"Wrong {n}", "", author="zoe") for n in range(2)]
    for issue in issues:
        github.add_label(issue, "agent", "mona")
        github.advance(2)

    def reply(body: dict[str, Any]) -> Answer:
        has_worked = any(message["role"] == "tool" for message in body["messages"])
        return finish(SUMMARY) if has_worked else bash("echo '# right' >> calc.py")

    scenario.endpoint.answer_with(reply)
    named = {"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_ACTIONS": "true"}
    scenario.acts(scenario.events.by_hand("mona", issue=""), "workflow_dispatch", **named)
    assert len(scenario.pulls()) == 2
    assert scenario.outputs()["state"] == "finished"
    assert all(f"#{issue.number}" in scenario.summary() for issue in issues)
    scenario.require(api=29, git=16)
