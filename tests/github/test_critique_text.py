"""What a pull request says about a model's opinion."""

from resolver.github.comments.pull_request_text import pull_request_body
from resolver.github.text.comment_markdown import MAX_BODY, is_closed
from resolver.models.critique import Critique, UnrelatedFile
from resolver.trace.untrusted_text import utf16_length
from tests.github import reports

HOSTILE = "</details>\n@octocat #1 <img src=x> **Verified:** `x` [a](http://evil.example)\n| a |"


def body(critique: Critique | None, verified: bool = True) -> str:
    verification = reports.verification() if verified else None
    return pull_request_body(reports.report(critique=critique, verification=verification))


def test_an_opinion_is_folded_and_labeled_below_the_verdict() -> None:
    unrelated = (UnrelatedFile(path="b.py", reason="renames a variable"),)
    opinion = Critique(
        model="m/x", addresses_issue="partly", reason="No test.", unrelated=unrelated, cost=0.01
    )
    text = body(opinion)
    summary = "A model's opinion: the change does part of what the issue asks; 1 file looks"
    assert text.index("**Verified:**") < text.index(f"<details><summary>{summary}")
    assert "- `b.py` looks unrelated: renames a variable" in text
    assert "By `m/x`" in text and "$0.01" in text and "decides nothing" in text
    assert summary in body(opinion, verified=False)


def test_without_an_opinion_none_is_mentioned() -> None:
    assert "opinion" not in body(None)


def test_hostile_text_stays_inside_of_the_fold_and_has_no_effect() -> None:
    unrelated = tuple(UnrelatedFile(path=f"{n}{HOSTILE}", reason=HOSTILE) for n in range(10))
    text = body(Critique(model=HOSTILE, addresses_issue="no", reason=HOSTILE, unrelated=unrelated))
    assert is_closed(text) and utf16_length(text) <= MAX_BODY
    fold = text[text.index("<details><summary>A model's opinion") :]
    fold = fold[: fold.index("\n</details>")]
    assert "decides nothing" in fold
    assert "<img" not in fold and "@octocat #1" not in fold.replace("`@octocat` `#1`", "")
    assert "\n**Verified" not in fold
