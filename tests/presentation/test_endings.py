"""Tests of the words of each ending's comment and of the pull requests: nothing is said twice."""

import re

import pytest

from resolver.github.comments.comment_text import comment_body
from resolver.github.comments.pull_request_text import pull_request_body
from resolver.github.text.markers import Ending
from tests.github.reports import verification
from tests.github.test_comment_text import ended
from tests.parts.github_markdown import render_github_markdown


@pytest.mark.parametrize("ending", [*Ending, None])
def test_nothing_is_said_twice_and_no_markup_is_left_in_a_summary(ending: Ending | None) -> None:
    """A fold's summary is HTML, in which Markdown has no effect. None: that of a pull request."""
    opened = ended(Ending.PULL_REQUEST).model_copy(update={"verification": verification()})
    text = comment_body(ended(ending)) if ending else pull_request_body(opened)
    shown = re.sub(r"<!--.*?-->|<details.*</details>|```.*?```|^\|.*$", "", text, flags=re.S | re.M)
    parts = re.split(r"(?<=[.:?])\s+|\n+", shown)
    sentences = [sentence for sentence in parts if len(sentence.split()) > 3]
    assert sorted(set(sentences)) == sorted(sentences)
    assert text.count("**What next:**") <= 1
    for summary in re.findall(r"<summary>(.*?)</summary>", render_github_markdown(text), re.S):
        assert "`" not in summary and "**" not in summary, summary
