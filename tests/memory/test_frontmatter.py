"""Tests of YAML front matter: fields, line numbers, and any bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from resolver.errors import FrontmatterError
from resolver.memory.frontmatter import MAX_FRONTMATTER_LENGTH, read_document, validate_document


class Head(BaseModel):
    model_config = ConfigDict(extra="ignore")

    name: str
    triggers: tuple[str, ...] = ()


def read(text: str) -> Head:
    return validate_document(read_document(text, "a.md"), Head)


def refusal(text: str) -> FrontmatterError:
    with pytest.raises(FrontmatterError) as caught:
        read(text)
    return caught.value


def test_a_duplicate_field_is_refused_at_the_second() -> None:
    error = refusal("---\nname: a\ntriggers: [x]\nname: b\n---\n")
    assert error.line == 4 and "`name` occurs twice" in error.what


def test_broken_yaml_is_named_with_its_line() -> None:
    error = refusal("---\nname: a\ntriggers: [x\n---\n")
    assert error.line in {3, 4} and "not valid YAML" in error.what
    assert refusal("---\nname: a\n\tb: c\n---\n").line == 3


def test_a_wrong_field_is_named_with_its_line() -> None:
    error = refusal("---\nname: a\n\n# comment\ntriggers: word\n---\n")
    assert error.line == 5 and "`triggers`" in error.what


def test_huge_front_matter_is_refused_but_not_a_huge_body() -> None:
    assert "more than" in refusal(f"---\nname: {'x' * MAX_FRONTMATTER_LENGTH}\n---\n").what
    assert len(read_document(f"---\nname: a\n---\n{'x' * 5_000_000}", "a.md").body) == 5_000_000


yamlish = st.lists(
    st.sampled_from(
        [
            *"abz019-:?[]{},&*!|>'\"%@`#~ \t\n.\\/",
            "---\n",
            "...\n",
            "name",
            "<<",
            "\ufeff",
            "\r\n",
            "\0",
        ]
    )
    | st.characters(),
    max_size=40,
).map("".join)


@given(yamlish)
@example("---\n%YAML 99999999999999999999999.1\n---\n")
@example("---\n? [a]\n: b\n---\n")
@example("---\na: b\n...\nc: d\n---\n")
def test_any_text_gives_fields_or_an_error_with_a_line(text: str) -> None:
    for candidate in (text, f"---\n{text}", f"---\n{text}\n---\nbody"):
        try:
            head = read(candidate)
        except FrontmatterError as error:
            assert 1 <= error.line <= candidate.count("\n") + candidate.count("\r") + 1
        else:
            assert head.name.encode() is not None
