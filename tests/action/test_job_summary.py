"""Tests of the summary on the page of a job, rendered from plain values."""

from resolver.entrypoints.action import render_job_summary
from resolver.errors import PolicyViolation
from resolver.github.comments.report import failure_from_error
from resolver.github.events.quota_decision import QuotaUse
from resolver.models.run import Publication, PullRequest
from resolver.trace.markdown import CommentTrace
from tests.github import reports
from tests.trace.sample import realistic

LOG = "https://github.com/octo/tally/actions/runs/91"
PULL = PullRequest(
    title="Make it add up", body="", number=482, url="https://github.com/octo/tally/pull/482"
)
DIFF = """\
diff --git a/tally/money.py b/tally/money.py
--- a/tally/money.py
+++ b/tally/money.py
@@ -1 +1 @@
-        return [Money(int(self.cents / ways))] * ways
+        return shares
"""


def summary(diff: str = DIFF, branch: str | None = "agent/12", **changes: object) -> str:
    return render_job_summary(
        reports.report(
            **{
                "pull_request": PULL,
                "log_url": LOG,
                "render_trace": CommentTrace(realistic()).render,
                **changes,
            }
        ),
        Publication(branch=branch),
        state="finished",
        server="https://github.com",
        diff=diff,
    )


def test_the_summary_shows_result_change_and_steps_in_this_order() -> None:
    text = summary()
    parts = ["## Resolver: finished", "Resolver opened [#482]", "<code>tally/money.py</code> +1 −1",
             "+        return shares", "### Steps", "<summary>All steps"]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert LOG not in text, "a link from the page to itself"
    assert text.count("<summary>This run: ") == 1


def test_a_change_that_was_not_pushed_is_not_shown() -> None:
    refusal = failure_from_error(PolicyViolation("it contains a credential", "remove it"))
    text = summary(branch=None, failure=refusal)
    assert "did not publish it" in text
    assert "return shares" not in text and "### Changes" not in text


def test_the_use_of_the_quotas_is_a_table() -> None:
    use = (
        QuotaUse("thread", "#12", 2, 20, 1.5, 50.0),
        QuotaUse("repository", "this repository", 3, 0, 2.0, 0.0),
    )
    text = render_job_summary(
        reports.report(pull_request=PULL),
        Publication(branch="agent/12"),
        state="finished",
        server="https://github.com",
        diff="",
        quota_use=use,
    )
    rows = ["| #12 | 2 of 20 | $1.50 of $50.00 |", "| this repository | 3 | $2.00 |"]
    assert "\n".join(rows) in text and "### Quotas" in text
    assert "### Quotas" not in summary()
