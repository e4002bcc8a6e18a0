"""What people have edited in our pull requests is told from what we wrote."""

from hypothesis import given
from hypothesis import strategies as st

from resolver.forge.edited import (
    body_is_ours,
    is_our_draft,
    room_below,
    text_of,
    title_is_ours,
    with_newest,
    words_marker,
)
from resolver.forge.fitting import MAX_BODY
from resolver.forge.markers import ending_of, run_marker
from resolver.forge.report import Ending
from resolver.trace.markdown import utf16_length

MARKER = run_marker("key", Ending.PULL_REQUEST, 12, "run-1")
LATER = run_marker("later", Ending.PULL_REQUEST, 12, "run-2")


def body_of(title: str, text: str, *, draft: bool = False) -> str:
    return f"{MARKER}\n{words_marker(title, text, draft=draft)}\n\n{text}\n"


TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=200)


@given(TEXTS, TEXTS)
def test_what_we_wrote_is_ours_and_what_was_added_is_not(title: str, text: str) -> None:
    body = body_of(title, text)
    assert title_is_ours(title, body) and body_is_ours(body)
    assert body_is_ours(body.replace("\n", "\r\n"))
    assert not body_is_ours(f"{body}more")
    assert not title_is_ours(f"{title}more", body)
    assert not is_our_draft(body) and is_our_draft(body_of(title, text, draft=True))


@given(TEXTS)
def test_a_text_without_our_mark_is_a_persons(text: str) -> None:
    assert not body_is_ours(text) and not title_is_ours("", text) and not is_our_draft(text)


def test_a_mark_further_down_means_nothing() -> None:
    text = "theirs"
    assert not body_is_ours(f"hello\n\n{body_of('t', text)}")
    assert not body_is_ours(f"> {words_marker('t', text, draft=False)}\n\n{text}")


@given(TEXTS, TEXTS, TEXTS)
def test_a_persons_text_stays_and_what_is_new_stands_once(
    theirs: str, first: str, second: str
) -> None:
    theirs, first, second = f"T{theirs}T", f"1{first}1", f"2{second}2"
    once = with_newest(body_of("t", theirs) + "edited", LATER, first)
    twice = with_newest(once, LATER, second)
    assert text_of(twice).startswith(f"{theirs}\nedited")
    assert twice.count("resolver:newest") == 1 and second in twice
    assert ending_of(twice, "later") is Ending.PULL_REQUEST
    assert not body_is_ours(twice) and title_is_ours("t", twice)
    assert with_newest(twice, LATER, second) == twice


@given(st.integers(min_value=0, max_value=3_000))
def test_a_body_never_grows_over_the_limit(short_of: int) -> None:
    theirs = "😀" * ((MAX_BODY - short_of) // 2 - 200)
    body = with_newest(theirs, LATER, "x" * max(0, room_below(theirs)))
    assert utf16_length(body) <= MAX_BODY and theirs in body
