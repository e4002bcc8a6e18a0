"""Tests of the comment of every ending: text, size, closed markup and marker."""

import re
from typing import Any, Literal, get_args

import pytest
from jinja2 import Environment

from resolver.errors import (
    Cause,
    ForgeError,
    LimitReached,
    ModelError,
    PolicyViolation,
    QuotaReached,
    Refused,
    ResolverError,
    RunStopped,
)
from resolver.github.comments.comment_text import comment_body
from resolver.github.comments.progress import RunProgress, progress_body
from resolver.github.comments.pull_request_text import (
    addition_text,
    commit_message,
    pull_request_body,
    pull_request_title,
)
from resolver.github.comments.report import Report, RunFailure, failure_from_error
from resolver.github.comments.templates import markdown_environment, safe
from resolver.github.text.comment_markdown import MAX_BODY, is_closed
from resolver.github.text.markdown import markdown_parser
from resolver.github.text.markers import (
    Ending,
    ending_of,
    is_refusal_of,
    refusal_marker,
    run_marker,
)
from resolver.models.approval import PendingApproval, SecurityRisk
from resolver.models.pull_request import PublishedReview
from resolver.models.repository import Conventions
from resolver.models.run import (
    DeclineReason,
    Publication,
    PullRequest,
    RunState,
)
from resolver.models.titles import MAX_TITLE_CHARACTERS, is_usable_title
from resolver.models.verification import (
    ChangedExpectation,
    MissingEnvironment,
    Remedy,
    UnpreparedEnvironment,
    Verification,
    VerificationReason,
)
from resolver.trace.untrusted_text import utf16_length
from tests.github import reports

PULL = PullRequest(title="A fix", body="b", number=13, url="https://github.com/octo/demo/pull/13")
TRACE = (
    "<details>\n<summary>How it was made</summary>\n\n#### 1. Look\n\n```\nls\n```\n\n</details>"
)


def ended(ending: Ending) -> Report:
    errors: dict[Ending, ResolverError] = {
        Ending.LIMIT: LimitReached("budget", "the $5.00 are spent", "raise the budget"),
        Ending.STOPPED: RunStopped("a person cancelled it", "ask again"),
        Ending.POLICY: PolicyViolation("it touches .github/workflows/ci.yml", "leave it out"),
        Ending.REFUSED: Refused("alice may not", "ask somebody"),
        Ending.CEILING: QuotaReached("10 runs were begun today", "wait until tomorrow"),
        Ending.ERROR: ModelError("the model is gone", "check the key"),
    }
    states = {
        Ending.STUCK: RunState.STUCK,
        Ending.REJECTED: RunState.REJECTED,
        Ending.WAITING: RunState.AWAITING_USER_INPUT,
    }
    if ending in errors:
        return reports.report(
            failure=failure_from_error(errors[ending]), render_trace=lambda limit: TRACE
        )
    if ending in states:
        outcome = reports.outcome(state=states[ending], reason="so it is", task_completed=False)
        return reports.report(outcome=outcome, render_trace=lambda limit: TRACE)
    pull = PULL if ending is Ending.PULL_REQUEST else None
    answers = ending is Ending.ANSWER
    review = REVIEW if ending is Ending.REVIEW else None
    wanted = WANTED if ending is Ending.CONFIRMATION else None
    return reports.report(
        pull_request=pull,
        review=review,
        pending_approval=wanted,
        render_trace=lambda limit: TRACE,
        answers=answers,
    )


WANTED = PendingApproval(
    kind="cmd_run", text="rm -rf ~", level=SecurityRisk.HIGH, rule="execute_bash(rm)"
)
REVIEW = PublishedReview(commit="d" * 40, url="https://x/r", placed=2, in_body=1)


@pytest.mark.parametrize("cause", get_args(Cause))
@pytest.mark.parametrize("publishable", [None, "comment", "folder"])
def test_every_cause_has_its_own_text_and_remedy(
    cause: Cause, publishable: Literal["comment", "folder"] | None
) -> None:
    failure = RunFailure(kind="error", what="GitHub said so", next_step="allow it", cause=cause)
    body = comment_body(reports.report(failure=failure, publishable=publishable))
    first = next(line for line in body.splitlines() if line and not line.startswith("<!--"))
    known = cause not in {"", "locked", "issues_off", "not_found", "set_up"}
    wrong = "is configured incorrectly" if cause == "set_up" else "went wrong"
    assert first.count("**") == 2 and (wrong in first) is not known, first
    assert first.endswith(": GitHub said so.") is not known and body.count("GitHub said so.") == 1
    assert ("Exact error message" in body) is known
    assert ("ask again" in body) is (cause == "set_up")
    assert "**What next:** Allow it." in body and is_closed(body)
    offered = publishable if cause != "proposal" else None
    assert ("comment `@agent publish` to publish the change" in body) is (offered == "comment")
    assert ("`resolver publish DIR`" in body) is (offered == "folder")


def test_a_change_that_was_not_pushed_is_in_the_comment_as_a_patch_with_the_reason() -> None:
    text = "Subject: [PATCH] Fix it\n\n-    return x // 2\n+    return x / 2\n```\n"
    kept = Publication(pull_request=PULL, how="patch", patch=text, why="it is old")
    report = ended(Ending.PULL_REQUEST).model_copy(update={"publishable": "comment"})
    body = comment_body(report.model_copy(update={"publication": kept}))
    assert "**did not push it**, because it is old." in body
    assert "**What next:** Apply the patch to the branch" in body and "publish" not in body
    removable = kept.model_copy(update={"next_step": "renew it"})
    offer = comment_body(report.model_copy(update={"publication": removable}))
    assert "**What next:** Renew it. After that, comment `@agent publish` to publish" in offer
    assert "<code>git am</code>" in body and f"diff\n{text}" in body and is_closed(body)


def test_only_a_refusal_by_settings_may_end_differently() -> None:
    bound = failure_from_error(PolicyViolation("it is too large", settings_decide=True))
    assert not bound.is_lasting and not failure_from_error(ForgeError("GitHub said so")).is_lasting
    assert failure_from_error(PolicyViolation("it adds what looks like a credential")).is_lasting
    body = comment_body(reports.report(failure=bound, publishable="folder"))
    assert "Once the settings allow it, run `resolver publish DIR` to publish it" in body


WORDS = {
    Ending.PULL_REQUEST: ["[#13](https://github.com/octo/demo/pull/13)", "How it was made"],
    Ending.NO_CHANGE: ["nothing to change", "Fixed the parser", "@agent"],
    Ending.ANSWER: ["Fixed the parser", "Nothing was changed"],
    Ending.REVIEW: ["[reviewed this](https://x/r)", "2 comments and 1 remark", "0.42"],
    Ending.LIMIT: ["limit", "are spent", "Raise the budget", "`a.py`"],
    Ending.STUCK: ["**stopped**, because the agent got no further (so it is)."],
    Ending.STOPPED: ["**stopped** after the work was finished", "a person cancelled it."],
    Ending.POLICY: ["did not publish", ".github/workflows/ci.yml", "`a.py`"],
    Ending.REFUSED: ["alice may not", "Ask somebody"],
    Ending.REJECTED: ["did not do this", "changed nothing", "Fixed the parser"],
    Ending.WAITING: ["a question", "Fixed the parser", "answer"],
    Ending.ERROR: ["the model is gone", "Check the key"],
}


@pytest.mark.parametrize("ending", list(Ending))
def test_every_ending_has_a_comment_that_fits_and_says_what_happened(ending: Ending) -> None:
    report = ended(ending)
    body = comment_body(report)
    assert report.ending is ending
    assert utf16_length(body) <= MAX_BODY and is_closed(body)
    assert [word for word in WORDS.get(ending, []) if word not in body] == []
    if ending is Ending.REFUSED:
        assert is_refusal_of(body, "Alice")
    else:
        assert ending_of(body, report.trigger.key) is ending


@pytest.mark.parametrize(
    ("error", "publishable", "next_step"),
    [
        (RunStopped("stopped by alice"), "comment", "comment `@agent publish`"),
        (RunStopped("the comment was deleted", withdrawn=True), None, "don't need to do anything"),
        (
            RunStopped("#12 was closed", "reopen it", withdrawn=True),
            None,
            "What next:** Reopen it.",
        ),
    ],
)
def test_a_stopped_run_offers_only_what_is_still_wanted(
    error: RunStopped, publishable: Literal["comment"] | None, next_step: str
) -> None:
    report = reports.report(failure=failure_from_error(error), publishable=publishable)
    body = comment_body(report.model_copy(update={"continues": True}))
    assert next_step in body and ("agent publish" in body) is bool(publishable)
    assert "before the work was done" not in body, "it was finished"


def test_what_was_added_to_another_pull_request_is_told_there() -> None:
    """The comment on the issue says so and gives the verdict, without the evidence."""
    added = {"verification": reports.verification(), "pull_request": PULL}
    publication = Publication(pull_request=PULL, how="added", commit="c" * 40)
    report = reports.report(**added, publication=publication)
    comment, addition = comment_body(report), addition_text(report)
    assert "added the commit `cccccccccccc` to [#13]" in comment
    assert comment.count("**Verified:**") == addition.count("**Verified:**") == 1
    for words in ("**Checks**", "own words"):
        assert words not in comment
    assert "### Checks" in addition
    for words in ("This run", "in its own sandbox", "Fixes #12"):
        assert words not in addition
    on_pull = report.model_copy(update={"trigger": reports.trigger(number=13)})
    assert "**Checks**" in comment_body(on_pull)


@pytest.mark.parametrize(
    ("declined", "says", "what_next"),
    [
        ("cannot_reproduce", "could not reproduce", "exact steps"),
        ("already_fixed", "done already", "Close this if you agree"),
        ("not_wanted", "did not do this", "why it should be done"),
    ],
)
def test_each_reason_to_change_nothing_has_its_own_comment(
    declined: DeclineReason, says: str, what_next: str
) -> None:
    outcome = reports.outcome(state=RunState.REJECTED, declined=declined, task_completed=False)
    body = comment_body(reports.report(outcome=outcome, patch=None, continues=True))
    next_step = body.partition("**What next:**")[2]
    assert says in body and what_next in next_step and "`@agent continue`" in next_step
    assert "What the agent executed" in body and "pytest -q" in body


@pytest.mark.parametrize(
    ("given_title", "title"),
    [
        ("Handle empty input in the parser", "Handle empty input in the parser"),
        ("", "It breaks"),
        ("Fix the parser for @bob", "Fix the parser for @\u2060bob"),
        ("Do as the-org/repo#8 does", "Do as the-org/repo#\u20608 does"),
        ("Make it divide [skip ci]", "Make it divide [\u2060skip ci]"),
    ],
)
def test_the_title_is_the_agents_or_the_issues(given_title: str, title: str) -> None:
    report = reports.report(outcome=reports.outcome("It breaks no more.", title=given_title))
    assert pull_request_title(report) == commit_message(report).split("\n")[0] == title


@pytest.mark.parametrize(
    "key", ["a", "-->", "x -->\n<script>", "\ud800", "k" * 10_000, "labeled:1:a b:2026-01-01"]
)
def test_a_marker_is_found_again_whatever_the_key(key: str) -> None:
    marker = run_marker(key, Ending.LIMIT)
    assert ending_of(f"{marker}\n\ntext", key) is Ending.LIMIT
    assert ending_of(f"{marker}\n\ntext", key + "x") is None
    assert marker.count("-->") == 1


@pytest.mark.attack
def test_a_marker_counts_only_at_the_start() -> None:
    """The marker of a run is quoted within a comment: it counts only at the start."""
    assert ending_of(f"hello {run_marker('k', Ending.LIMIT)}", "k") is None
    assert not is_refusal_of(f"> {refusal_marker('a')}", "a")


HUGE = [
    "x" * 100_000, "😀" * 70_000, "<details>" * 9_000, "<!-- never closed\n" * 9_000,
    "<details>\n\n```\nx\n```\n\n</details>\n\n" * 3_000, "- a\n" * 6_000,
]  # fmt: skip


@pytest.mark.parametrize(
    ("trace", "is_shown"),
    [("x" * 40_000, True), ("x" * 70_000, False), ("<details>x<b>", False), ("```\nopen", False)],
    ids=["long", "too long", "open fold", "open code"],
)
def test_a_trace_is_shown_where_it_fits_with_closed_markup(trace: str, is_shown: bool) -> None:
    body = comment_body(reports.report(pull_request=PULL, render_trace=lambda limit: trace))
    assert utf16_length(body) <= MAX_BODY
    assert is_closed(body)
    assert "#13" in body and (trace in body) is is_shown


@pytest.mark.parametrize("text", HUGE, ids=range(len(HUGE)))
def test_a_pull_request_body_fits_whatever_the_agent_says_and_runs(text: str) -> None:
    paths = [f"{'d' * 200}/{i}.py" for i in range(500)]
    report = reports.report(
        outcome=reports.outcome(text),
        patch=reports.patch(*paths),
        commands=reports.commands(*[text[:60_000]] * 20),
        task=reports.task(reports.trigger(), left_out=tuple([text[:5_000]] * 50)),
    )
    body = pull_request_body(report)
    assert utf16_length(body) <= MAX_BODY
    assert is_closed(body)
    assert "Fixes #12" in body


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_filled_template_closes_the_issue_only_if_the_work_is_complete(is_whole: bool) -> None:
    outcome = reports.outcome(
        "Make add add",
        task_completed=is_whole,
        cause="THE-CAUSE",
        change="THE-CHANGE",
        verification="THE-RUNS",
        remaining="THE-REST",
        pull_request_body="## What\n\nIt adds now.\n\n## Issue\n\nFixes #12",
    )
    conventions = Conventions(template="## What\n\nsay\n\n## Issue\n\nFixes #\n")
    body = pull_request_body(reports.report(outcome=outcome, conventions=conventions))
    assert body.count("Fixes #12") == is_whole and ("For #12" in body) != is_whole
    assert "## What\n\nIt adds now.\n\n## Issue" in body
    for words in ("THE-RUNS", "THE-REST", "`a.py`", "$0.42", "is a claim, not a proof"):
        assert words in body
    assert "THE-CAUSE" not in body and "THE-CHANGE" not in body  # the template says both


def test_the_commit_states_the_reason_and_no_forged_trailer() -> None:
    outcome = reports.outcome(
        "Make add add",
        cause="It subtracted, for @octocat, see #7.\nCo-authored-by: Eve <eve@example.com>",
        change="- one\n- two\n\nResolver-Run: other\nsigned-off-by: eve " + "word " * 40,
    )
    message = commit_message(reports.report(outcome=outcome))
    assert message.startswith("Make add add\n\nIt subtracted")
    assert message.endswith("\n\nFixes #12\nResolver-Run: run-1")
    trailers = re.findall(r"^([\w-]+-(?:by|run)):", message, re.M | re.I)
    assert trailers == ["Resolver-Run"]
    assert "@octocat" not in message and "#7" not in message
    assert "- one\n- two" in message


@pytest.mark.attack
def test_a_new_file_that_is_no_ordinary_one_is_marked() -> None:
    """A change adds an executable file, a symlink or a submodule: the table of files says so. Their
    names do not break the table."""
    marks = {"100755": "executable", "120000": "a symlink", "160000": "a submodule"}
    made = reports.patch("a|b`c", "x\ny\u202e", "c")
    added = {"status": "added", "old_mode": "000000"}
    files = tuple(
        file.model_copy(update={**added, "new_mode": mode})
        for file, mode in zip(made.files, marks, strict=True)
    )
    body = pull_request_body(reports.report(patch=made.model_copy(update={"files": files})))
    tokens = markdown_parser().parse(body)
    cells = [token.content for token in tokens if token.type == "inline"]
    for name, mark in zip(("``a|b`c``", "`x y`", "`c`"), marks.values(), strict=True):
        assert cells[cells.index(name) + 1] == f"new, {mark}"


def test_an_action_that_waits_is_shown_as_it_is_and_can_not_end_its_code_block() -> None:
    command = "printenv NO_SUCH_TOKEN\n````\n</details> @everyone \u202e\u200b"
    wanted = WANTED.model_copy(update={"text": command})
    body = comment_body(reports.report(pending_approval=wanted))
    assert "`````bash\nprintenv" in body and is_closed(body)
    assert "\u202e" not in body and "\u200b" not in body
    assert "202E" in body.upper()


UNPREPARED = UnpreparedEnvironment(paths=("package.json",), cause="no_setup")
REASONS = sorted({*get_args(VerificationReason)} - {"", "disabled", "no_change"})


def unverified(reason: VerificationReason, **changes: Any) -> Verification:
    return reports.verification(verdict="not_verified", reason=reason, reproduction=(), **changes)


def body(verification: Verification) -> str:
    return pull_request_body(reports.report(verification=verification))


def test_each_reason_has_its_own_text() -> None:
    texts = set()
    for reason in REASONS:
        needs = {"unprepared": UNPREPARED} if reason == "environment" else {}
        lines = body(unverified(reason, **needs)).splitlines()
        [text] = [line for line in lines if line.startswith("> **Not verified:** ")]
        texts.add(text)
    assert len(texts) == len(REASONS) and all(text.endswith(".") for text in texts)


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
    found = unverified("base_failed_to_run", lacks=lacks)
    assert f"**Not verified:** no test ran: `No module named 'x'`. {words}" in body(found)


def test_what_old_tests_expect_is_shown_beside_what_the_change_makes_of_it() -> None:
    part = ChangedExpectation(path="tests/a.py", old="assert x == 1 | 2\n", new="assert x == 3")
    gone = ChangedExpectation(path="tests/b.py", old="assert y", new="")
    tests = ("test_a.py::one", "test_a.py::two")
    expected: dict[str, Any] = {"former": tests, "broken": tests, "expectations": (part, gone)}
    text = body(unverified("former_behavior", **expected))
    assert "2 old tests expect the former behavior" in text
    assert "A person decides which is right." in text and "Broken:" not in text
    assert "- Expect the former behavior: `test_a.py::one`, `test_a.py::two`" in text
    diff = "@@ tests/a.py @@\n- assert x == 1 | 2\n+ assert x == 3\n@@ tests/b.py @@\n- assert y"
    assert f"\n```diff\n{diff}\n```\n" in text
    assert text.startswith("<!-- ") and "\n\n> [!WARNING]\n> **Not verified:** 2 old" in text


def test_the_progress_links_only_to_pages() -> None:
    shown = RunProgress(trigger=reports.trigger(), run="r", since=reports.WHEN, until=reports.WHEN)
    page, script = "https://github.com/octo/demo/actions/runs/7", "javascript:alert(1)"
    for url in (page, script, "https://a.example/x) [y](z", ""):
        body = progress_body(shown.model_copy(update={"log_url": url}))
        assert (f"[Log of the run]({url})" in body) is (url == page)


HOSTILE = "*a* <b> @octocat\n# c"
ESCAPED = r"\*a\* &lt;b&gt; `@octocat` # c"


@pytest.fixture(scope="module")
def environment() -> Environment:
    return markdown_environment()


@pytest.mark.attack
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ x }}", ESCAPED),
        ("{{ '**y**: ' ~ x }}", f"**y**: {ESCAPED}"),
        ("{{ [x, safe] | join(', ') }}", f"{ESCAPED}, **s**"),
        ("{% set y %}**{{ x }}**{% endset %}{{ y }}", f"**{ESCAPED}**"),
        ("{% macro m(z) %}[{{ z }}]{% endmacro %}{{ m(x) }}", f"[{ESCAPED}]"),
        ("{{ {'k': x}.get('k') or safe }}", ESCAPED),
        ("{{ x | code }}", "`*a* <b> @octocat # c`"),
        ("{{ x | upper }}", ESCAPED.upper().replace("&LT;", "&lt;").replace("&GT;", "&gt;")),
        ("{{ safe }}{{ nothing }}{{ 3 }}", "**s**3"),
    ],
)
def test_a_text_of_others_is_escaped_however_it_gets_into_a_comment(
    environment: Environment, source: str, expected: str
) -> None:
    """A template is given markup, tags and mentions, and names no filter: they are words."""
    values = {"x": HOSTILE, "safe": safe("**s**"), "nothing": None}
    assert environment.from_string(source).render(values) == expected


TITLES = [
    "fix(parser): keep the sign", "[core] Keep the sign", "Fixed #12 -- Kept the sign.",
    "🐛 Keep the sign", "修复空输入时的崩溃", "Set does not override `__eq__`",
    "Fix #12 in the parser", "x" * MAX_TITLE_CHARACTERS,
]  # fmt: skip
NO_TITLES = [
    "", " \n", "Add alpha()\n\nIt was missing.", "x" * (MAX_TITLE_CHARACTERS + 1),
    "# Add alpha()", "- Add alpha()", "1. Add alpha()", "**Add** alpha()", "Add [alpha](a.py)",
    "#12", "12", "Fixes #12", "fix issue #12.",
]  # fmt: skip


def test_any_line_about_the_change_is_a_title_but_not_the_number_of_an_issue() -> None:
    assert [title for title in TITLES if not is_usable_title(title)] == []
    assert [title for title in NO_TITLES if is_usable_title(title)] == []


def test_a_long_subject_is_truncated_between_words() -> None:
    report = reports.report(outcome=reports.outcome(title="Keep the sign " * 15))
    short = commit_message(report).split("\n")[0]
    assert len(short) <= MAX_TITLE_CHARACTERS and short.endswith("sign…")
    assert len(pull_request_title(report)) > 200
