"""Tests of telling people's edits of a pull request from Resolver's text."""

from hypothesis import given
from hypothesis import strategies as st

from resolver.github.comments.markers import ending_of, run_marker
from resolver.github.comments.pull_request_text import (
    add_newest_section,
    drafting_in,
    has_section_of_run,
    is_generated_body,
    is_generated_title,
    remaining_length,
    run_marker_of,
    text_marker,
    text_of,
    with_drafting,
)
from resolver.github.comments.report import Ending
from resolver.github.text.comment_markdown import MAX_BODY
from resolver.trace.untrusted_text import utf16_length

MARKER = run_marker("key", Ending.PULL_REQUEST, 12, "run-1")
LATER = run_marker("later", Ending.PULL_REQUEST, 12, "run-2")


def body_of(title: str, text: str, *, draft: bool = False) -> str:
    return f"{MARKER}\n{text_marker(title, text, draft=draft)}\n\n{text}\n"


TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=200)


@given(TEXTS, TEXTS)
def test_resolvers_text_is_distinguished_from_additions(title: str, text: str) -> None:
    body = body_of(title, text)
    assert is_generated_title(title, body) and is_generated_body(body)
    assert is_generated_body(body.replace("\n", "\r\n"))
    assert not is_generated_body(f"{body}more")
    assert not is_generated_title(f"{title}more", body)
    assert drafting_in(body, is_draft=False) == ""
    assert drafting_in(body_of(title, text, draft=True), is_draft=True) == "draft"


@given(TEXTS)
def test_a_text_without_a_marker_is_a_persons(text: str) -> None:
    assert not is_generated_body(text) and not is_generated_title("", text)
    assert drafting_in(text, is_draft=True) == drafting_in(text, is_draft=False) == "by_people"


def test_a_person_who_changed_the_draft_status_decides_from_then_on() -> None:
    ready, draft = body_of("t", "x"), body_of("t", "x", draft=True)
    assert drafting_in(ready, is_draft=True) == drafting_in(draft, is_draft=False) == "by_people"
    assert with_drafting(ready, "draft") == draft and with_drafting(draft, "") == ready
    changed = with_drafting(draft, "by_people")
    for is_draft in (True, False):
        assert drafting_in(changed, is_draft=is_draft) == "by_people"
    assert is_generated_body(changed) and with_drafting("mine", "draft") == "mine"


def test_the_marker_of_older_versions_is_read_and_renewed() -> None:
    title, text = "Make add add", "It subtracted."
    new = with_drafting(body_of(title, text), "by_people")
    old = new.replace("resolver:text", "resolver:words").replace("by_people", "theirs")
    assert old != new
    assert is_generated_title(title, old) and is_generated_body(old)
    assert drafting_in(old, is_draft=False) == "by_people"
    assert with_drafting(old, "by_people") == new


@given(TEXTS, TEXTS)
def test_the_warning_above_the_newest_section_is_replaced(first: str, second: str) -> None:
    first, second = f"1{first}1", f"2{second}2"
    once = add_newest_section(
        body_of("t", "x"), LATER, "a", keep_earlier=True, run="r1", warning=first
    )
    twice = add_newest_section(once, LATER, "b", keep_earlier=True, run="r2", warning=second)
    assert (
        has_section_of_run(twice, "r1")
        and has_section_of_run(twice, "r2")
        and not has_section_of_run(twice, "r3")
    )
    assert first in once and second in twice and twice.count("resolver:standing") == 1
    assert "resolver:standing" not in add_newest_section(twice, LATER, "c", keep_earlier=True)
    assert run_marker_of(twice) == LATER and run_marker_of("mine") == ""


def test_a_marker_further_down_is_ignored() -> None:
    text = "changed"
    assert not is_generated_body(f"hello\n\n{body_of('t', text)}")
    assert not is_generated_body(f"> {text_marker('t', text, draft=False)}\n\n{text}")


@given(TEXTS, TEXTS, TEXTS)
def test_a_persons_text_stays_and_the_addition_occurs_once(
    changed: str, first: str, second: str
) -> None:
    changed, first, second = f"T{changed}T", f"1{first}1", f"2{second}2"
    once = add_newest_section(body_of("t", changed) + "edited", LATER, first)
    twice = add_newest_section(once, LATER, second)
    both = add_newest_section(once, LATER, second, keep_earlier=True)
    assert both.count("resolver:newest") == 2 and first in both and second in both
    assert text_of(twice).startswith(f"{changed}\nedited")
    assert twice.count("resolver:newest") == 1 and second in twice
    assert ending_of(twice, "later") is Ending.PULL_REQUEST
    assert not is_generated_body(twice) and is_generated_title("t", twice)
    assert add_newest_section(twice, LATER, second) == twice


@given(st.integers(min_value=0, max_value=3_000))
def test_a_body_never_grows_over_the_limit(short_of: int) -> None:
    changed = "😀" * ((MAX_BODY - short_of) // 2 - 200)
    body = add_newest_section(changed, LATER, "x" * max(0, remaining_length(changed)))
    assert utf16_length(body) <= MAX_BODY and changed in body
