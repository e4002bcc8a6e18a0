"""A mention counts only where a person wrote it to ask for something."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resolver.triggers.mention import find_instruction


@pytest.mark.parametrize(
    ("body", "instruction"),
    [
        ("@agent fix this", "fix this"),
        ("@Agent, please fix", "please fix"),
        ("**@agent** go", "go"),
        ("please look (@agent)", "please look ("),
        ("fix it @agent", "fix it"),
        ("> a quote\n\n@agent do it", "do it"),
        ("`@agent` is how; @agent yes", "yes"),
        ("- @agent in a list", "in a list"),
        ("@agent run\n```\ncode\n```", "run\n```\ncode\n```"),
        ("Hi @agent: fix <!-- hidden -->now", "fix now"),
        ("@agent", ""),
        ("Thanks @agent.", "Thanks"),
        ("\u201c@agent fix\u201d", "fix\u201d"),
    ],
)
def test_a_real_mention_gives_what_follows(body: str, instruction: str) -> None:
    assert find_instruction(body, "@agent") == instruction


@pytest.mark.parametrize(
    "body",
    [
        "",
        "no mention",
        "`@agent` fix",
        "``a ` @agent``",
        "```\n@agent fix\n```",
        "~~~\n@agent fix",
        "    @agent fix",
        "> @agent fix",
        "> quoted\n@agent lazy continuation",
        "- > @agent fix",
        "[@agent](http://example.com)",
        "[x](http://example.com/@agent)",
        '[x](http://example.com "@agent fix")',
        "![@agent fix](a.png)",
        "https://example.com/@agent",
        "https://example.com/?q=(@agent",
        "<https://example.com/@agent>",
        "mail@agent.io",
        "@agent.io",
        "@agentic",
        "@agent-x @agent_x @agent/team @agent's",
        "a@agent b",
        "@@agent",
        "<!-- @agent fix -->",
        "<!-- \n\n@agent fix",
        "<div hidden>\n\n@agent fix\n\n</div>",
        "<details>\n\n@agent fix\n\n</details>",
        "<blockquote>\n\n@agent fix\n\n</blockquote>",
        "<code>@agent fix</code>",
        "~~@agent fix~~",
        "[x]: http://example.com '@agent'",
        "[^1]: @agent fix",
        "@\u200bagent fix",
        "&#64;agent fix",
    ],
)
def test_what_only_looks_like_a_mention_is_none(body: str) -> None:
    assert find_instruction(body, "@agent") is None


def test_another_word_can_be_the_mention() -> None:
    assert find_instruction("/fix it", "/fix") == "it"
    assert find_instruction("http://x/fix it", "/fix") is None


def test_what_the_parser_takes_long_for_hides_no_mention_before_it() -> None:
    hostile = "![" * 20_000
    found = find_instruction(f"@agent fix this {hostile}", "@agent")
    assert found is not None and found.startswith("fix this")
    assert find_instruction(f"{hostile} @agent fix this", "@agent") is None


def test_one_long_word_of_mentions_takes_no_minutes() -> None:
    """Anybody can write it, and it is read before anybody is asked who they are."""
    begun = time.process_time()
    assert find_instruction("@agent" * 10_000, "@agent") is None
    assert time.process_time() - begun < 5


PIECES = [
    "@agent",
    "`",
    "```",
    "\n",
    "\n\n",
    "> ",
    "<!--",
    "-->",
    "[",
    "](u)",
    " ",
    "a",
    "<b>",
    "\ue000",
    "0\ue001",
    "    ",
    "~~",
    "*",
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_any_soup_gives_an_answer_that_is_part_of_it(soup: str) -> None:
    found = find_instruction(soup, "@agent")
    assert found is None or found == "" or "@agent" in soup


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_nothing_inside_a_fence_is_a_mention(soup: str) -> None:
    inside = soup.replace("```", "")
    assert find_instruction(f"~~~~\n{inside}\n~~~~", "@agent") is None
