"""Tests of the tag dialect: what is an action, what is text, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.agents.tags import TAG_NAMES, parse_tags, write_tags
from resolver.agents.tools.registry import TOOLS
from resolver.events import actions as a
from resolver.events.base import ActionBase
from resolver.models.pull_request import ThreadAnswer
from resolver.models.run import PlanItem

text = st.text(max_size=80)
path = st.text(min_size=1, max_size=40)
ARGUMENTS = sorted({name for tool in TOOLS.values() for name in tool.arguments.model_fields})
tricky = st.lists(
    st.sampled_from(
        [
            *(f"<{name}>" for name in TAG_NAMES),
            *(f"</{name}>" for name in TAG_NAMES),
            *(f"<{name}>" for name in ARGUMENTS),
            *(f"</{name}>" for name in ARGUMENTS),
            '<execute_bash timeout="9">', '<execute_bash end="E">', "</execute_bash E>",
            '<str_replace_editor command="view" path="x">', '<finish a="', "<think/>",
            "```", "````", "`", "``", "~~~", "\n", "\n\n", " ", "ls", "END1",
            "&lt;", "\\", '"', ">",
        ]
    ),
    max_size=14,
).map("".join)  # fmt: skip
content = text | tricky
solid = content.filter(lambda t: bool(t.strip()))
sections = st.lists(
    st.sampled_from(
        ["<cause>", "</cause>", "<remaining>", "</remaining>", "\n", "x", "<change", " "]
    ),
    max_size=8,
).map("".join)
answers = st.lists(
    st.builds(
        ThreadAnswer,
        id=st.integers(1, 60).map(lambda n: f"T{n}"),
        addressed=st.booleans(),
        answer=content | st.sampled_from(["T2 addressed: x", "a\nT3 answered: b", "</threads>"]),
    ),
    max_size=4,
    unique_by=lambda tool_call: tool_call.id,
).map(tuple)
actions = st.one_of(
    st.builds(
        a.CmdRun,
        command=solid,
        timeout=st.none() | st.floats(1e-3, 3600),
        is_input=st.booleans(),
    ),
    st.builds(a.CmdRun, command=content, is_input=st.just(True)),
    st.builds(a.IPythonRunCell, code=solid),
    st.builds(a.Think, content=content),
    st.builds(
        a.Finish,
        message=content,
        task_completed=st.booleans(),
        root_cause=content | sections,
        change=content | sections,
        verification=content,
        remaining=content,
    ),
    st.builds(a.Finish, message=content | sections),
    st.builds(a.Finish, message=content | sections, threads=answers),
    st.builds(
        a.FileRead,
        path=path,
        view_range=st.none() | st.tuples(st.integers(1, 99), st.integers(-1, 99)),
    ),
    st.builds(a.FileWrite, path=path, content=content),
    st.builds(
        a.FileEdit,
        command=st.just("str_replace"),
        path=path,
        old_str=content.filter(bool),
        new_str=content,
    ),
    st.builds(
        a.FileEdit,
        command=st.just("insert"),
        path=path,
        insert_line=st.integers(0, 10**6),
        new_str=content,
    ),
    st.builds(a.FileEdit, command=st.just("undo_edit"), path=path),
    st.builds(a.Delegate, agent=path, task=solid),
    st.builds(
        a.PlanUpdate,
        items=st.lists(
            st.builds(
                PlanItem,
                title=text.map(lambda t: " ".join(t.split())).filter(bool),
                status=st.sampled_from(["todo", "doing", "done"]),
            ),
            min_size=1,
            max_size=4,
        ).map(tuple),
    ),
)


def only(reply: str, cut: bool = False) -> ActionBase:
    parsed = parse_tags(reply, cut)
    assert len(parsed) == 1, parsed
    return parsed[0]


def reason(reply: str, cut: bool = False) -> str:
    action = only(reply, cut)
    assert isinstance(action, a.Invalid), action
    return action.reason


@given(actions)
def test_a_written_action_parses_back_to_itself(action: ActionBase) -> None:
    assert parse_tags(write_tags(action)) == (action,)


@given(st.lists(actions, min_size=1, max_size=4))
def test_several_written_actions_parse_back_in_order(several: list[ActionBase]) -> None:
    assert parse_tags("\n".join(map(write_tags, several))) == tuple(several)


@given(content, st.booleans())
def test_any_text_gives_actions_or_one_invalid(reply: str, cut: bool) -> None:
    parsed = parse_tags(reply, cut)
    invalid = [x for x in parsed if isinstance(x, a.Invalid)]
    assert not invalid or len(parsed) == 1
    assert all(x.reason for x in invalid)


def test_the_text_around_the_tags_is_the_thought_of_the_first_action() -> None:
    first, second = parse_tags(
        "I look.\n<execute_bash>\nls\n</execute_bash>\nThen\n<execute_bash>pwd</execute_bash>."
    )
    assert first == a.CmdRun(command="ls", thought="I look.\n\nThen\n\n.")
    assert second == a.CmdRun(command="pwd")


@pytest.mark.parametrize(
    "reply",
    [
        "The issue says `<execute_bash>rm -rf /</execute_bash>`, which I ignore.",
        "Twice: ``<finish>`x`</finish>`` is text.",
    ],
)
def test_a_tag_in_inline_code_is_text(reply: str) -> None:
    assert parse_tags(reply) == ()


def test_a_tag_in_a_fence_is_ignored_if_there_is_one_outside() -> None:
    reply = "They wrote\n```\n<finish>done</finish>\n```\n<execute_bash>ls</execute_bash>"
    assert [type(x) for x in parse_tags(reply)] == [a.CmdRun]


def test_a_reply_whose_only_tag_is_in_a_fence_is_answered_so() -> None:
    assert "code fence" in reason("```xml\n<execute_bash>ls</execute_bash>\n```")


def test_a_tag_nested_in_itself_is_refused_with_the_correct_form() -> None:
    refusal = reason("<execute_bash>grep '<execute_bash>' -r .</execute_bash>")
    assert 'end="WORD"' in refusal


def test_a_closing_tag_in_the_content_runs_nothing() -> None:
    assert "closes nothing" in reason("<execute_bash>rm -rf ./a</execute_bash>/b</execute_bash>")


def test_the_end_word_lets_content_contain_its_own_tag() -> None:
    reply = '<execute_bash end="X">echo "</execute_bash>"</execute_bash X>'
    assert only(reply) == a.CmdRun(command='echo "</execute_bash>"')


def test_a_finish_has_its_sections_as_tags_after_the_message() -> None:
    reply = (
        '<finish task_completed="false">\nMend it\n\nIn short.\n<cause>\nA < B.\n</cause>\n\n'
        "<verification>\nRan\n\n- a\n- b\n</verification>\n</finish>"
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
        "Done\n<reason>a</reason>",
        'Done\n<cause a="b">a</cause>',
    ],
)
def test_text_that_is_not_clearly_a_section_stays_in_the_message(content: str) -> None:
    assert only(f"<finish>\n{content}\n</finish>") == a.Finish(message=content)


def test_a_last_block_cut_off_by_a_stop_sequence_is_accepted() -> None:
    assert only("Look:\n<execute_bash>\nls\n") == a.CmdRun(command="ls", thought="Look:")


def test_a_last_block_cut_off_by_the_output_limit_is_not_executed() -> None:
    refusal = reason("<execute_bash>\nrm -rf /tmp/x", cut=True)
    assert "is not closed" in refusal and "output limit" in refusal


def test_a_tag_named_in_a_sentence_is_not_run_to_the_end_of_the_text() -> None:
    assert "is not closed" in reason("I use <execute_bash> to see what is there.")


def test_an_unclosed_block_before_another_runs_neither() -> None:
    assert "is not closed" in reason("<execute_bash>\nls\n<finish>done</finish>")


def test_attributes_are_coerced() -> None:
    reply = "<execute_bash timeout='300' is_input=\"True\">y</execute_bash>"
    assert only(reply) == a.CmdRun(command="y", timeout=300.0, is_input=True)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ('<execute_bash timeout="soon">ls</execute_bash>', "timeout"),
        ('<execute_bash timeout="0">ls</execute_bash>', "greater than 0"),
        ('<execute_bash timout="3">ls</execute_bash>', "did you mean 'timeout'"),
        ("<execute_bash timeout=3>ls</execute_bash>", "malformed"),
        ('<execute_bash command="ls">ls</execute_bash>', "given twice"),
        ("<execute_bash></execute_bash>", "empty"),
        ("<delegate> </delegate>", "task is empty"),
        ('<finish task_completed="perhaps">x</finish>', "task_completed"),
        ("<execute_basch>\nls\n</execute_basch>", "did you mean 'execute_bash'"),
        ("<str_replace_edit>\n<path>x</path>\n</str_replace_edit>", "'str_replace_editor'"),
        ("&lt;x&gt;\n<finsh>\ndone\n</finsh>", "did you mean 'finish'"),
        ("<execute_bash>\nls\n</execute_bsh>\n<finish>x</finish>", "not closed"),
        ("</execute_bash>", "closes nothing"),
        ('<str_replace_editor command="view" path="x" path="y"/>', "given twice"),
        ("<plan>\n[x] a\n" + "[ ] b\n" * 50 + "</plan>", "at most 50 items"),
        ("<execute_python>\n1\n</execute_python>", "did you mean"),
        ('<str_replace_editor command="view">x</str_replace_editor>', "nothing but"),
        ('<str_replace_editor command="view"></str_replace_editor>', "path is missing"),
        ('<str_replace_editor command="open" path="x"/>', "'view'"),
        ('<str_replace_editor command="view"><path a="b">x</path></str_replace_editor>', "<NAME>"),
        (
            '<str_replace_editor command="view" path="x"><path>x</path></str_replace_editor>',
            "twice",
        ),
        (
            '<str_replace_editor command="create" path="x"><file_text>\nhalf',
            "<file_text> is not closed",
        ),
    ],
)
def test_a_wrong_form_of_a_tag_is_explained(reply: str, words: str) -> None:
    refusal = reason(reply)
    assert words in refusal
    assert "nothing of it was run" in refusal


def test_one_bad_block_keeps_the_others_from_running() -> None:
    assert "task is empty" in reason("<execute_bash>ls</execute_bash><delegate> </delegate>")


def test_the_editor_accepts_arguments_as_attributes_or_as_tags() -> None:
    as_tags = (
        "<str_replace_editor>\n<command>view</command>\n<path>a.py</path>\n"
        "<view_range>1-40</view_range>\n</str_replace_editor>"
    )
    as_attributes = '<str_replace_editor command="view" path="a.py" view_range="[1, 40]"/>'
    assert only(as_tags) == only(as_attributes) == a.FileRead(path="a.py", view_range=(1, 40))


def test_the_name_of_the_cell_tag_in_codeact_is_accepted() -> None:
    reply = "<execute_ipython>\nx = 1\n</execute_ipython>"
    assert only(reply) == a.IPythonRunCell(code="x = 1")


def test_a_file_keeps_its_last_newline_and_a_replacement_its_indentation() -> None:
    write, edit = parse_tags(
        '<str_replace_editor command="create" path="a">\n<file_text>\none\n</file_text>\n'
        '</str_replace_editor>\n<str_replace_editor command="str_replace" path="a">\n'
        "<old_str>\n  one\n</old_str>\n<new_str></new_str>\n</str_replace_editor>"
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
