"""Tests of the agent's text in Markdown traces: code, bold text and lists, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.trace.untrusted_text import quote_markdown
from tests.trace.test_markdown import read


def test_code_bold_text_and_lists_are_kept() -> None:
    page = read(
        quote_markdown("**Next:** run `a_b` and\n- `x`\n- see `y`\n\n```py\nf(1)\n```\nend")
    )
    assert page.code == ["a_b", "x", "y", "f(1)\n"]
    assert {"strong", "ul", "li", "pre", "blockquote"} <= set(page.tags)


@pytest.mark.parametrize(
    "text",
    [
        "[x](https://evil.example) <b>@octocat</b> #1 ![i](https://evil.example/i.png)",
        "- # heading\n- - -\n- > quote\n- 1. x",
        "a `b\nc` d",
        "```\nnever closed @octocat #1",
        "~~~\n```\n~~~\n@octocat",
        "\ue0000\ue001 `x` \ue0009\ue001",
        "$`x`$ **@octocat** **#1**",
        "``",
        "*" * 5_000,
        "`" * 5_000,
        "```\n" * 5_000,
    ],
)
def test_all_other_markup_is_inert(text: str) -> None:
    page = read(quote_markdown(text))
    assert not {"a", "img", "h1", "h2", "h3", "b", "ol"} & set(page.tags)


@given(st.text(alphabet="`~*-_ \n\\@#:ab1.$<>[](){}!&", max_size=120))
def test_any_text_is_closed_and_inert(text: str) -> None:
    read(f"{quote_markdown(text)}\n\nafter")
