"""Tests of the tag dialect: what is an action, what is text, and what is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.tags import OTHER_NAMES, parse_tags, tag_form
from resolver.agents.tools.registry import TOOL_NAMES, TOOLS
from resolver.events import actions as a
from resolver.events.base import ActionBase

NAMES = (*TOOL_NAMES, *OTHER_NAMES)
ARGUMENTS = sorted({name for tool in TOOLS.values() for name in tool.arguments.model_fields})
tricky = st.lists(
    st.sampled_from(
        [
            *(f"<{slash}{name}>" for name in (*NAMES, *ARGUMENTS) for slash in ("", "/")),
            '<execute_bash timeout="9">', '<finish a="', "<think/>", "</think", "/exit",
            "```", "````", "`", "``", "~~~", "\n", "\n\n", " ", "ls", "&lt;", "\\", '"', ">",
        ]
    ),
    max_size=14,
).map("".join)  # fmt: skip
content = st.text(max_size=80) | tricky


def in_tags(tool: str, arguments: dict[str, Any]) -> str:
    """Return a call as a model writes it in tags."""
    form, verbatim = tag_form(tool), TOOLS[tool].arguments.verbatim
    texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in arguments.items()}
    content = texts.pop(form.content, "") if form.content else ""
    ends = {name: "" if name in verbatim else "\n" for name in texts}
    elements = "".join(f"\n<{n}>\n{text}{ends[n]}</{n}>" for n, text in texts.items())
    return f"<{tool}>\n{content}{elements}\n</{tool}>"


def only(reply: str, cut: bool = False) -> ActionBase:
    (action,) = parse_tags(reply, cut)
    return action


def reason(reply: str, cut: bool = False) -> str:
    action = only(reply, cut)
    assert isinstance(action, a.Invalid), action
    return action.reason


@given(content, st.booleans())
def test_any_text_gives_actions_or_one_invalid(reply: str, cut: bool) -> None:
    parsed = parse_tags(reply, cut)
    invalid = [x for x in parsed if isinstance(x, a.Invalid)]
    assert not invalid or len(parsed) == 1
    assert all(x.reason for x in invalid)


@given(st.text(max_size=80).filter(str.strip), st.lists(st.sampled_from(NAMES), max_size=2))
def test_a_text_is_taken_verbatim_with_the_tags_of_other_tools(
    text: str, others: list[str]
) -> None:
    text += "".join(f"<{name}>x</{name}>" for name in others if name != "execute_bash")
    assert only(f"<execute_bash>\n{text}\n</execute_bash>") == a.CmdRun(command=text)


def test_the_text_around_the_tags_is_the_thought_of_the_first_action() -> None:
    first, second = parse_tags(
        "I look.\n<execute_bash>\nls\n</execute_bash>\nThen\n<execute_ipython>1</execute_ipython>."
    )
    assert first == a.CmdRun(command="ls", thought="I look.\n\nThen\n\n.")
    assert second == a.IPythonRunCell(code="1")


@pytest.mark.parametrize(
    ("reply", "actions"),
    [
        ("The issue says `<execute_bash>rm -rf /</execute_bash>`, which I ignore.", ()),
        ("Twice: ``<finish>`x`</finish>`` is text.", ()),
        ("```\n<finish>done</finish>\n```\n<think>x</think>", (a.Think,)),
    ],
)
def test_a_tag_in_code_is_text(reply: str, actions: tuple[type[ActionBase], ...]) -> None:
    assert tuple(map(type, parse_tags(reply))) == actions


def test_arguments_are_elements_after_the_text() -> None:
    reply = (
        "<finish>\nMend it\n\nIn short.\n<task_completed>false</task_completed>\n<cause>\nA < B.\n"
        "</cause>\n\n<verification>\nRan\n\n- a\n- b\n</verification>\n</finish>"
    )
    assert only(reply) == a.Finish(
        message="Mend it\n\nIn short.",
        task_completed=False,
        root_cause="A < B.",
        verification="Ran\n\n- a\n- b",
    )


@pytest.mark.parametrize(
    "content",
    [
        "Done\n<cause>never closed",
        "Done\n<cause>a</cause>\nand more",
        "Done\n<cause>a</cause>\n<cause>b</cause>",
        "The tag <cause>a</cause> is new",
        "Done\n<root_cause>a</root_cause>",
        'Done\n<cause a="b">a</cause>',
    ],
)
def test_text_that_is_not_clearly_an_argument_stays_in_the_message(content: str) -> None:
    assert only(f"<finish>\n{content}\n</finish>") == a.Finish(message=content)


def test_a_last_block_cut_off_by_a_stop_sequence_is_accepted() -> None:
    assert only("Look:\n<execute_bash>\nls\n") == a.CmdRun(command="ls", thought="Look:")


def test_a_last_block_cut_off_by_the_output_limit_is_not_executed() -> None:
    refusal = reason("<execute_bash>\nrm -rf /tmp/x", cut=True)
    assert "is not closed" in refusal and "output limit" in refusal


EDITOR = "<str_replace_editor><command>{}</command>{}</str_replace_editor>"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("```xml\n<execute_bash>ls</execute_bash>\n```", "code fence"),
        ("<execute_bash>grep '<execute_bash>' -r .</execute_bash>", "stands inside"),
        ("<execute_bash>rm -rf ./a</execute_bash>/b</execute_bash>", "closes nothing"),
        ("I use <execute_bash> to see what is there.", "is not closed"),
        ("<execute_bash>\nls\n<finish>done</finish>", "is not closed"),
        ("<execute_bash>\nls\n</execute_bsh>\n<finish>x</finish>", "not closed"),
        ("</execute_bash>", "closes nothing"),
        ('<execute_bash timeout="3">ls</execute_bash>', "arguments are written inside"),
        ("<execute_bash>ls</execute_bash><delegate> </delegate>", "task is empty"),
        ("<execute_basch>\nls\n</execute_basch>", "did you mean 'execute_bash'"),
        ("<str_replace_editor>view a.py</str_replace_editor>", "nothing but"),
        (EDITOR.format("open", "<path>x</path>"), "'view'"),
        (EDITOR.format("view", '<path a="b">x</path>'), "<NAME>"),
        (EDITOR.format("view", "<path>x</path><path>y</path>"), "twice"),
        (EDITOR.format("create", "<path>x</path><file_text>\nhalf"), "<NAME>"),
    ],
)
def test_a_wrong_form_of_a_tag_is_explained_and_nothing_is_run(reply: str, words: str) -> None:
    refusal = reason(reply)
    assert words in refusal
    assert "nothing of it was run" in refusal


def test_a_file_keeps_its_last_newline_and_a_replacement_its_indentation() -> None:
    write, edit = parse_tags(
        EDITOR.format("create", "<path>a</path>\n<file_text>\none\n</file_text>\n")
        + EDITOR.format(
            "str_replace", "<path>a</path><old_str>\n  one\n</old_str>\n<new_str></new_str>"
        )
    )
    assert write == a.FileWrite(path="a", content="one\n")
    assert edit == a.FileEdit(command="str_replace", path="a", old_str="  one", new_str="")


def test_unopened_reasoning_is_not_executed() -> None:
    reply = "Maybe <finish>x</finish>? No.\n</think>\n<execute_bash>ls</execute_bash>"
    assert only(reply) == a.CmdRun(command="ls", thought="Maybe <finish>x</finish>? No.")


def test_a_think_tag_in_a_command_is_not_taken_for_reasoning() -> None:
    reply = "<execute_bash>grep '</think>' -r .</execute_bash>"
    assert only(reply) == a.CmdRun(command="grep '</think>' -r .")


@pytest.mark.parametrize(
    "unit", ["<execute_bash ", '<execute_bash a="', "<finish", "`", "```\n", "</think", "<think>"]
)
def test_hostile_length_does_not_cost_more_than_linear_time(unit: str) -> None:
    parse_tags(unit * (200_000 // len(unit)))
