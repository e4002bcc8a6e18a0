"""Tests of parsing the code that drives the browser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.sandbox.browser_code import FORMS, BrowserStep, CodeError, browser_usage, read_code
from resolver.sandbox.chromium import command_line


def steps(code: str) -> list[tuple[str, dict[str, object]]]:
    return [(step.name, dict(step.arguments)) for step in read_code(code)]


@pytest.mark.parametrize(
    ("code", "name", "given_"),
    [
        ("goto('http://x/')", "goto", {"url": "http://x/"}),
        ("go_back()", "go_back", {}),
        ("click('12')", "click", {"bid": "12", "button": "left", "modifiers": ()}),
        ("click(12)", "click", {"bid": "12", "button": "left", "modifiers": ()}),
        ("click('[12]')", "click", {"bid": "12", "button": "left", "modifiers": ()}),
        (
            "click(bid='1', button='right', modifiers=['Shift', 'Alt'])",
            "click",
            {"bid": "1", "button": "right", "modifiers": ("Shift", "Alt")},
        ),
        ("fill('3', 'a\\nb')", "fill", {"bid": "3", "value": "a\nb"}),
        ("fill('3', '')", "fill", {"bid": "3", "value": ""}),
        ("press('3', key_comb='Enter')", "press", {"bid": "3", "key_comb": "Enter"}),
        ("select_option('3', 'a')", "select_option", {"bid": "3", "options": ("a",)}),
        ("select_option('3', ['a', 'b'])", "select_option", {"bid": "3", "options": ("a", "b")}),
        ("scroll(0, -20.5)", "scroll", {"delta_x": 0, "delta_y": -20}),
        ("noop()", "noop", {"wait_ms": 1000}),
        ("screenshot(marks=True)", "screenshot", {"marks": True}),
        ("tab_focus(0)", "tab_focus", {"index": 0}),
        ("new_tab()", "new_tab", {"url": "about:blank"}),
        ("```python\nreload()\n```", "reload", {}),
        ("   reload()  # again", "reload", {}),
        ("fill('3', '\\d')", "fill", {"bid": "3", "value": "\\d"}),
    ],
)
def test_one_call_is_a_step(code: str, name: str, given_: dict[str, object]) -> None:
    assert steps(code) == [(name, given_)]


def test_lines_are_steps_in_order() -> None:
    assert [name for name, _ in steps("reload()\n  go_back()\n\nnoop(1); click('2')")] == [
        "reload",
        "go_back",
        "noop",
        "click",
    ]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("", "contains no action"),
        ("click(", "not readable (line 1)"),
        ("x = 1", "Line 1 is not a call"),
        ("page.click('1')", "Line 1 is not a call"),
        ("reload()\nimport os", "Line 2 is not a call"),
        ("for i in range(3): click('1')", "not a call"),
        ("__import__('os')", "there is no action '__import__'"),
        ("clik('1')", "did you mean click(bid, button='left', modifiers=[])?"),
        ("goto()", "url is missing. The form is goto(url)."),
        ("goto('a', 'b')", "takes 1 values, not 2"),
        ("goto(uri='a')", "'uri' is given twice or is not one of its parameters"),
        ("goto('a', url='b')", "'url' is given twice"),
        ("goto(*['a'])", "url must be a string"),
        ("goto(**{'url': 'a'})", "'**' is given twice or is not"),
        ("goto(f'{1}')", "url must be a string, written out"),
        ("goto(open('/etc/passwd').read())", "url must be a string"),
        ("goto(1)", "url must be a string"),
        ("click('a')", "bid must be an element's id, like '12'"),
        ("click(True)", "bid must be an element's id"),
        ("click('1', 'up')", "button must be one of 'left', 'middle', 'right'"),
        ("click('1', modifiers=['Hyper'])", "modifiers must be a list of 'Alt'"),
        ("scroll('1', 2)", "delta_x must be a number"),
        ("scroll(1e999, 2)", "delta_x must be a number"),
        ("screenshot(1)", "marks must be True or False"),
        ("select_option('1', [1])", "options must be a string or a list of strings"),
        ("noop(1)\n" * 51, "51 actions; at most 50"),
        ("#" * 60_000, "60,000 characters; at most"),
        ("\0", "not readable"),
        ("(" * 5000, "not readable"),
    ],
)
def test_other_code_is_explained(code: str, words: str) -> None:
    with pytest.raises(CodeError) as raised:
        read_code(code)
    assert words in str(raised.value)


_LITERALS = st.one_of(
    st.text(max_size=20), st.integers(), st.floats(), st.booleans(), st.none(),
    st.lists(st.text(max_size=5), max_size=3), st.binary(max_size=5),
)  # fmt: skip
_CALLS = st.builds(
    lambda name, arguments: f"{name}({', '.join(map(repr, arguments))})",
    st.sampled_from([*FORMS, "eval", "clicks"]),
    st.lists(_LITERALS, max_size=4),
)


@given(st.one_of(st.text(), st.lists(_CALLS, max_size=4).map("\n".join)))
def test_any_text_gives_steps_or_an_explanation(code: str) -> None:
    try:
        found = read_code(code)
    except CodeError as error:
        assert str(error)
    else:
        assert found
        for step in found:
            assert isinstance(step, BrowserStep) and set(step.arguments) == {
                p.name for p in FORMS[step.name]
            }


def test_the_form_of_every_action_can_be_parsed() -> None:
    for name in FORMS:
        assert browser_usage(name).startswith(f"{name}(")


@pytest.mark.parametrize(
    ("environment", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://127.0.0.1:3128"}, "http://127.0.0.1:3128"),
        ({"http_proxy": "http://u:p@[::1]:8080/"}, "http://[::1]:8080"),
        ({"HTTP_PROXY": "http://[::1"}, None),
    ],
)
def test_chromium_uses_the_proxy_of_the_environment(
    environment: dict[str, str], proxy: str | None
) -> None:
    options = command_line("chromium", "/profile", environment)
    assert [o for o in options if o.startswith("--proxy-server")] == (
        [f"--proxy-server={proxy}"] if proxy else []
    )
