"""Tests of the words of each ending's comment and of the pull requests: nothing is said twice."""

import re

from resolver.github.comments.report import Ending
from tests.parts.cases import check_each
from tests.parts.github_markdown import render_github_markdown
from tests.presentation.endings import comments, pull_requests

COMMENTS = comments()
TEXTS = {**COMMENTS, **{f"pull request, {name}": text for name, text in pull_requests().items()}}


def visible_sentences(text: str) -> list[str]:
    """Return the sentences outside of comments, code, tables and folds."""
    text = re.sub(r"<!--.*?-->|<details.*</details>|```.*?```|^\|.*$", "", text, flags=re.S | re.M)
    return [
        sentence for sentence in re.split(r"(?<=[.:?])\s+|\n+", text) if len(sentence.split()) > 3
    ]


def test_there_is_a_comment_for_every_ending() -> None:
    endings = {
        found[1] for text in COMMENTS.values() if (found := re.search(r" ending=(\w+)", text))
    }
    assert {ending.value for ending in Ending} - endings <= {"refused"}


def test_nothing_is_said_twice() -> None:
    def check(name: str) -> None:
        sentences = visible_sentences(TEXTS[name])
        assert sorted(set(sentences)) == sorted(sentences)
        headings = re.findall(r"^(?:#+ |\*\*)(What [a-z ]+)", TEXTS[name], re.M)
        assert len(set(headings)) == len(headings)

    check_each(TEXTS, check)


def test_a_comment_begins_with_the_result_and_has_at_most_one_next_step() -> None:
    def check(name: str) -> None:
        text = re.sub(r"<!--.*?-->", "", COMMENTS[name], flags=re.S).strip()
        beginnings = r"Resolver |The run |There was |Something|This seems|Sorry|> "
        assert re.match(beginnings, text), text[:80]
        assert text.count("**What next:**") <= 1
        assert len(re.findall(r"[0-9]+ iterations?,", text)) <= 1, "the run's numbers are repeated"

    check_each(COMMENTS, check)


def test_no_markup_is_left_in_the_words() -> None:
    """A fold's summary is HTML, in which Markdown has no effect."""

    def check(name: str) -> None:
        html = render_github_markdown(TEXTS[name])
        for summary in re.findall(r"<summary>(.*?)</summary>", html, re.S):
            assert "`" not in summary and "**" not in summary, summary

    check_each(TEXTS, check)
