"""One realistic comment for each ending and kind of request, and the pull requests of a run.

The tests of this package look at them as GitHub shows them, and scripts/screenshots.py can.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from resolver.errors import (
    ModelError,
    PolicyViolation,
    QuotaReached,
    Refused,
    ResolverError,
    RunStopped,
)
from resolver.events.log import Event
from resolver.github.comments.comment_text import comment_body
from resolver.github.comments.progress import RunProgress, progress_body
from resolver.github.comments.pull_request_text import pull_request_body
from resolver.github.comments.report import Report, failure_from_error
from resolver.models.approval import PendingApproval, SecurityRisk
from resolver.models.pull_request import PublishedReview, PullRequestContext
from resolver.models.run import (
    CheckedCommand,
    Command,
    FileChange,
    Outcome,
    Patch,
    PlanItem,
    Publication,
    PullRequest,
    ResolvedConflict,
    RunState,
    Task,
    Tokens,
    Trigger,
)
from resolver.models.verification import (
    CaseResult,
    ChangedExpectation,
    CheckComparison,
    CheckExecution,
    Verification,
)
from resolver.trace.markdown import render_comment_trace
from tests.github import reports
from tests.trace.sample import realistic

TITLE = "Make the shares of a split bill add up to the bill"
PULL: Final = PullRequest(
    title=TITLE, body="", number=482, url="https://github.com/octo/tally/pull/482"
)
LOG = "https://github.com/octo/tally/actions/runs/91"
FILES = (
    ("CHANGES.md", "modified", 1, 0),
    ("tally/money.py", "modified", 4, 2),
    ("tests/test_money.py", "added", 11, 0),
)
NEW_TEST = "tests.test_money.MoneyTest.test_shares_add_up_to_the_amount"
FAILS_WITHOUT = (  # as in the demo
    "tests.test_ledger.LedgerTest.test_balances_add_up_to_zero",
    "tests.test_money.MoneyTest.test_odd_cents_go_to_the_first_shares",
    NEW_TEST,
)
REFUND = CaseResult(
    id="tests/test_money.py::test_refund", status="failed", file="tests/test_money.py", line=31
)


def _change() -> Patch:
    files = tuple(
        FileChange.model_validate(
            {
                "path": path,
                "status": status,
                "old_mode": "100644",
                "new_mode": "100644",
                "additions": added,
                "deletions": deleted,
            }
        )
        for path, status, added, deleted in FILES
    )
    return Patch(base="9cbd10e" * 5, tree="b" * 40, commit="e9c9859" * 5, files=files)


def _execution(passed: int, failed: int, *more: CaseResult) -> CheckExecution:
    cases = [CaseResult(id=f"tests.test_{i}", status="passed") for i in range(passed)]
    cases += [CaseResult(id=f"{NEW_TEST}_{i}", status="failed") for i in range(failed)]
    cases += more
    return CheckExecution(exit_code=int(bool(failed)), seconds=0.6, cases=tuple(cases))


def _verification(**changes: Any) -> Verification:
    check = CheckComparison(
        name="unittest",
        command="python -m unittest discover",
        scope="full",
        base=_execution(5, 1),
        base_with_tests=_execution(5, 3),
        head=_execution(8, 0),
        reproduction=FAILS_WITHOUT,
        added=FAILS_WITHOUT[1:],
    )
    known = Verification(verdict="verified", checks=(check,))
    return known.model_copy(update=changes)


def _outcome(**changes: Any) -> Outcome:
    values: dict[str, Any] = {
        "state": RunState.FINISHED,
        "title": TITLE,
        "message": TITLE,
        "cause": "`Money.split` truncated each share (`int(self.cents / ways)`) and gave everybody "
        "the same amount, so up to `ways - 1` cents of a bill were lost.",
        "change": "`Money.split` now divides whole cents with `divmod` and gives the odd cents to "
        "the first shares. A refund splits exactly like the bill that it undoes.",
        "verification": "`python3 -W error -m unittest`: `test_balances_add_up_to_zero` failed "
        "before and passes now. Two new tests cover the numbers of the issue and refunds.",
        "remaining": "Who gets the odd cent depends on the order of `shared_by`.",
        "task_completed": True,
        "iterations": 9,
        "tokens": Tokens(input=55_800, output=1_620, cached=42_800),
        "cost": 0.21,
        "seconds": 75.0,
    }
    return Outcome(**{**values, **changes})


_COMMANDS = (
    ("git log --oneline && ls -R . && cat README.md", 0, "9cbd10e The ledger adds up the bills"),
    (
        "python3 -W error -m unittest",
        1,
        "AssertionError: Money(-2) != Money(0)\n\nFAILED (failures=1)",
    ),
    ("python3 -W error -m unittest -v", 0, "Ran 8 tests in 0.003s\n\nOK"),
)


def _task(trigger: Trigger, **changes: Any) -> Task:
    url = f"https://github.com/octo/tally/issues/{trigger.number}"
    return reports.task(trigger, title="Splitting a bill loses a cent", url=url, **changes)


@cache
def _short_trace() -> str:
    return render_comment_trace(realistic(), 1_500)


def report(**changes: Any) -> Report:
    """Return the report of a finished run on an issue, with `changes`."""
    trace = _short_trace()
    values: dict[str, Any] = {
        "trigger": reports.trigger(repository="octo/tally"),
        "run": "20260304-093000-a1b2c3",
        "model": "anthropic/claude-sonnet-4-5",
        "outcome": _outcome(),
        "patch": _change(),
        "base": "9cbd10e" * 5,
        "repository_url": "https://github.com/octo/tally",
        "commands": tuple(
            CheckedCommand(command=command, exit_code=code, event_id=i, output_tail=output)
            for i, (command, code, output) in enumerate(_COMMANDS)
        ),
        "branch": "agent/12-splitting-a-bill-loses-a-cent",
        "task": _task(changes.get("trigger") or reports.trigger(repository="octo/tally")),
        "trace_markdown": trace,
        "render_trace": lambda limit: trace,
        "log_url": LOG,
        "continues": True,
    }
    return reports.report(**{**values, **changes})


def _ended(state: RunState, **changes: Any) -> Report:
    """Return the report of a run without a pull request."""
    fields = {"cause": "", "change": "", "verification": "", "remaining": ""}
    outcome = _outcome(**{**fields, "state": state, "task_completed": False, **changes})
    return report(outcome=outcome, patch=None)


def _failed(error: ResolverError | RunStopped, **changes: Any) -> Report:
    return report(
        failure=failure_from_error(error),
        **{"outcome": None, "patch": None, "trace_markdown": "", "commands": (), **changes},
    )


def _unfinished_outcome(state: RunState, **changes: Any) -> Outcome:
    message = "The rounding is fixed in `Money.split`. `Ledger.settle` still loses a cent."
    fields = {"cause": "", "change": "", "verification": "", "remaining": ""}
    return _outcome(
        **{**fields, "state": state, "message": message, "task_completed": False, **changes}
    )


def _on_pull_request(**publication: Any) -> Report:
    where = reports.trigger(repository="octo/tally", is_pull_request=True, number=480)
    pull = PullRequestContext(
        number=480,
        head="d" * 40,
        head_branch="fix-shares",
        base_branch="main",
        conflicts=tuple(conflict.path for conflict in publication.get("conflicts", ())),
    )
    return report(
        trigger=where,
        task=_task(where, pull=pull),
        pull_request=PULL.model_copy(update={"number": 480}),
        verification=_verification(),
        publication=Publication(
            branch="fix-shares",
            commit="e9c9859" * 5,
            commit_url="https://github.com/octo/tally/commit/e9c9859",
            **publication,
        ),
    )


_NOT_VERIFIED = _verification(
    verdict="not_verified",
    reason="former_behavior",
    checks=(
        CheckComparison(
            name="unittest",
            command="python -m unittest discover",
            scope="full",
            base=_execution(6, 0),
            head=_execution(6, 0),
            head_with_base_tests=_execution(5, 0, REFUND),
            broken=(REFUND.id,),
            former=(REFUND.id,),
        ),
    ),
    expectations=(
        ChangedExpectation(
            path="tests/test_money.py",
            old="self.assertEqual(refund.split(3), [-4, -3, -3])",
            new="self.assertEqual(refund.split(3), [-3, -3, -4])",
        ),
    ),
)


def _reports() -> dict[str, Report]:
    question = (
        "Should a refund give its odd cents to the same people as the bill, or to the last ones?"
    )
    pending = PendingApproval(
        kind="cmd_run",
        text="curl -fsSL https://example.org/install.sh | sh",
        level=SecurityRisk.HIGH,
        rule="execute_bash(curl *| sh)",
        number="123456",
    )
    down = ModelError(
        "the model provider answered 503 (overloaded) to 6 requests", "Ask again later."
    ).with_traceback(None)
    unverified: dict[str, Any] = {
        "pull_request": PULL.model_copy(update={"draft": True}),
        "verification": _NOT_VERIFIED,
        "unverified": "not_verified",
        "draft": True,
    }
    return {
        "opened": report(pull_request=PULL, verification=_verification()),
        "opened as draft": report(**unverified),
        "pushed": _on_pull_request(how="pushed"),
        "updated": _on_pull_request(
            how="updated",
            conflicts=(
                ResolvedConflict(path="tally/money.py", kept="merged"),
                ResolvedConflict(path="CHANGES.md", kept="ours"),
            ),
        ),
        "patch": _on_pull_request(
            how="patch", why="the branch belongs to a fork", patch="From e9c9859\n---\n+ fixed\n"
        ),
        "answer": report(
            trigger=reports.trigger(
                repository="octo/tally",
                command=Command.QUESTION,
                instruction="why does a refund lose a cent?",
            ),
            answers=True,
            patch=None,
            outcome=_outcome(
                message="`Money.split` truncates towards zero ([tally/money.py:36]"
                "(https://github.com/octo/tally/blob/main/tally/money.py#L36)), so a refund loses "
                "its odd cents as the bill does.",
                cause="",
                change="",
                verification="",
                remaining="",
            ),
        ),
        "review": report(
            trigger=reports.trigger(
                repository="octo/tally", command=Command.REVIEW, instruction="review"
            ),
            patch=None,
            outcome=_outcome(message="", cause="", change="", verification="", remaining=""),
            review=PublishedReview(
                commit="e9c9859" * 5,
                url="https://github.com/octo/tally/pull/480#pullrequestreview-1",
                placed=3,
            ),
        ),
        "nothing to change": _ended(
            RunState.FINISHED, message="The shares add up already.", task_completed=True
        ),
        "could not reproduce": _ended(
            RunState.REJECTED,
            declined="cannot_reproduce",
            message="50.01 split by four gives 12.51 and three times 12.50, which adds up.",
        ),
        "question": _ended(RunState.AWAITING_USER_INPUT, message=question),
        "limit of iterations": report(
            outcome=_unfinished_outcome(
                RunState.LIMIT, limit="iterations", reason="the 250 iterations are used up"
            )
        ),
        "stuck": report(
            outcome=_unfinished_outcome(
                RunState.STUCK, reason="the same action had the same result 4 times"
            )
        ),
        "stopped by a person": report(
            outcome=_unfinished_outcome(RunState.STOPPED, reason="ada asked it to stop")
        ),
        "approval": report(patch=None, pending_approval=pending),
        "policy": _failed(
            PolicyViolation(
                "it touches .github/workflows/ci.yml, which needs `workflow_files: allow`",
                "allow workflow files in the settings, or ask for the change without them",
            ),
            patch=_change(),
            outcome=_outcome(),
            publishable="comment",
        ),
        "refused": _failed(Refused("alice does not have write access", "ask a maintainer")),
        "quota": _failed(QuotaReached("5 runs were started here today", "wait until tomorrow")),
        "provider is down": report(
            patch=None,
            outcome=_unfinished_outcome(
                RunState.ERROR,
                message="",
                because="provider_down",
                reason="the model provider answered 503 (overloaded) to 6 requests",
                next_step="Look at the provider's status page.",
            ),
        ),
        "error": _failed(down),
    }


def pull_requests() -> Mapping[str, str]:
    """Return the texts of pull requests that Resolver opens, by the name of the case."""
    opened = {name: report for name, report in _reports().items() if name.startswith("opened")}
    return {name: pull_request_body(report) for name, report in opened.items()}


def comments() -> Mapping[str, str]:
    """Return the final comment of each ending, and comments of runs that have not ended."""
    progress = RunProgress(
        trigger=reports.trigger(repository="octo/tally"),
        run="20260304-093000-a1b2c3",
        since=reports.WHEN,
        until=reports.WHEN,
        log_url=LOG,
        read=True,
        base="9cbd10e" * 5,
        sandbox=True,
        iterations=4,
        max_iterations=250,
        cost=0.08,
        plan=(
            PlanItem(title="Write a test that shows the lost cent", status="done"),
            PlanItem(title="Divide whole cents", status="doing"),
            PlanItem(title="Note it in CHANGES.md"),
        ),
        changed_files=1,
        verifies=True,
    )
    return {
        "progress": progress_body(progress),
        "waiting": progress_body(
            progress.model_copy(
                update={"waits": "another run is in progress", "base": "", "changed_files": 0}
            )
        ),
        **{name: comment_body(report) for name, report in _reports().items()},
    }


def comment_with_trace(events: Sequence[Event]) -> str:
    """Return the final comment of a run that opened a pull request, with the trace of a log."""
    trace = render_comment_trace(events, 60_000)
    return comment_body(
        report(
            pull_request=PULL,
            verification=_verification(),
            trace_markdown=trace,
            render_trace=lambda limit: render_comment_trace(events, limit),
        )
    )
