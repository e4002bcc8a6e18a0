"""Tests of removing hidden text and keeping visible text."""

import re
from html.parser import HTMLParser

import nh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.text.hidden_text import CleanedText, strip_hidden
from resolver.github.text.markdown import markdown_parser
from resolver.security.invisible_text import INVISIBLE, without_invisible
from tests.github.markup import MARKUP, soup

HIDING = [
    "<!", "--", "[//]: # (", "[a]: /u 'evil'", "<div hidden>", "</div>", '<a title="', '">', "<?",
    "?>", "<![CDATA[", "]]>", "</script>", "\U000e0041", "\u202e", "[^1]: note", "<!-->", "\ufe0f",
    "<span style='display:none'>", "</span>", "\r\n", "$$", "%", "%%", "\\phantom{", "}",
    "\\color{white}", "```mermaid\n", "```math\n", "%%{", "}%%",
]  # fmt: skip


def hidden_html(text: str) -> list[str]:
    tokens = markdown_parser().parse(text)
    html = [t.content for t in tokens if t.type == "html_block"]
    html += [c.content for t in tokens for c in t.children or [] if c.type == "html_inline"]
    return [part for part in html if "<!--" in part or "hidden" in part or "display" in part]


@pytest.mark.attack
@pytest.mark.parametrize(
    "hidden",
    [
        "<!-- SECRET -->",
        "<!-- SECRET\n\nover paragraphs -->",
        "\n\n[//]: # (SECRET)\n\n",
        "[a] `b`\n\n[a]: /u\n[a]: SECRET\n\n",
        "<div hidden>SECRET</div>",
        "<div hidden><div>a</div>\n\nSECRET</div>",
        '<span style="display: none">SECRET</span>',
        "<template>SECRET</template>",
        '[link](http://example.com "SECRET")',
        "\n\n[^unused]: SECRET\n\n",
        "<?SECRET?>",
        '<a title="`"><!-- SECRET --></a>`',
        "<b" + " SECRET" * 1_500 + ">x</b>",
        '<b width="print the SECRET">x</b>',
        "[x](http://a (SECRET))",
        '[x](http://a "SECRET\nSECRET")',
        "\n\n```python print the SECRET\ncode\n```\n\n",
        "\n\n| a |\n|---|\n| 1 | SECRET |\n\n",
        "\n\n<div>\n<span hidden SECRET and no end\n\n",
        '\n\n<div><a title="SECRET and\n\nmore SECRET',
        "\n\n<div>\n<b/hidden>SECRET</b></div>\n\n",
        "<b hidden>`</b>` SECRET</b>",
        "<b hidden><div hidden></b>SECRET</div>",
        "x <!<div hidden>SECRET</div>",
        "x <!-- y\n\n<div hidden>-->SECRET</div>",
        "<!--\u202e> SECRET -->",
        "<!-- SECRET and no end",
        "text <!-- SECRET and no end",
        "<!-<!-- x -->- SECRET -->",
        "x <!-- <div hidden>\n\nSECRET</div>",
        "$x % <b hidden>$ SECRET</b>",
        "\n\n[^n]: x\n<div hidden>\n\nSECRET</div>",
    ],
)
def test_hidden_text_is_removed_and_counted(hidden: str) -> None:
    """A text hides instructions in comments, attributes, link definitions and hidden elements:
    they are removed and counted."""
    cleaned = strip_hidden(f"before {hidden} after")
    assert cleaned.text.startswith("before")
    assert "SECRET" not in cleaned.text
    assert cleaned.removed


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("<div align=center>\n\n**a**\n<b>c</b>\n</div>", "**a**\n<b>c</b>"),
        (
            "<details>\n<summary>Log &amp; more</summary>\n\n`x`\n</details>",
            "Log & more\n\n`x`",
        ),
        ('<p>\n<a href="http://a/b">a</a>\n<img src="c"></p>', "[a](http://a/b)\n![](c)"),
        ("<table><tr><td>a<td>b &lt;b></table>", "a\nb &lt;b>"),
        (
            'see <a href="http://a/b">a</a>\n    indented `__b__` <br>',
            "see [a](http://a/b)\n    ind",
        ),
        ("in <module>\n  List<String>", "in <module>\n  List<String>"),
        ("add a <title> and a <template> to it", "add a <title> and a <template> to it"),
        ("<script>\na = 1\n</script>", "&lt;script>\na = 1\n&lt;/script>"),
    ],
)
def test_what_is_seen_of_html_is_kept(source: str, seen: str) -> None:
    cleaned = strip_hidden(f"before\n\n{source}\n\nafter")
    assert seen in cleaned.text
    assert cleaned.text.startswith("before\n\n") and cleaned.text.endswith("\n\nafter")
    assert not cleaned.removed


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("```mermaid\ngraph TD\n%% SECRET\nA-->B\n```", "A-->B"),
        ("```mermaid\n%%{init: {'SECRET':\n'SECRET'}}%%\nA-->B\n```", "A-->B"),
        ("$\\phantom{SECRET}$ ok", "[formula]"),
        ("$$\nx % SECRET\n$$", "[formula]"),
        ("$x % SECRET$", "[formula]"),
        ("$`x % SECRET`$", "[formula]"),
        ("```math\n\\color{white}{SECRET}\nx\n```", "```math"),
        ("$\\color[RGB]{255, 255,255} SECRET$", "[formula]"),
        ("$\\phan\\phantom{x}tom{SECRET}$", "[formula]"),
    ],
)
def test_hidden_parts_of_diagrams_are_removed(source: str, seen: str) -> None:
    cleaned = strip_hidden(f"before\n\n{source}\n\nafter")
    assert "SECRET" not in cleaned.text
    assert seen in cleaned.text
    assert cleaned.text.startswith("before\n\n") and cleaned.text.endswith("\n\nafter")
    assert "diagram" in str(cleaned.removed) or "formula" in str(cleaned.removed)


@pytest.mark.parametrize(
    "shown",
    [
        "`<!-- shown -->`",
        "```html\n<!-- shown -->\n```",
        "    <!-- shown -->",
        "List<String> and a < b && c > d",
        "A table:\n\n| a | `<!-- x -->` |\n| - | - |\n| 1 | 2 |",
        "used[^1]\n\n[^1]: shown",
        "[text][label]\n\n[label]: http://example.com",
        "$HOME/50%$USER and `$x % y$` and US$5 % 3$",
        "$50\\% of x$ and $$\n\\color{red}{x}\n$$",
        "    ```mermaid\n    %% code\n    ```",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| `x` \\| y | 3 |",
        "a <don't do this> b",
    ],
)
def test_visible_text_stays(shown: str) -> None:
    assert strip_hidden(shown) == CleanedText(shown)


@pytest.mark.attack
@pytest.mark.parametrize(
    "character",
    [
        *"\u200b\u200c\u200e\u2060\u2064\u00ad\u180e\u3164\u2800\u202e\u2066\ufeff\ufe0e",
        "\U000e0041",
        "\U000e0100",
        "\ufe0f",
        "\u200d",
        "\x1b",
        "\x00",
        "\ud800",
    ],
)
def test_invisible_characters_are_removed(character: str) -> None:
    """A text contains invisible characters of every kind: they are removed."""
    assert strip_hidden(f"a{character}b").text == "ab"
    assert strip_hidden(f"a{character}b").removed == ("1 invisible character",)


@pytest.mark.parametrize("emoji", ["👩‍👩‍👧‍👦", "❤️", "🏳️‍🌈", "1️⃣", "👍🏽", "🇩🇪"])
def test_emoji_stay_as_they_are(emoji: str) -> None:
    assert without_invisible(f"a {emoji} b") == f"a {emoji} b"


@given(st.text(max_size=200))
def test_nothing_invisible_is_left_but_emoji_glue(text: str) -> None:
    left = without_invisible(text)
    assert not {c for c in left if re.match(f"[{INVISIBLE}]", c)} - {"\u200d", "\ufe0f"}
    assert without_invisible(left) == left


@given(soup(*HIDING))
def test_cleaning_any_text_is_complete_and_idempotent(text: str) -> None:
    cleaned = strip_hidden(text)
    assert not hidden_html(cleaned.text)
    assert strip_hidden(cleaned.text).text == cleaned.text


@pytest.mark.parametrize(
    "hostile",
    ["![" * 32_000, "[" * 65_000, "![](" * 16_000, "[<!--]-->" * 7_000, "<svg>" * 8_000 + "</svg>"],
)
def test_text_that_is_slow_to_parse_is_truncated(hostile: str) -> None:
    cleaned = strip_hidden(hostile)
    assert len(cleaned.text) < 6_000
    assert cleaned.removed


def test_a_log_in_a_code_block_may_open_any_number_of_brackets() -> None:
    log = "```\n" + "[32mok[0m a line\n" * 2_000 + "```\n\nthe end"
    assert strip_hidden(log).text == log


HTML = [
    *(piece for piece in HIDING if not re.search(r"[$%{}]|```|script", piece)),
    "<p hidden>", "</p>", "<ul hidden>", "<li>", "</ul>", "<table>", "<tr hidden>", "<td>",
    "</td></tr></table>", "<summary>", "</summary>", '<img alt="', "<a href='x'>", "</a>",
    "<DIV HIDDEN>", "<div\nhidden>", '<div hidden="">', "<!DOCTYPE ", "&lt;", '[link](u "', '")',
    "<div a='>' hidden>", "</DIV >", "<br hidden>", "<span hidden ", "<div hidden/>",
]  # fmt: skip
SEEN_AS_WRITTEN = [piece for piece in MARKUP if not re.search(r"[$]|```|~~~|script", piece)]


class ShownText(HTMLParser):
    """Collects the text of sanitized HTML that is not in a hidden element."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._hides: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in {"br", "hr", "img", "input"}:
            style = dict(attrs).get("style") or ""
            self._hides.append((tag, "hidden" in dict(attrs) or "none" in style))

    def handle_endtag(self, tag: str) -> None:
        while self._hides and self._hides.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not any(hides for _, hides in self._hides):
            self.text += data


def shown_words(text: str) -> set[str]:
    """The words of the form `w1q` that a browser shows, rendered and sanitized as on a page."""
    html = re.sub(r'<img src="[^"]*" alt="([^"]*)"[^>]*>', r"\1", markdown_parser().render(text))
    kept = {*nh3.ALLOWED_TAGS, "img", "input"}
    attributes = {tag: {"hidden", "style"} for tag in kept}
    page = ShownText()
    page.feed(nh3.clean(html, tags=kept, attributes=attributes, link_rel=None))
    page.close()
    return set(re.findall(r"w\d+q", page.text))


@pytest.mark.attack
@given(st.lists(st.sampled_from(SEEN_AS_WRITTEN) | st.sampled_from(HTML), max_size=12))
def test_no_word_is_left_that_a_browser_does_not_show(pieces: list[str]) -> None:
    """Any text is compared with what a browser shows of it: no word is left that people can't
    see."""
    text = "".join(
        f"{piece}{' ' * piece.endswith(('<', '</'))}w{number}q"
        for number, piece in enumerate(pieces)
    )
    left = set(re.findall(r"w\d+q", strip_hidden(text).text))
    assert left <= shown_words(text), text
