"""Every ending has its words; they fit, they are closed, and they carry their marker."""

import re
from datetime import timedelta
from typing import Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolver.errors import (
    Cause,
    ForgeError,
    LimitReached,
    ModelError,
    OverBudget,
    PolicyViolation,
    QuotaReached,
    Refused,
    ResolverError,
    RunStopped,
)
from resolver.github.comments.comment_text import comment_body
from resolver.github.comments.markers import ending_of, is_refusal_of, refusal_marker, run_marker
from resolver.github.comments.pull_request_text import (
    commit_message,
    new_title,
    pull_request_body,
    pull_request_title,
)
from resolver.github.comments.report import Ending, Report, RunFailure, failure_from_error
from resolver.github.text.comment_markdown import MAX_BODY, fit, is_closed
from resolver.github.text.markdown import markdown_parser
from resolver.models.approval import PendingApproval, RiskLevel
from resolver.models.pull_request import OpenPullRequest, PublishedReview, PullRequestContext
from resolver.models.repository import Conventions
from resolver.models.run import (
    FileChange,
    Outcome,
    Patch,
    Publication,
    PublicationMethod,
    PullRequest,
    ResolvedConflict,
    RunState,
    TriggerKind,
)
from resolver.trace.markdown import utf16_length
from resolver.verification.claims import checks_of_agent
from resolver.verification.readiness import missing_verification
from tests.github import reports
from tests.verification.test_course import Log

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
        Ending.OVER_BUDGET: OverBudget("the $50.00 of November are spent", "wait for December"),
        Ending.CEILING: QuotaReached("10 runs were begun today", "wait until tomorrow"),
        Ending.ERROR: ModelError("the model is gone", "check the key"),
    }
    states = {
        Ending.STUCK: RunState.STUCK,
        Ending.REJECTED: RunState.REJECTED,
        Ending.WAITING: RunState.AWAITING_USER_INPUT,
    }
    if ending in errors:
        return reports.report(failure=failure_from_error(errors[ending]), trace_markdown=TRACE)
    if ending in states:
        outcome = reports.outcome(state=states[ending], reason="so it is", task_completed=False)
        return reports.report(outcome=outcome, trace_markdown=TRACE)
    pull = PULL if ending is Ending.PULL_REQUEST else None
    answers = ending is Ending.ANSWER
    review = REVIEW if ending is Ending.REVIEW else None
    wanted = WANTED if ending is Ending.CONFIRMATION else None
    return reports.report(
        pull_request=pull,
        review=review,
        pending_approval=wanted,
        trace_markdown=TRACE,
        answers=answers,
    )


WANTED = PendingApproval(
    kind="cmd_run", text="rm -rf ~", level=RiskLevel.HIGH, reasons=("destroys",)
)
REVIEW = PublishedReview(commit="d" * 40, url="https://x/r", placed=2, beside=1)


@pytest.mark.parametrize("cause", get_args(Cause))
@pytest.mark.parametrize("publishable", ["", "comment", "folder"])
def test_every_cause_has_words_of_its_own_and_a_way_out(
    cause: Cause, publishable: Literal["", "comment", "folder"]
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
    assert ("comment `@agent publish` to publish the change" in body) is (publishable == "comment")
    assert ("`resolver publish DIR`" in body) is (publishable == "folder")


@pytest.mark.parametrize(
    ("publishable", "offer"),
    [
        ("", ""),
        ("comment", "comment `@agent publish` to publish the change"),
        ("folder", "`resolver publish DIR`"),
    ],
)
@pytest.mark.parametrize("ending", [Ending.POLICY, Ending.STOPPED, Ending.PULL_REQUEST])
def test_a_kept_change_is_offered_whatever_kept_it_from_being_published(
    ending: Ending, publishable: Literal["", "comment", "folder"], offer: str
) -> None:
    patch = Publication(pull_request=PULL, how="patch", patch="--- a", why="it is protected")
    kept = {"publishable": publishable, "continues": True}
    if ending is Ending.PULL_REQUEST:
        kept |= {"publication_method": "patch", "publication": patch}
    body = comment_body(ended(ending).model_copy(update=kept))
    assert is_closed(body) and "  " not in body.partition("**What next:**")[2].partition("\n")[0]
    if offer:
        assert offer in body
    else:
        assert " publish" not in body.replace("not publish", "")


def test_only_a_refusal_that_settings_decide_may_end_otherwise() -> None:
    bound = failure_from_error(PolicyViolation("it is too large", settings_decide=True))
    assert not bound.is_lasting and not failure_from_error(ForgeError("GitHub said so")).is_lasting
    assert failure_from_error(PolicyViolation("it adds what looks like a credential")).is_lasting
    body = comment_body(reports.report(failure=bound, publishable="folder"))
    assert "Once the settings allow it, run `resolver publish DIR` to publish it" in body


def test_the_log_of_an_error_is_named_where_it_has_a_page() -> None:
    failure = RunFailure(kind="error", what="a fault")
    told = comment_body(reports.report(failure=failure, log_url="https://x/runs/7"))
    assert "Ask again with `@agent`; if it fails again, see [the log](https://x/runs/7)." in told
    told = comment_body(reports.report(failure=failure))
    assert "Ask again with `@agent`.\n" in told and "log" not in told.partition("<details>")[0]


@pytest.mark.parametrize("ending", list(Ending))
def test_every_ending_has_one_comment_that_fits_and_is_closed(ending: Ending) -> None:
    report = ended(ending)
    body = comment_body(report)
    assert report.ending is ending
    assert utf16_length(body) <= MAX_BODY
    assert is_closed(body)
    if ending is Ending.REFUSED:
        assert is_refusal_of(body, "Alice")
    else:
        assert ending_of(body, report.trigger.key) is ending


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        (
            Ending.PULL_REQUEST,
            ["#13", "https://github.com/octo/demo/pull/13", "How it was made"],
        ),
        (Ending.NO_CHANGE, ["nothing to change", "Fixed the parser", "@agent"]),
        (Ending.ANSWER, ["Fixed the parser", "Nothing was changed"]),
        (Ending.REVIEW, ["[reviewed this](https://x/r)", "2 comments and 1 remark", "0.42"]),
        (Ending.LIMIT, ["limit", "are spent", "Raise the budget", "`a.py`"]),
        (Ending.STUCK, ["going in circles", "so it is"]),
        (Ending.STOPPED, ["stopped", "a person cancelled it"]),
        (Ending.POLICY, ["did not publish", ".github/workflows/ci.yml", "`a.py`"]),
        (Ending.REFUSED, ["alice may not", "Ask somebody"]),
        (Ending.REJECTED, ["did not do this", "changed nothing", "Fixed the parser"]),
        (Ending.WAITING, ["a question", "Fixed the parser", "answer"]),
        (Ending.ERROR, ["the model is gone", "Check the key"]),
    ],
)
def test_a_comment_says_what_happened_and_what_next(ending: Ending, words: list[str]) -> None:
    body = comment_body(ended(ending))
    for word in words:
        assert word in body


def test_a_comment_says_what_was_pinned() -> None:
    left_out = ("301 comments written after the request", "#4, opened after the request", "other")
    report = reports.report(base="d" * 40)
    assert report.task is not None
    known = report.task.model_copy(update={"left_out": left_out})
    body = comment_body(report.model_copy(update={"task": known}))
    at = f"{report.trigger.at:%Y-%m-%d %H:%M:%S} UTC"
    told = f"| Read | commit `{'d' * 12}`; the conversation as of {at}, without 302 later texts |"
    assert told in body
    made = report.trigger.at + timedelta(seconds=1)
    late = report.model_copy(update={"base_committed_at": made})
    assert f"commit `{'d' * 12}`, made after the request; the" in comment_body(late)


def test_a_comment_on_an_error_before_anything_was_read_needs_only_the_trigger() -> None:
    error = ForgeError("it is gone", "look elsewhere")
    report = Report(trigger=reports.trigger(), run="r", failure=failure_from_error(error))
    assert "it is gone" in comment_body(report)


def test_a_refusal_tells_nothing_but_the_refusal() -> None:
    assert len(comment_body(ended(Ending.REFUSED))) < 400


def test_a_pull_request_found_by_a_later_run_is_told_without_numbers() -> None:
    body = comment_body(Report(trigger=reports.trigger(), run="r", pull_request=PULL))
    assert "[#13]" in body
    assert "may not be complete" not in body


def test_a_request_without_a_login_is_worded_without_one() -> None:
    nobody = reports.trigger(actor=reports.Actor(login=""))
    refused = failure_from_error(Refused("the token may not push", "use another"))
    assert "Sorry, Resolver can't" in comment_body(Report(trigger=nobody, run="r", failure=refused))
    assert "Requested by" not in pull_request_body(reports.report(trigger=nobody))


def test_the_pull_request_says_what_closes_what_changed_and_what_it_cost() -> None:
    body = pull_request_body(reports.report())
    for words in ("Fixes #12", "`a.py`", "+3 −1", "$0.42", "14", "`test/model`", "`alice`"):
        assert words in body
    assert "are claims, not proofs" in body
    assert ending_of(body, "issue_comment:77") is Ending.PULL_REQUEST


def test_what_the_agent_told_in_parts_has_its_headings() -> None:
    parts = {
        "cause": "It subtracted. @octocat",
        "change": "```\nnever closed",
        "verification": "`pytest`: 3 passed",
        "remaining": "<script>x</script>",
    }
    outcome = reports.outcome(message="Make add add", **parts)
    body = pull_request_body(reports.report(outcome=outcome))
    headings = ("What was wrong", "What changed", "What the agent checked", "What to look at")
    places = [body.index(f"### {heading}\n") for heading in headings]
    assert places == sorted(places) and is_closed(body)
    assert "It subtracted." in body and "left no summary" not in body
    assert "```html\n<script>x</script>\n```" in body and " @octocat" not in body
    assert "Make add add" not in body  # it is the title


def test_without_parts_the_message_is_the_description() -> None:
    body = pull_request_body(reports.report(outcome=reports.outcome(message="Mend it\n\nWell.")))
    assert "Well." in body and "What was wrong" not in body


def test_the_agents_own_runs_are_never_called_verified() -> None:
    body = pull_request_body(reports.report())
    assert "not independently verified" in body
    assert "**Verified" not in body


def test_no_evidence_is_said() -> None:
    assert "Not verified" in pull_request_body(reports.report(commands=()))


@pytest.mark.parametrize("how", ["pushed", "updated"])
def test_a_sentence_behind_a_warning_stands_on_its_own(how: PublicationMethod) -> None:
    pull = PullRequestContext(
        number=5, head="a" * 40, base_branch="main", conflicts=("a.py",), author="mona"
    )
    asked = reports.trigger()
    conflicts = (ResolvedConflict(path="a.py", kept="merged"),)
    told = reports.report(
        trigger=asked,
        task=reports.task(asked, pull=pull),
        unverified="unchecked",
        draft=True,
        publication_method=how,
        publication=Publication(how=how, branch="work", commit="c" * 40, conflicts=conflicts),
        pull_request=PULL.model_copy(update={"draft": True}),
    )
    lines = comment_body(told).splitlines()
    quoted = [at for at, line in enumerate(lines) if line.startswith(">")]
    assert quoted and all(lines[at + 1] == "" for at in quoted)
    assert any(line.startswith("The pull request is **a draft again**") for line in lines)


def test_a_check_that_was_not_seen_separately_is_never_said_to_be_none() -> None:
    log = Log()
    log.ran("python3 -c 'import calc; assert calc.add(1, 1) == 2'", 1, "AssertionError")
    course = log.ran("sed -i s/-/+/ calc.py && python3 test_calc.py")
    told = reports.report(
        check_history=course,
        commands=checks_of_agent(course),
        unverified=missing_verification(reports.outcome(), course),
        draft=True,
        pull_request=PullRequest(title="Add, not subtract", body="", number=5, draft=True),
    )
    body, comment = pull_request_body(told), comment_body(told)
    assert (
        "checks may have run, but their results can't be separated from those of other commands"
        in body
    )
    assert "the result of its checks can't be separated from other commands" in comment
    for text in (body, comment):
        assert "| Reproduced | not seen separately from other commands |" in text
        assert "| Checked | not seen separately from other commands |" in text
        assert "no check was" not in text and "no test" not in text


def test_an_unknown_price_is_said() -> None:
    report = reports.report(outcome=reports.outcome(cost=None))
    assert "unknown price" in pull_request_body(report)


def test_unfinished_work_does_not_close_the_issue() -> None:
    body = pull_request_body(reports.report(outcome=reports.outcome(task_completed=False)))
    assert "Fixes #12" not in body
    assert "For #12" in body
    assert "may not be complete" in body


def test_what_follows_the_word_on_unfinished_work_is_a_paragraph_of_its_own() -> None:
    opened = PullRequest(title="t", body="b", number=31, url="https://github.com/o/n/pull/31")
    ended = reports.outcome(task_completed=False, reason="two tests fail")
    body = comment_body(reports.report(pull_request=opened, outcome=ended))
    assert "two tests fail.\n\n<details>" in body


def test_a_local_pull_request_names_no_issue_and_has_no_marker() -> None:
    asked = reports.trigger(kind=TriggerKind.LOCAL, number=None, repository="/home/me/x")
    body = pull_request_body(reports.report(trigger=asked))
    assert "#12" not in body
    assert "<!--" not in body


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("Handle empty input in the parser.\n\nMore.", "Handle empty input in the parser"),
        ("## Summary\n\nI fixed it", "Fix #12: It breaks"),
        ("Done!", "Fix #12: It breaks"),
        ("All tests passed.\n\nI changed the parser.", "Fix #12: It breaks"),
        ("I'm ready to submit", "Fix #12: It breaks"),
        ("Add alpha()", "Add alpha()"),
        ("", "Fix #12: It breaks"),
        ("Here is what I changed:", "Fix #12: It breaks"),
        ("x" * 500, "Fix #12: It breaks"),
        ("**Fix** the `parser` for @bob", "Fix the parser for @\u2060bob"),
        ("Do as the-org/repo#8 does", "Do as the-org/repo#\u20608 does"),
        ("Make it divide [skip ci]", "Make it divide [\u2060skip ci]"),
    ],
)
def test_the_title_is_the_agents_line_or_the_issues(message: str, title: str) -> None:
    assert pull_request_title(reports.report(outcome=reports.outcome(message))) == title


def test_the_title_that_the_requester_gave_stays_as_it_is() -> None:
    asked = reports.trigger(instruction='fix it, and title it "add Alpha()"')
    conventions = Conventions(subjects=tuple(f"fix: word {n}" for n in range(20)))
    told = reports.report(trigger=asked, conventions=conventions)
    given_ = told.model_copy(update={"outcome": reports.outcome("add Alpha()\n\nIt was missing.")})
    assert pull_request_title(given_) == "add Alpha()"
    asked = reports.trigger(instruction="fix it and call the pull request Support for alpha")
    named = {"trigger": asked, "outcome": reports.outcome("Support for alpha\n\nIt was missing.")}
    assert pull_request_title(told.model_copy(update=named)) == "Support for alpha"
    other = told.model_copy(update={"outcome": reports.outcome("Handle beta()")})
    assert pull_request_title(other) == "fix: handle beta()"


def test_an_issues_title_that_says_what_to_change_stays_as_it_is() -> None:
    asked = reports.trigger()
    for title in ("Add alpha()", "Add a function alpha"):
        told = reports.report(
            task=reports.task(asked, title=title), outcome=reports.outcome("Done")
        )
        assert pull_request_title(told) == title


def test_a_new_title_that_says_nothing_leaves_the_old_one() -> None:
    said = reports.outcome("Add mul", pull_request_title="All tests passed")
    assert new_title(reports.report(outcome=said)) == ""
    said = reports.outcome("Add mul", pull_request_title="Make add add, and add mul")
    assert new_title(reports.report(outcome=said)) == "Make add add, and add mul"


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        (reports.outcome("Handle negative numbers\n\nThey add up."), "Handle negative numbers"),
        (
            reports.outcome("## Summary\n\nadd() takes negative numbers. It did not."),
            "add() takes negative numbers",
        ),
        (
            reports.outcome("Done!", change="- `add` takes them now; it failed."),
            "add takes them now",
        ),
        (reports.outcome("```\na = b\n```\nHere it is:"), "Change a.py and 1 other file"),
        (reports.outcome(""), "Change a.py and 1 other file"),
        (reports.outcome("All tests passed. I am done."), "Change a.py and 1 other file"),
    ],
)
def test_a_commit_on_a_pull_request_says_what_was_changed(said: Outcome, subject: str) -> None:
    pull = OpenPullRequest(
        number=3, title="It breaks", branch="b", head="0" * 40, base_branch="main"
    )
    files = tuple(
        FileChange(path=path, status="modified", old_mode="100644", new_mode="100644")
        for path in ("a.py", "b.py")
    )
    patch = Patch(base="0" * 40, tree="1" * 40, files=files)
    asked = reports.trigger()
    told = Report(
        trigger=asked, run="r", task=reports.task(asked, follows=pull), outcome=said, patch=patch
    )
    assert commit_message(told).splitlines()[0] == subject


@pytest.mark.parametrize(
    "key", ["a", "-->", "x -->\n<script>", "\ud800", "k" * 10_000, "labeled:1:a b:2026-01-01"]
)
def test_a_marker_is_found_again_whatever_the_key(key: str) -> None:
    marker = run_marker(key, Ending.LIMIT)
    assert ending_of(f"{marker}\n\ntext", key) is Ending.LIMIT
    assert ending_of(f"{marker}\n\ntext", key + "x") is None
    assert marker.count("-->") == 1


def test_a_marker_counts_only_at_the_start() -> None:
    assert ending_of(f"hello {run_marker('k', Ending.LIMIT)}", "k") is None
    assert not is_refusal_of(f"> {refusal_marker('a')}", "a")


HUGE = [
    "x" * 5_000_000,
    "```\n" + "line\n" * 200_000 + "```",
    "`" * 70_000,
    "😀" * 70_000,
    "汉字" * 70_000,
    "<details>" * 9_000,
    "</details>\n\n" * 9_000,
    "<!-- never closed\n" * 9_000,
    "a\n\n" * 60_000,
    "\n\n".join(
        f"<details>\n<summary>{i}</summary>\n\n```\n{i}\n```\n\n</details>" for i in range(3000)
    ),
    "> " * 30_000,
    "- a\n" * 20_000,
]


@pytest.mark.parametrize("trace", HUGE, ids=range(len(HUGE)))
@pytest.mark.timeout(60)
def test_a_trace_of_any_size_and_shape_fits_and_is_closed(trace: str) -> None:
    body = comment_body(reports.report(pull_request=PULL, trace_markdown=trace))
    assert utf16_length(body) <= MAX_BODY
    assert is_closed(body)
    assert "#13" in body


@pytest.mark.parametrize("text", HUGE, ids=range(len(HUGE)))
@pytest.mark.timeout(60)
def test_a_pull_request_body_fits_whatever_the_agent_says_and_runs(text: str) -> None:
    paths = [f"{'d' * 200}/{i}.py" for i in range(2_000)]
    report = reports.report(
        outcome=reports.outcome(text),
        patch=reports.patch(*paths),
        commands=reports.commands(*[text[:60_000]] * 50),
        task=reports.task(reports.trigger(), left_out=tuple([text[:5_000]] * 200)),
    )
    body = pull_request_body(report)
    assert utf16_length(body) <= MAX_BODY
    assert is_closed(body)
    assert "Fixes #12" in body


@pytest.mark.parametrize("text", [HUGE[1], HUGE[6], HUGE[7], "## What\n\n" * 3_000], ids=range(4))
@pytest.mark.timeout(60)
def test_a_body_fits_whatever_the_repositorys_template(text: str) -> None:
    for template in (f"## What\n\nx\n\n## More\n\n{text[:20_000]}", text[:20_000]):
        conventions = Conventions(template=template)
        report = reports.report(outcome=reports.outcome("a b c " * 9_000), conventions=conventions)
        body = pull_request_body(report)
        assert utf16_length(body) <= MAX_BODY
        assert is_closed(body)
        assert "Fixes #12" in body and "Not verified" not in body


def test_the_commit_says_why_and_forges_no_trailer() -> None:
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


def test_the_commit_of_unfinished_work_closes_nothing() -> None:
    report = reports.report(outcome=reports.outcome(task_completed=False))
    assert "For #12\n" in commit_message(report) and "Fixes" not in commit_message(report)


def test_title_and_subject_follow_the_repositorys_style() -> None:
    subjects = ("fix: a", "feat: b", "fix: c", "docs: d", "fix: e")
    report = reports.report(
        outcome=reports.outcome("Make add add for all the numbers that anybody could want to add"),
        conventions=Conventions(subjects=subjects),
    )
    assert pull_request_title(report).startswith("fix: make add add for all the numbers")
    subject = commit_message(report).partition("\n")[0]
    assert len(subject) <= 72 and pull_request_title(report).startswith(subject.rstrip("…"))
    untitled = report.model_copy(update={"outcome": reports.outcome("")})
    assert pull_request_title(untitled) == "fix: it breaks"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["word ", "\n\n", "```\n", "<details>\n\n", "</details>\n\n", "<!--", "- ", "> "]
        ),
        max_size=40,
    ).map("".join),
    st.integers(min_value=300, max_value=2_000),
)
def test_a_fitted_trace_is_short_and_closed(text: str, limit: int) -> None:
    fitted = fit(text * 5, limit)
    assert utf16_length(fitted) <= limit
    assert is_closed(fitted)


def test_a_long_trace_keeps_its_first_and_last_blocks() -> None:
    blocks = [f"#### {i}\n\n```\n{'x' * 300}\n```" for i in range(200)]
    fitted = fit("\n\n".join(blocks), 10_000)
    assert "#### 0\n" in fitted
    assert "#### 199\n" in fitted
    assert "left out" in fitted


def test_a_new_executable_file_is_marked() -> None:
    made = reports.patch("tool.sh")
    file = made.files[0].model_copy(
        update={"status": "added", "old_mode": "000000", "new_mode": "100755"}
    )
    changed = made.model_copy(update={"files": (file,)})
    assert "`tool.sh` | new, executable |" in pull_request_body(reports.report(patch=changed))


def test_a_file_name_cannot_break_the_table() -> None:
    body = pull_request_body(reports.report(patch=reports.patch("a|b`c.py", "x\ny\u202e.py")))
    tokens = markdown_parser().parse(body)
    cells = [t.content for t in tokens if t.type == "inline" and ".py" in t.content]
    assert cells[:2] == ["``a|b`c.py``", "`x y.py`"]
    assert cells[2:] == ["Start with ``a|b`c.py``, `x y.py`."]
