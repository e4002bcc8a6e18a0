"""Tests of commands and amounts, as opposed to work."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.events.commands import MAX_EXTENSION, Instruction, read_instruction
from resolver.models.run import Command, Extension


def granted(iterations: int = 0, budget: float = 0.0, time: float = 0.0) -> Extension:
    return Extension(iterations=iterations, budget=budget, time=time)


@pytest.mark.parametrize(
    ("text", "command", "words"),
    [
        ("stop", Command.STOP, ""),
        ("Stop!", Command.STOP, ""),
        ("please stop", Command.STOP, ""),
        ("stop, please", Command.STOP, ""),
        ("cancel", Command.STOP, ""),
        ("stop. This is the wrong file", Command.STOP, "This is the wrong file"),
        ("pause.", Command.PAUSE, ""),
        ("resume", Command.RESUME, ""),
        ("continue", Command.CONTINUE, ""),
        ("Continue, thanks!", Command.CONTINUE, ""),
        ("continue, use pytest -x", Command.CONTINUE, "use pytest -x"),
        ("continue with the second part", Command.CONTINUE, "with the second part"),
        ("continue\nuse pytest -x\nand be quick", Command.CONTINUE, "use pytest -x\nand be quick"),
        ("publish", Command.PUBLISH, ""),
        ("please publish.", Command.PUBLISH, ""),
        ("publish anyway", Command.PUBLISH, "anyway"),
        ("ask explain the cache", Command.QUESTION, "explain the cache"),
    ],
)
def test_the_first_word_can_be_a_command(text: str, command: Command, words: str) -> None:
    assert read_instruction(text) == Instruction(command=command, text=words)


@pytest.mark.parametrize(
    "text",
    [
        "please fix this",
        "why does add() subtract?",
        "why not fix this?",
        "can you stop?",
        "why not just fix it?",
        "is this fixable?",
        "publish the docs",
        "continue's handling in loops is wrong",
        "stop-words are missing",
        "2 hours are lost in the log",
        "+1 on this, please fix",
        "",
    ],
)
def test_everything_else_is_a_request_to_the_agent(text: str) -> None:
    assert read_instruction(text) == Instruction(text=text)


@pytest.mark.parametrize(
    "text",
    [
        "stop, use the sqlite backend instead",
        "stop using mocks in the tests",
        "pause the music when the window closes",
        "resume support for py3.8",
        "approve, but only when the tests pass",
        "deny, use pip instead",
    ],
)
def test_what_follows_a_word_that_controls_a_run_is_a_message_to_it(text: str) -> None:
    """Where no run reads it, such as in the text of an issue, it is a request."""
    message = Instruction(command=Command.MESSAGE, text=text)
    assert read_instruction(text, reaches_run=True) == message
    assert read_instruction(text) == Instruction(text=text)


@pytest.mark.parametrize(
    ("text", "extension", "words"),
    [
        ("continue +50 iterations", granted(iterations=50), ""),
        ("+50 iterations", granted(iterations=50), ""),
        ("+ 50 steps", granted(iterations=50), ""),
        ("+$2", granted(budget=2), ""),
        ("continue +$1.50", granted(budget=1.5), ""),
        ("+30 min", granted(time=1800), ""),
        ("+1 hour", granted(time=3600), ""),
        ("continue +50 iterations +$2", granted(iterations=50, budget=2), ""),
        (
            "continue +50 iterations, +$2 and +30 min, use pytest -x",
            granted(iterations=50, budget=2, time=1800),
            "use pytest -x",
        ),
        ("+10 steps +10 steps", granted(iterations=20), ""),
    ],
)
def test_amounts_grant_more(text: str, extension: Extension, words: str) -> None:
    instruction = read_instruction(text)
    assert instruction == Instruction(command=Command.CONTINUE, extension=extension, text=words)


@pytest.mark.parametrize(
    "text",
    [
        "continue -5 iterations",
        "continue +1e999 iterations",
        "continue +nan steps",
        "continue +0 steps",
        "continue 20",
        "continue with 2 minutes timeouts",
        "continue +inf hours",
    ],
)
def test_an_invalid_amount_grants_nothing_and_reaches_the_agent(text: str) -> None:
    instruction = read_instruction(text)
    assert instruction.command is Command.CONTINUE
    assert instruction.extension == Extension()
    assert instruction.text


def test_a_huge_amount_is_reduced() -> None:
    instruction = read_instruction(
        "+999999999999999999999 iterations +$99999999999 +9999999999 hours"
    )
    assert instruction.extension == MAX_EXTENSION


WORDS = st.lists(
    st.sampled_from(
        ["continue", "stop", "extend", "+", "$", "50", "1,000", "1e9", "-3", "nan", "∞", "٣",
         "iterations", "more", "hours", "min", "and", "with", ",", ".", "\n", " ", "please",
         "the run", "s", "m"]
    ),
    max_size=40,
).map(" ".join)  # fmt: skip


@given(st.one_of(st.text(max_size=300), WORDS))
def test_any_instruction_is_parsed_within_limits(text: str) -> None:
    instruction = read_instruction(text)
    extension = instruction.extension
    assert 0 <= extension.iterations <= MAX_EXTENSION.iterations
    assert 0 <= extension.budget <= MAX_EXTENSION.budget and math.isfinite(extension.budget)
    assert 0 <= extension.time <= MAX_EXTENSION.time and math.isfinite(extension.time)
    assert len(instruction.text) <= len(text)
    if instruction.command is not Command.CONTINUE:
        assert extension == Extension()


@pytest.mark.parametrize(
    "text", ["continue " + " " * 100_000, "+1 " * 50_000, "stop" + " it" * 50_000, "1," * 60_000]
)
def test_a_hostile_instruction_is_parsed_quickly(text: str) -> None:
    read_instruction(text)


@pytest.mark.parametrize("text", ["update", "please update", "/update"])
def test_a_pull_request_is_brought_up_to_date_when_that_is_all_that_is_said(text: str) -> None:
    assert read_instruction(text, pull_request=True).command is Command.UPDATE
    if not text.startswith("/"):
        assert read_instruction(text).command is Command.FIX, "an issue has no branch"


@pytest.mark.parametrize("text", ["update the README", "update it with tests", "merge this PR"])
def test_an_update_with_more_text_is_work(text: str) -> None:
    instruction = read_instruction(text, pull_request=True)
    assert (instruction.command, instruction.text) == (Command.FIX, text)
