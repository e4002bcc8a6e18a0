"""Tests of commands, amounts and names, as opposed to requests."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.events.commands import (
    COMMAND_NAMES,
    MAX_EXTENSION,
    Instruction,
    asks_for_nothing,
    read_instruction,
)
from resolver.models.run import Command, Extension


@pytest.mark.parametrize(
    ("text", "command", "words"),
    [
        ("Stop!", Command.STOP, ""),
        ("stop, please", Command.STOP, ""),
        ("cancel", Command.STOP, ""),
        ("stop. This is the wrong file", Command.STOP, "This is the wrong file"),
        ("/stop using so much money", Command.STOP, "using so much money"),
        ("pause.", Command.PAUSE, ""),
        ("resume", Command.RESUME, ""),
        ("Continue, thanks!", Command.CONTINUE, ""),
        ("continue with the second part", Command.CONTINUE, "with the second part"),
        ("continue\nuse pytest -x\nand be quick", Command.CONTINUE, "use pytest -x\nand be quick"),
        ("please publish.", Command.PUBLISH, ""),
        ("publish anyway", Command.PUBLISH, "anyway"),
        ("/ask explain the cache", Command.QUESTION, "explain the cache"),
        ("/fix the parser", Command.FIX, "the parser"),
        ("/update", Command.UPDATE, ""),
        *((text, Command.HELP, "") for text in ("help", "please help", "?", "/HELP me", "ask")),
        ("/approve", Command.APPROVE, ""),
        ("please approve `482913`, thanks", Command.APPROVE, "`482913`, thanks"),
        ("deny: that is the production key", Command.DENY, "that is the production key"),
        ("/deny?", Command.DENY, ""),
        ("deny 482913: too broad", Command.DENY, "482913: too broad"),
        ("please review", Command.REVIEW, ""),
    ],
)
def test_the_first_word_can_be_a_command(text: str, command: Command, words: str) -> None:
    assert read_instruction(text) == Instruction(command=command, text=words)


@pytest.mark.parametrize(
    "text",
    [
        "why not fix this?",
        "don't approve",
        "publish the docs",
        "continue's handling in loops is wrong",
        "+1 on this, please fix",
        "help me with the parser",
        "? is not escaped",
        "review the parser",
        "update",
        "/src/parser.py is slow",
        "/naïve",
        "/" + "x" * 65,
        "",
    ],
)
def test_everything_else_is_a_request_to_the_agent(text: str) -> None:
    assert read_instruction(text, reaches_run=True) == Instruction(text=text)


@pytest.mark.parametrize(
    ("text", "command", "words"),
    [
        ("review: is the cache still right?", Command.REVIEW, "is the cache still right?"),
        ("/review only the tests", Command.REVIEW, "only the tests"),
        ("please update", Command.UPDATE, ""),
        ("reviewers are not notified", Command.FIX, "reviewers are not notified"),
        ("update the README", Command.FIX, "update the README"),
    ],
)
def test_on_a_pull_request_a_review_or_an_update_can_be_asked_for(
    text: str, command: Command, words: str
) -> None:
    found = read_instruction(text, pull_request=True)
    assert found == Instruction(command=command, text=words)


@pytest.mark.attack
@pytest.mark.parametrize(
    "text",
    [
        "stop, use the sqlite backend instead",
        "reject empty names in parse()",
        "approve?",
        "approve, but only when the tests pass",
        "approve if it is safe",
        "approve. Unless it pushes",
        "approve 482913, but only when the tests pass",
        "approve. It only touches /tmp, doesn't it",
        "approve, thanks, after the release",
        "approve 482913.5 in parse()",
    ],
)
def test_what_follows_a_word_that_controls_a_run_is_a_message_to_it(text: str) -> None:
    """Somebody approves on a condition: it is no approval.

    Where no run reads it, it is a request.
    """
    message = Instruction(command=Command.MESSAGE, text=text)
    assert read_instruction(text, reaches_run=True) == message
    assert read_instruction(text) == Instruction(text=text)
    assert read_instruction(f"/{text}").command is not Command.APPROVE
    if text.startswith("approve"):
        assert read_instruction(f"/{text}", reaches_run=True) == message
        assert read_instruction(f"/{text}") == Instruction(text=text)


@pytest.mark.parametrize(
    ("text", "extension", "words"),
    [
        ("/continue +50 iterations, and use pytest", {"iterations": 50}, "use pytest"),
        ("continue +$1.50", {"budget": 1.5}, ""),
        (
            "continue +50 iterations, +$2 and +30 min, use pytest -x",
            {"iterations": 50, "budget": 2, "time": 1800},
            "use pytest -x",
        ),
        ("+10 steps +10 steps", {"iterations": 20}, ""),
        (
            "+999999999999999999999 iterations +$99999999999 +9999999999 hours",
            MAX_EXTENSION.model_dump(),
            "",
        ),
        ("continue -5 iterations", {}, "5 iterations"),
        ("continue +1e999 iterations", {}, "+1e999 iterations"),
        ("continue +0 steps", {}, "+0 steps"),
    ],
)
def test_amounts_with_a_plus_sign_grant_more(
    text: str, extension: dict[str, float], words: str
) -> None:
    granted = Extension.model_validate(extension)
    expected = Instruction(command=Command.CONTINUE, extension=granted, text=words)
    assert read_instruction(text) == expected


@pytest.mark.parametrize(
    ("text", "named", "words"),
    [
        ("/release-notes since=v1.2", "release-notes", "since=v1.2"),
        ("/Counter, and be quick", "Counter", "and be quick"),
        ("/docs\nall of it\nplease", "docs", "all of it\nplease"),
    ],
)
def test_a_slash_names_an_agent_or_a_task(text: str, named: str, words: str) -> None:
    assert read_instruction(text) == Instruction(named=named, text=words)


def test_reserved_names_are_the_slash_commands() -> None:
    for name in COMMAND_NAMES:
        assert read_instruction(f"/{name} x", pull_request=True).named is None


def test_thanks_ask_for_nothing_unless_they_come_with_a_request() -> None:
    thanks = ("thanks", "Thank you so much!", "LGTM 👍", "looks good, thanks!", "ok, thanks.")
    assert all(map(asks_for_nothing, thanks))
    requests = ("", "thanks, please also fix b.py", "looks good but rename x", "ok")
    assert not any(map(asks_for_nothing, requests))


WORDS = st.lists(
    st.sampled_from(
        ["continue", "stop", "+", "$", "50", "1,000", "1e9", "-3", "nan", "∞", "٣", "iterations",
         "hours", "min", "and", ",", ".", ":", "\n", " ", "please", "/", "help", "?", "review",
         "approve", "deny", "/stop", "/x", "fix", "the", "but", "if", "ask", "-", "_", "é", "\0"]
    ),
    max_size=40,
).map(" ".join)  # fmt: skip


@given(st.text(max_size=300) | WORDS, st.booleans())
def test_any_instruction_is_parsed_within_limits(text: str, pull: bool) -> None:
    instruction = read_instruction(text, pull_request=pull)
    extension = instruction.extension
    assert 0 <= extension.iterations <= MAX_EXTENSION.iterations
    assert 0 <= extension.budget <= MAX_EXTENSION.budget and math.isfinite(extension.budget)
    assert 0 <= extension.time <= MAX_EXTENSION.time and math.isfinite(extension.time)
    assert instruction.text in text
    if instruction.command is not Command.CONTINUE:
        assert extension == Extension()
    if instruction.named:
        assert instruction.command is Command.FIX
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", instruction.named)
        assert text.strip().startswith(f"/{instruction.named}")
    for begun in ("approve,", "/approve", "/approve:"):
        assert read_instruction(f"{begun} unless {text}").command is not Command.APPROVE


@pytest.mark.parametrize(
    "text", ["continue " + " " * 100_000, "+1 " * 50_000, "stop" + " it" * 50_000, "1," * 60_000]
)
def test_a_hostile_instruction_is_parsed_quickly(text: str) -> None:
    read_instruction(text)
