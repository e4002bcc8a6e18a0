"""Tests of which instructions are questions about the code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.events.commands import Instruction, read_instruction
from resolver.models.run import Command


@pytest.mark.parametrize(
    "text",
    [
        "why does add() subtract?",
        "Where is the cache filled?",
        "what's the difference between a.py and b.py?",
        "is src/a.py used at all?",
        "how is v1.2 parsed?",
        "explain how the cache works",
        "can you explain why this fails?",
        "could you please tell me where the timeout is set?",
        "explain what add() does to numbers.",
    ],
)
def test_one_interrogative_sentence_is_a_question(text: str) -> None:
    assert read_instruction(text) == Instruction(command=Command.QUESTION, text=text)


@pytest.mark.parametrize("text", ["/ask explain the cache", "Question: explain the cache"])
def test_an_explicit_question_is_a_question(text: str) -> None:
    instruction = Instruction(command=Command.QUESTION, text="explain the cache")
    assert read_instruction(text) == instruction


@pytest.mark.parametrize(
    "text",
    [
        "why is it slow? Fix it",
        "it is slow. why is it so?",
        "why is it slow?\nfix it, ok?",
        "can you fix this?",
        "what do you need to fix this?",
        "why don't we drop this?",
        "how about a test?",
        "is it possible to add a flag?",
        "what a mess",
        "explain how to install it in the README",
        "explain why it fails and fix it",
        "explain why it fails. Then fix it",
        "explain the flags",
        "tell me what you would change, then change it",
        "whatever breaks here?",
        "question:",
        "questions in the FAQ are wrong",
        "",
    ],
)
def test_when_in_doubt_it_is_work(text: str) -> None:
    assert read_instruction(text) == Instruction(text=text)


@given(st.text(), st.text())
def test_a_request_after_a_question_is_never_lost(question: str, wish: str) -> None:
    instruction = read_instruction(f"why {question}? {wish} please fix it")
    assert instruction.command is not Command.QUESTION


@given(st.text(min_size=1).map(str.strip).filter(lambda text: text and text[0] not in ": \t"))
def test_all_text_after_ask_is_the_question(text: str) -> None:
    instruction = read_instruction(f"/ask {text}")
    assert instruction == Instruction(command=Command.QUESTION, text=text)
