"""Tests of how a verification is presented in pull requests and comments."""

from typing import get_args

import pytest

from resolver.github.comments.progress import RunProgress, progress_body
from resolver.github.comments.pull_request_text import pull_request_body
from resolver.github.text.comment_markdown import MAX_BODY, is_closed
from resolver.models.verification import (
    ChangedExpectation,
    CheckExecution,
    MissingEnvironment,
    Remedy,
    UnpreparedEnvironment,
    Verification,
    VerificationReason,
)
from resolver.trace.untrusted_text import utf16_length
from tests.github import reports

UNPREPARED = UnpreparedEnvironment(paths=("package.json",), cause="no_setup")
REASONS = [reason for reason in get_args(VerificationReason) if reason not in {"", "disabled"}]


def body(verification: Verification | None) -> str:
    return pull_request_body(
        reports.report(
            verification=verification, base="a" * 40, repository_url="https://github.com/o/r"
        )
    )


def test_each_reason_has_its_own_text() -> None:
    texts = set()
    reasons = [reason for reason in REASONS if reason != "no_change"]
    for reason in reasons:
        needs = {"unprepared": UNPREPARED} if reason == "environment" else {}
        found = reports.verification(
            verdict="not_verified", reason=reason, reproduction=(), **needs
        )
        [text] = [line for line in body(found).splitlines() if "**Not verified:**" in line]
        assert text.endswith(".") and text.startswith("> **Not verified:** ")
        texts.add(text)
    assert len(texts) == len(reasons)


@pytest.mark.parametrize(
    ("remedy", "suggestion", "words"),
    [
        ("setup", "pip install -e .[test]", "Install what the tests need: `setup: pip install -e"),
        ("setup", "", "Install what the tests need: with `setup`"),
        ("image", "", "Set `image` in `.github/resolver.yml` to an image that has this program"),
        ("egress", "", "The sandbox has no network unless the operator allows it: set `egress:"),
    ],
)
def test_where_no_test_ran_the_line_that_says_why_and_the_remedy_are_shown(
    remedy: Remedy, suggestion: str, words: str
) -> None:
    lacks = MissingEnvironment(line="No module named 'x'", remedy=remedy, suggestion=suggestion)
    found = reports.verification(
        verdict="not_verified", reason="base_failed_to_run", reproduction=(), lacks=lacks
    )
    assert f"**Not verified:** no test ran: `No module named 'x'`. {words}" in body(found)


def test_what_old_tests_expect_is_shown_beside_what_the_change_makes_of_it() -> None:
    part = ChangedExpectation(path="tests/a.py", old="assert x == 1 | 2\n", new="assert x == 3")
    gone = ChangedExpectation(path="tests/b.py", old="assert y", new="")
    text = body(
        reports.verification(
            verdict="not_verified",
            reason="former_behavior",
            former=("test_a.py::one", "test_a.py::two"),
            broken=("test_a.py::one", "test_a.py::two"),
            reproduction=(),
            expectations=(part, gone),
        )
    )
    assert (
        "2 old tests expect the former behavior" in text
        and "A person decides which is right." in text
    )
    assert "- Expect the former behavior: `test_a.py::one`, `test_a.py::two`" in text
    diff = "@@ tests/a.py @@\n- assert x == 1 | 2\n+ assert x == 3\n@@ tests/b.py @@\n- assert y"
    assert f"\n```diff\n{diff}\n```\n" in text
    assert text.startswith("<!-- ") and "\n\n> [!WARNING]\n> **Not verified:** 2 old" in text
    assert "Broken:" not in text


def test_names_and_outputs_from_a_sandbox_are_escaped() -> None:
    hostile = "x`|<script> @octocat #1\n| a | [b](http://evil.example) ```"
    names = dict.fromkeys(("broken", "missing", "reproduction"), (hostile,))
    failing = CheckExecution(exit_code=1, seconds=1.0, output=hostile)
    update = {"command": hostile, "head": failing, **names}
    check = reports.verification().checks[0].model_copy(update=update)
    verified = reports.verification(verdict="not_verified", reason="regression", checks=(check,))
    text = body(verified)
    assert is_closed(text)
    assert "\n| a |" not in text.partition("<details>")[0]
    assert utf16_length(text) <= MAX_BODY


def progress(**known: object) -> str:
    shown = RunProgress(
        trigger=reports.trigger(), run="r", since=reports.WHEN, until=reports.WHEN, verifies=True
    )
    return progress_body(shown.model_copy(update=known))


@pytest.mark.parametrize(
    ("url", "is_shown"),
    [
        ("https://github.com/octo/demo/actions/runs/7", True),
        ("javascript:alert(1)", False),
        ("https://a.example/x) [y](z", False),
        ("", False),
    ],
)
def test_the_progress_links_only_to_pages(url: str, is_shown: bool) -> None:
    assert (f"[Log of the run]({url})" in progress(log_url=url)) is is_shown
