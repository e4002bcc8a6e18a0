"""Tests of task skills: inputs are checked and inserted as data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import Refused
from resolver.memory.skills.skill import Origin, Skill, SkillInput, fill_task_skill

SINCE = SkillInput(name="since", description="the tag before")
STYLE = SkillInput(name="style", default="short")
COUNT = SkillInput(name="count", required=False)
QUIET = SkillInput(name="quiet", default="false")
BODY = "From ${since} on, {{ style }}, {{count}}, ${ quiet }; ${other} stays."


def task(*inputs: SkillInput, body: str = BODY) -> Skill:
    path = ".agents/skills/notes.md"
    return Skill("notes", "", body, path, Origin.REPOSITORY, "task", inputs=inputs)


TOLD = (
    "`/notes` can't",
    "`since` (required: the tag before)",
    "default short",
    "`count` (optional)",
    ".agents/skills/notes.md",
)
ALL = task(SINCE, STYLE, COUNT, QUIET)


def refusal(words: str) -> str:
    with pytest.raises(Refused) as caught:
        fill_task_skill(ALL, words)
    assert caught.value.next_step == "Ask again with its inputs: `/notes since=...`."
    return caught.value.what


def test_values_replace_both_kinds_of_placeholders() -> None:
    text = fill_task_skill(ALL, "since=v1.2 style=long count=7 quiet=true and be kind")
    assert text == "From v1.2 on, long, 7, true; ${other} stays."


def test_a_missing_input_has_its_default() -> None:
    assert fill_task_skill(ALL, "since=v1") == "From v1 on, short, , false; ${other} stays."


def test_quotes_keep_spaces_together() -> None:
    assert "From the first tag on" in fill_task_skill(ALL, """since="the first  tag" """)
    assert "From it's on" in fill_task_skill(ALL, '''since="it's"''')


def test_a_value_is_not_a_template() -> None:
    text = fill_task_skill(
        task(SINCE, STYLE, body="${since}"), "since='{{ style }} ${style} \\1 \\g<0>'"
    )
    assert text == "{{ style }} ${style} \\1 \\g<0>"


def test_a_skill_without_inputs_gets_all_text_unchanged() -> None:
    assert fill_task_skill(task(), "a=b ${since}") == BODY


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "`since` is missing"),
        ("since=", "`since` is empty"),
        ("sinse=v1 since=v1", "no input `sinse`"),
        (f"since={'x' * 2001}", "more than 2000 characters"),
    ],
)
def test_faults_are_reported_with_all_inputs(words: str, said: str) -> None:
    what = refusal(words)
    assert said in what
    for part in TOLD:
        assert part in what
    assert "\n" not in what


def test_an_equals_sign_inside_a_word_is_not_an_input() -> None:
    assert "From v1 on" in fill_task_skill(ALL, "since=v1 see https://example.org/?a=b")


@given(st.text(max_size=80))
def test_any_arguments_give_a_text_or_a_refusal(words: str) -> None:
    try:
        assert fill_task_skill(ALL, words)
    except Refused as refused:
        assert refused.what
