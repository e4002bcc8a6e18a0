"""Tests of mentions, which count only in prose of a person."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resolver.github.events.mentions import find_instruction
from tests.github.markup import soup


@pytest.mark.parametrize(
    ("body", "instruction"),
    [
        ("@agent fix this", "fix this"),
        ("**@agent** go", "go"),
        ("fix it @agent", "fix it"),
        ("> a quote\n\n@agent do it", "do it"),
        ("`@agent` is how; @agent yes", "yes"),
        ("@agent run\n```\ncode\n```", "run\n```\ncode\n```"),
        ("Hi @agent: fix <!-- hidden -->now", "fix now"),
        ("@agent", ""),
        ("\u201c@agent fix\u201d", "fix\u201d"),
        ("你好，@agent 请修复", "请修复"),
        ("（@agent please fix）", "please fix）"),
        ("@agent👍 fix", "👍 fix"),
        ("hi<br>@agent fix", "fix"),
        ("<sub>@agent fix</sub>", "fix</sub>"),
        ("`code`@agent fix", "fix"),
        ("![picture](u)@agent fix", "fix"),
        ('<a name="top">\n\n@agent fix', "fix"),
        ('<a id="top"></a>@agent fix', "fix"),
        ('<img style="display:none" src="x">@agent fix', "fix"),
        ("@agent[bot] fix", "fix"),
        ("这是为什么，@agent？", "这是为什么?"),
    ],
)
def test_a_mention_gives_the_text_that_follows(body: str, instruction: str) -> None:
    assert find_instruction(body, "@agent") == instruction


@pytest.mark.attack
@pytest.mark.parametrize(
    "body",
    [
        "",
        "no mention",
        "`@agent` fix",
        "```\n@agent fix\n```",
        "~~~\n@agent fix",
        "    @agent fix",
        "> @agent fix",
        "> quoted\n@agent lazy continuation",
        "[@agent](http://example.com)",
        '[x](http://example.com "@agent fix")',
        "![@agent fix](a.png)",
        "https://example.com/@agent",
        "https://example.com/?q=(@agent",
        "@agent.io",
        "@agent-x @agent_x @agent/team @agent's",
        "@agents",
        "0@agent fix",
        "node_modules/@agent fix",
        "<a href='u'>\n\n@agent fix",
        "<details><a name='x'></a>\n\n@agent fix\n\n</details>",
        "<b hidden>@agent fix</b>",
        "@@agent",
        "<!-- @agent fix -->",
        "<details>\n\n@agent fix\n\n</details>",
        "<blockquote>\n\n@agent fix\n\n</blockquote>",
        "~~@agent fix~~",
        "[x]: http://example.com '@agent'",
        "[^1]: @agent fix",
        "@\u200bagent fix",
        "&#64;agent fix",
        # what the parser puts in the place of a mention, as character references
        "`@agent` x&#xE000;0&#xE001; fix",
        "`@agent` x&#xE000;99&#xE001; fix",
    ],
)
def test_text_that_only_resembles_a_mention_is_none(body: str) -> None:
    """Text resembles a mention in a quotation, code, a link or an address: no run starts."""
    assert find_instruction(body, "@agent") is None


def test_the_mention_is_configurable() -> None:
    assert find_instruction("/fix it", "/fix") == "it"
    assert find_instruction("http://x/fix it", "/fix") is None
    assert find_instruction("./fix it", "/fix") is None


def test_text_that_is_slow_to_parse_does_not_hide_an_earlier_mention() -> None:
    hostile = "![" * 20_000
    found = find_instruction(f"@agent fix this {hostile}", "@agent")
    assert found is not None and found.startswith("fix this")
    assert find_instruction(f"{hostile} @agent fix this", "@agent") is None


def test_a_mention_below_an_ordinary_table_is_found() -> None:
    rows = "|a|b|\n|-|-|\n" + "|1|2|\n" * 500
    assert find_instruction(f"{rows}\n@agent fix this", "@agent") == "fix this"


@given(st.characters(exclude_characters="-_/@.'’[`\\<&#~*!", codec="utf-8"))
@example("\ufffc")  # dictation and pasted pictures leave it in a text
@example("\ue000")
@example("&#xFFFC;")
@example("&#65532;")
def test_characters_outside_of_logins_end_a_mention(sign: str) -> None:
    if re.fullmatch("[A-Za-z0-9]", sign):
        assert find_instruction(f"Hi {sign}@agent fix", "@agent") is None
        assert find_instruction(f"Hi @agent{sign} fix", "@agent") is None
    else:
        assert find_instruction(f"Hi {sign}@agent fix", "@agent") == "fix"
        assert (find_instruction(f"Hi @agent{sign} fix", "@agent") or "").endswith("fix")


@given(soup("@agent", "\ue000", "0\ue001", max_size=20))
def test_the_instruction_of_any_text_is_part_of_it(text: str) -> None:
    found = find_instruction(text, "@agent")
    assert found is None or found == "" or "@agent" in text
    fence = "~" * 100  # longer than any that the text has
    assert find_instruction(f"{fence}\n{text}\n{fence}", "@agent") is None
