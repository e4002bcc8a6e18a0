"""Tests of instructions that ask for help or a review, answer a run, or name an agent or task."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.github.events.commands import (
    COMMAND_NAMES,
    Instruction,
    asks_for_nothing,
    find_instruction,
    read_instruction,
)
from resolver.models.run import Command


def read(text: str, *, pull: bool = False) -> tuple[Command, str]:
    instruction = read_instruction(text, pull_request=pull)
    assert not instruction.named
    return instruction.command, instruction.text


@pytest.mark.parametrize(
    "text",
    ["help", "Help!", "please help", "help please", "?", "/help", "/help me", "/HELP", "/ask",
     "ask"],
)  # fmt: skip
def test_help_is_asked_for_alone(text: str) -> None:
    assert read(text) == (Command.HELP, "")


@pytest.mark.parametrize(
    "text",
    ["help me with the parser", "help. The parser crashes", "helpers are slow",
     "help wanted labels",
     "what can you do about this?", "? is not escaped"],
)  # fmt: skip
def test_a_request_for_help_with_something_is_work(text: str) -> None:
    assert read(text) == (Command.FIX, text)


@pytest.mark.parametrize("body", ["@agent ?", "@agent?", "@agent  ??", "Hi @agent help"])
def test_a_question_mark_after_the_mention_is_not_lost(body: str) -> None:
    found = find_instruction(body, "@agent")
    assert found is not None and read(found)[0] is Command.HELP


def test_a_question_mark_behind_the_mention_belongs_to_the_words_before_it() -> None:
    assert find_instruction("Can you fix this, @agent?", "@agent") == "Can you fix this?"
    request = find_instruction("Why does add() subtract @agent?", "@agent")
    assert request is not None
    assert read(request) == (Command.FIX, "Why does add() subtract?")


@pytest.mark.parametrize(
    ("text", "command", "reason"),
    [
        ("approve", Command.APPROVE, ""),
        ("Approve!", Command.APPROVE, ""),
        ("please approve, thanks", Command.APPROVE, ""),
        ("deny", Command.DENY, ""),
        ("deny: that is the production key", Command.DENY, "that is the production key"),
        ("reject", Command.DENY, ""),
        ("/deny not on a Friday", Command.DENY, "not on a Friday"),
        ("/approve", Command.APPROVE, ""),
        ("approve 482913", Command.APPROVE, "482913"),
        ("please approve `482913`, thanks", Command.APPROVE, "`482913`, thanks"),
        ("/approve 482913", Command.APPROVE, "482913"),
        ("deny 482913: too broad", Command.DENY, "482913: too broad"),
    ],
)
def test_an_answer_to_a_run_is_a_complete_instruction(
    text: str, command: Command, reason: str
) -> None:
    assert read(text) == (command, reason)


@pytest.mark.parametrize(
    "text",
    [
        "approve?",
        "approve, but only when the tests pass",
        "approve if it is safe",
        "approve, if it is safe",
        "approve. Unless it pushes",
        "approve, but wait for the tests",
        "approve, don't",
        "/approve pending a review",
        "/approve but only when the tests pass",
        "/approve, if it is safe",
        "approve the pull request",
        "approve 482913?",
        "approve 482913, but only when the tests pass",
        "/approve 482913 if it is safe",
        "approve. It only touches /tmp, doesn't it",
        "approve, as soon as the tests pass",
        "approve, given that nothing else changes",
        "approve: sofern die Tests durchlaufen",
        "/approve in case it is safe",
        "approve, thanks, after the release",
        "approve 48 rows of the table",
        "approve 482913.5 in parse()",
        "approval rules are wrong",
        "don't approve",
        "approved by nobody yet, please fix",
        "reject empty names in parse()",
        "deny-lists are not read",
    ],
)
def test_a_conditional_approval_is_no_approval(text: str) -> None:
    assert read(text)[0] is Command.FIX


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("review", ""),
        ("Review!", ""),
        ("please review", ""),
        ("review for security holes", "for security holes"),
        ("review: is the cache still right?", "is the cache still right?"),
        ("/review only the tests", "only the tests"),
        ("review this, don't change anything", "this, don't change anything"),
    ],
)
def test_on_a_pull_request_a_review_can_be_asked_for(text: str, words: str) -> None:
    assert read(text, pull=True) == (Command.REVIEW, words)


@pytest.mark.parametrize("text", ["reviewers are not notified", "review-app deploys fail"])
def test_a_word_that_only_begins_like_a_command_is_none(text: str) -> None:
    assert read(text, pull=True) == (Command.FIX, text)


@pytest.mark.parametrize(
    "text",
    ["thanks", "Thank you so much!", "LGTM 👍", "looks good, thanks!", "nice work", "ok, thanks."],
)
def test_thanks_ask_for_nothing(text: str) -> None:
    assert asks_for_nothing(text)


@pytest.mark.parametrize(
    "text", ["", "thanks, please also fix b.py", "looks good but rename x", "great, continue", "ok"]
)
def test_thanks_with_a_request_ask_for_work(text: str) -> None:
    assert not asks_for_nothing(text)


@pytest.mark.parametrize("text", ["review for bugs", "review the parser", "review: is it right?"])
def test_on_an_issue_a_review_of_something_is_work(text: str) -> None:
    assert read(text) == (Command.FIX, text)


@pytest.mark.parametrize("text", ["review", "please review", "/review"])
def test_a_bare_review_is_never_work(text: str) -> None:
    assert read(text) == (Command.REVIEW, "")


@pytest.mark.parametrize(
    ("text", "named", "words"),
    [
        ("/release-notes since=v1.2", "release-notes", "since=v1.2"),
        ("/release_notes", "release_notes", ""),
        ("/Counter, and be quick", "Counter", "and be quick"),
        ("/docs\nall of it\nplease", "docs", "all of it\nplease"),
        ("/x why is it so?", "x", "why is it so?"),
        ("/notes: stop", "notes", "stop"),
    ],
)
def test_a_slash_names_an_agent_or_a_task(text: str, named: str, words: str) -> None:
    assert read_instruction(text) == Instruction(named=named, text=words)


@pytest.mark.parametrize(
    "text",
    ["/src/parser.py is slow", "/ is not served", "//x", "use /tmp", "/a.b", "/naïve",
     "/" + "x" * 65],
)  # fmt: skip
def test_a_path_is_not_a_name(text: str) -> None:
    assert read(text) == (Command.FIX, text)


@pytest.mark.parametrize(
    ("text", "command", "words"),
    [
        ("/stop using so much money", Command.STOP, "using so much money"),
        ("/pause", Command.PAUSE, ""),
        ("/continue supporting 3.8", Command.CONTINUE, "supporting 3.8"),
        ("/fix the parser", Command.FIX, "the parser"),
        ("/ask explain the cache", Command.QUESTION, "explain the cache"),
    ],
)
def test_a_slash_makes_any_instruction_a_command(text: str, command: Command, words: str) -> None:
    assert read(text) == (command, words)


def test_a_slash_before_continue_still_reads_its_amounts() -> None:
    instruction = read_instruction("/continue +50 iterations, and use pytest")
    assert (instruction.extension.iterations, instruction.text) == (50, "use pytest")


def test_reserved_names_are_the_slash_commands() -> None:
    for name in COMMAND_NAMES:
        assert read_instruction(f"/{name} x", pull_request=True).named == ""


PIECES = st.lists(
    st.sampled_from(
        ["/", "help", "?", "review", "approve", "deny", "/stop", "/x", "fix", "this", "the", "but",
         "if", ".", ",", ":", "\n", " ", "please", "and", "ask", "-", "_", "\u0660", "é", "\0"]
    ),
    max_size=25,
).map(" ".join)  # fmt: skip


@given(st.one_of(st.text(max_size=200), PIECES), st.booleans())
def test_any_text_gives_an_instruction(text: str, pull: bool) -> None:
    instruction = read_instruction(text, pull_request=pull)
    assert len(instruction.text) <= len(text)
    assert instruction.text in text
    if instruction.named:
        assert instruction.command is Command.FIX
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", instruction.named)
        assert text.strip().startswith(f"/{instruction.named}")
    if instruction.command in {Command.HELP, Command.STOP, Command.PAUSE}:
        assert not instruction.extension.iterations


@given(st.text(max_size=100), st.sampled_from(["but", "if", "unless", "only when", "not"]))
def test_a_condition_directly_after_approve_is_never_an_approval(rest: str, word: str) -> None:
    for begun in ("approve,", "/approve", "/approve:"):
        assert read_instruction(f"{begun} {word} {rest}").command is not Command.APPROVE
