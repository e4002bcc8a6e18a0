"""Tests of the progress comment of a request.

It is created at once, edited while the run works, and says at the end how the run ended.

Whole runs, because the comment has to follow the work, and to outlive a process that is killed.
"""

import re
from collections.abc import Callable
from typing import Any

from tests.parts.model_endpoint import Answer, tool_call
from tests.parts.runs import bash, finish
from tests.parts.waiting import until
from tests.runs.scenario import FIX, SUMMARY, Scenario


def checklist(body: str) -> str:
    """The lines of the comment that are boxes."""
    return "".join(f"{line}\n" for line in body.splitlines() if line.startswith("- ["))


Plan = tuple[Callable[[], object] | None, Answer]
"""What has to be so before the model answers, and its answer."""


def answered(*plan: Plan) -> Callable[[dict[str, Any]], Answer]:
    """The model answers each call once what the plan waits for has come about."""

    def answer(body: dict[str, Any]) -> Answer:
        said: int = sum(m["role"] == "assistant" for m in body["messages"])
        ready, given = plan[said]
        if ready is not None:
            until(ready)
        return given

    return answer


class Seen:
    """Bodies of the one comment that were waited for."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.bodies: list[str] = []

    def shows(self, *words: str) -> Callable[[], bool]:
        """Return True if the comment has this text, and keep the comment then."""

        def look() -> bool:
            for body in self._scenario.bot_comments():
                if all(word in body for word in words):
                    self.bodies.append(body)
                    return True
            return False

        return look


def test_the_comment_is_there_while_the_run_is_at_work_and_becomes_the_result(
    scenario: Scenario,
) -> None:
    """A whole run: the story of the progress comment, which another thread edits meanwhile."""
    scenario.line.environment["RESOLVER_PACE"] = '{"progress_interval": 1, "write_interval": 0}'
    seen = Seen(scenario)
    plan = tool_call("plan", {"items": [{"title": "Find @mona's bug", "status": "doing"}]})
    scenario.endpoint.answer_with(
        answered(
            (seen.shows("- [ ] Change the code"), plan),
            (None, bash("echo 1")),
            (None, FIX),
            (seen.shows("; 1 file changed\n"), finish(SUMMARY)),
        )
    )
    done = scenario.action(scenario.github.event_issue_comment(scenario.mention()))
    assert done.exit_code == 0, done.stderr
    fixed = "; 1 file changed\n- [ ] Verify: disabled in the settings\n"
    assert f"{fixed}- [ ] Open a pull request\n" in checklist(seen.bodies[-1])
    last = seen.bodies[-1]
    assert "working on this" in last and " job=77.1 -->" in last
    assert re.search(r"- \[x\] Clone the repository \(at `[0-9a-f]{12}`\)", last), last
    assert "Find `@mona`'s bug (in progress)" in last
    assert "/octo/calc/actions/runs/77" in last and "Comment `@agent stop` to stop the run" in last
    [comment] = scenario.bot_comments()
    assert (
        comment.partition("\n")[0].endswith("ending=pull_request -->")
        and "Resolver opened" in comment
    )
