"""Tests of triggers, which match whole words in their technical form."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.memory.skills.triggers import MAX_TEXT_LENGTH, find_triggers, prepare_text


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("flaky", "A Flaky one"),
        ("flaky", "why so flaky?"),
        ("flaky", "flaky-tests are many"),
        ("flaky test", "A flaky\n  test again"),
        ("CI", "the CI fails"),
        ("c++", "in C++ it works"),
        (".net", "on .NET 8"),
        ("node.js", "Node.js hangs"),
        ("React", "Our React app crashes"),
        ("react", "Our React app crashes"),
        ("react", "React components render twice"),
        ("react", "upgrade to React 18"),
        ("React", "call `react` there"),
        ("react", "the react.js build"),
        ("react", "see facebook/react for it"),
        ("go", "edit go.mod"),
        ("go", "with go 1.22.3"),
        ("go", "it is written in Go, I think"),
        ("rust", "The Rust compiler"),
        ("docker", "dockerの設定が間違っている"),
        ("pytest", "运行pytest时失败"),
        ("データベース", "新しいデータベースが壊れた"),
        ("도커", "도커를 고쳐 주세요"),
    ],
)
def test_a_trigger_matches(trigger: str, text: str) -> None:
    assert find_triggers(trigger, prepare_text(text))


@pytest.mark.parametrize(
    ("trigger", "text"),
    [
        ("React", "react to this"),
        ("React", "React to this, please"),
        ("React", "- React when I click"),
        ("react", "we react to events"),
        ("react", "preact, reactive, reactor, react_native"),
        ("React", "Make it so. React quickly."),
        ("go", "go to the settings"),
        ("Go", "Go back"),
        ("go", "there you go."),
        ("rust", "rust on the car"),
        ("express", "to express an opinion"),
        ("spring", "in spring it fails"),
        ("test", "testing the latest contest"),
        ("CI", "ci"),
        ("cafe", "cafés"),
        ("c++", "the c language"),
        ("react", "https://example.org/react/ is down"),
        ("react", "ask @react about it"),
        ("flaky test", "flaky. The test"),
        ("react", "It breaks:\n\n```js\nimport x from react\n```\n"),
        ("maven", "As follows.\n\n    mvn: using maven here\n"),
        ("maven", "> did you try it with maven?\n\nNo."),
        ("pytest", "<details>\n\npandas: 1.0.3\npytest: 5.3.5\n</details>"),
        ("pytest", "Versions:\npy==1.8.1\npytest==5.4.2\n"),
        ("pytest", "platform linux -- Python 3.8.2, pytest-5.4.1, py-1.8.1"),
        ("docker", "2024-05-01 12:00:01 started docker"),
        ("docker", "it is in /var/lib/docker/overlay2/abc and in C:\\tools\\docker\\bin"),
        ("flaky", 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    flaky()\n'),
    ],
)
def test_a_trigger_does_not_match(trigger: str, text: str) -> None:
    assert not find_triggers(trigger, prepare_text(text))


def test_the_matched_text_is_returned_as_written() -> None:
    assert find_triggers("flaky test", prepare_text("one Flaky\n test")) == "Flaky test"


LONG = {
    "ticks": "`" * MAX_TEXT_LENGTH,
    "dots": "a." * MAX_TEXT_LENGTH,
    "words": "go " * 100_000,
    "sentences": "Go. " * 75_000,
    "fences": "\n".join("`" * n for n in range(700, 3, -1)),
    "quoted fences": "> ~~~\n" * 50_000,
    "blanks": " \n" * 150_000,
    "addresses": "http://" * 40_000,
    "signs": "@" * MAX_TEXT_LENGTH,
}


@pytest.mark.deep
@pytest.mark.parametrize("text", LONG.values(), ids=list(LONG))
def test_no_text_takes_long(text: str) -> None:
    began = time.process_time()
    ready = prepare_text(text)
    for trigger in ("go", "Go", "a b", "c++", "flaky test"):
        find_triggers(trigger, ready)
    assert time.process_time() - began < 5


@given(st.text(min_size=1, max_size=20), st.text(max_size=200))
def test_any_trigger_and_any_text_are_accepted(trigger: str, text: str) -> None:
    if trigger.strip():
        words = find_triggers(trigger, prepare_text(text))
        assert words == "" or len(words.split()) == len(trigger.split())


@given(st.text(alphabet="abcdefgh", min_size=1, max_size=5), st.text(max_size=100))
def test_a_trigger_matches_whole_words_only(word: str, text: str) -> None:
    whole = word in "".join(c if c.isalnum() or c == "_" else " " for c in text.lower()).split()
    if text.isascii() and "@" not in text and "://" not in text:
        assert bool(find_triggers(word, prepare_text(text))) == whole


@pytest.mark.parametrize(
    "text", ["please ſhip it", "SHIP IT", "ship ıt", "ſhıp\nit", "Ship İt? No."]
)
def test_a_letter_that_patterns_take_for_an_ascii_letter_is_found(text: str) -> None:
    matches = re.search(r"ship\s+it", text, re.IGNORECASE) is not None
    assert bool(find_triggers("ship it", prepare_text(text))) == matches
