"""Tests that the templates of comments escape what they are given."""

import pytest
from jinja2 import Environment

from resolver.github.comments.templates import markdown_environment, safe

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
