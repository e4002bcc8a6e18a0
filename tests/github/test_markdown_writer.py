"""Tests of the markdown that is written for each construct, and of what a shortened trace keeps."""

import pytest

from resolver.github.text.comment_markdown import is_closed, safe_markdown
from resolver.trace.untrusted_text import utf16_length

LONG_URL = "http://x.example/" + "p" * 300

WRITTEN = {
    "# A *b*\nc": "#### A *b*\n\nc",
    "a b\n===": "#### a b",
    "# - a": "#### \\- a",
    "# ": "",
    "a\n# b": "a\n\n#### b",
    "```py x\na\n```": "```py\na\n```",
    "    code": "```\ncode\n```",
    "<div>\nx\n</div>": "```html\n<div>\nx\n</div>\n```",
    "a\n\n---\n\nb": "a\n\n***\n\nb",
    "> a\n>\n> b\n>\n> - c": "> a\n>\n> b\n>\n> - c",
    "3. a\n4. b": "3. a\n4. b",
    "999999998. a\n2. b\n3. c": "999999998. a\n999999999. b\n999999999. c",
    "1. a\n\n   b\n\n2. c": "1. a\n\n   b\n2. c",
    "- a\n  - b\n  - c\n- d": "- a\n  - b\n  - c\n- d",
    "- a\n\n  - b": "- a\n\n  - b",
    "- a\n  1. b": "- a\n\n  1. b",
    "- ```\n  x\n  ```\n  - b": "- ```\n  x\n  ```\n\n  - b",
    "- \n- b": "- \n- b",
    "|a|b|\n|-|-|\n|`x`|2|\n|@bob|4|": "| a | b |\n| --- | --- |\n| `x` | 2 |\n| `@bob` | 4 |",
    "|a|\n|-|": "| a |\n| --- |",
    "a  \nb": "a\\\nb",
    "a\nb": "a\nb",
    "~~a~~ **b** *c* `d`": "~~a~~ **b** *c* `d`",
    "**@a**": "**`@a`**",
    "[a](http://x.example/z|w)": "[a](<http://x.example/z%7Cw>)",
    "[a\nb](http://x.example)": "[a b](<http://x.example>)",
    "[a](https://x.example)": "[a](<https://x.example>)",
    "<http://x.example/z>": "<http://x.example/z>",
    "[](http://x.example)": "<http://x.example>",
    "[a](ftp://x.example)": "a (`ftp://x.example`)",
    "[](ftp://x.example)": "`ftp://x.example`",
    "<ftp://x.example/z>": "`ftp://x.example/z`",
    "[a](http://u@x.example)": "a (`http://u@x.example`)",
    "[a](http:///x)": "a (`http:///x`)",
    "[a]()": "a",
    "[a](/x)": "a (`/x`)",
    "\\- a": "\\- a",
    "http://x.example/z": "<http://x.example/z>",
    "[http://x.example/z](http://x.example/y) http://x.example/w": (
        "[`http://x.example/z`](<http://x.example/y>) <http://x.example/w>"
    ),
    "[a](https://github.com/o/r/issues/5)": "a (`https://github.com/o/r/issues/5`)",
    f"![d]({LONG_URL})": f"(image: d `{LONG_URL[:199]}…`)",
    f"[d](ftp:{LONG_URL})": f"d (`{f'ftp:{LONG_URL}'[:199]}…`)",
    "![](http://x.example/i.png)": "(image: `http://x.example/i.png`)",
    "![@a](http://x.example/i.png)": "(image: `@a` `http://x.example/i.png`)",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_construct_is_written_as(text: str) -> None:
    assert safe_markdown(text, forge_host="x.example") == WRITTEN[text]


def test_a_text_of_the_exact_limit_is_kept_and_a_longer_one_shortened() -> None:
    text = "word " * 19 + "words"
    assert safe_markdown(text, limit=100) == text
    shortened = safe_markdown(text, limit=99)
    assert text.startswith(shortened.rstrip("…").rstrip()) and 80 < len(shortened) <= 99
    assert safe_markdown("x", limit=1) == "x"
    assert safe_markdown("x", limit=0) == ""
    # An emoji has two units.
    assert safe_markdown("😀" * 50, limit=100) == "😀" * 50
    assert utf16_length(safe_markdown("😀" * 50, limit=99)) <= 99


def test_open_constructs_are_recognized() -> None:
    closed = ["", "a", "- a", "> a", "```\nx\n```", "<details>\n\nx\n\n</details>", "<!-- x -->"]
    still_open = ["```\nx", "<!-- x", "<details>\n\nx", "<DETAILS open>\n\nx", "x\n\n</details>"]
    assert [text for text in closed if not is_closed(text)] == []
    assert [text for text in still_open if is_closed(text)] == []
