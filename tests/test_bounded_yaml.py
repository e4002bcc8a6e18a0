"""Tests of reading YAML within limits."""

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from resolver.config.bounded_yaml import MAX_EXPANDED_SIZE, MAX_YAML_LENGTH, read_yaml


@pytest.mark.parametrize(
    "text", ["a: 1", "[x, 2.5, no, 2020-01-02]", "", "a: !!set {x, y}", "0x1F"]
)
def test_yaml_within_the_limits_is_read_like_by_the_library(text: str) -> None:
    assert read_yaml(text) == yaml.safe_load(text)
    assert read_yaml(text.encode()) == yaml.safe_load(text)


def test_as_text_every_value_is_unchanged() -> None:
    text = "a: 1.0\nb: no\nc: !!python/name:os.system x\nd: 2020-99-99"
    assert read_yaml(text, texts=True) == {"a": "1.0", "b": "no", "c": "x", "d": "2020-99-99"}


def test_aliases_and_merge_keys_of_an_ordinary_size_are_followed() -> None:
    assert read_yaml("a: &a {x: 1}\nb: {<<: *a, y: *a}") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": {"x": 1}},
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" * 60 + "]" * 60, "within each other"),
        ("- " * 500, "within each other"),
        ("&a [*a]", "not known here"),
        ("x: &a {b: *a}", "not known here"),
        ("[*a]", "not known here"),
        ("a" * (MAX_YAML_LENGTH + 1), "more than"),
        ("é" * (MAX_YAML_LENGTH // 2 + 1), "more than"),
        ("1" * 101, "number"),
        ("0x" + "1" * 20_000, "number"),
        ("1" + ":1" * 20_000, "number"),
        ("1" + ":1" * 20_000 + ".5", "number"),
        ("2020-99-99", "can't be read"),
        ("!!int x", "can't be read"),
        ("!!int ''", "can't be read"),
        ("!!bool x", "can't be read"),
        ("!!timestamp x", "can't be read"),
        ("!!python/name:os.system x", "constructor"),
    ],
    ids=lambda text: text[:20],
)
def test_yaml_beyond_the_limits_is_refused_with_a_reason(text: str, problem: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as raised:
        read_yaml(text.encode())
    assert problem in str(raised.value.problem)


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(yaml.MarkedYAMLError) as raised:
        read_yaml("a: b\nb: &a [*a]\n")
    assert raised.value.problem_mark is not None and raised.value.problem_mark.line == 1


def size(value: Any) -> int:
    """Nodes and characters of a value, written out."""
    if isinstance(value, dict):
        return 1 + sum(size(k) + size(v) for k, v in value.items())
    if isinstance(value, list):
        return 1 + sum(size(item) for item in value)
    return 1 + len(value) if isinstance(value, str) else 1


def levels(first: str, shapes: list[tuple[str, int]]) -> str:
    lines = [f"a0: &a0 {first}"]
    for n, (shape, times) in enumerate(shapes):
        lines.append(f"a{n + 1}: &a{n + 1} " + shape % ", ".join([f"*a{n}"] * times))
    return "\n".join(lines)


SHAPES = st.tuples(st.sampled_from(["[%s]", "{<<: [%s]}", "{x: [%s]}"]), st.integers(1, 40))


@given(st.sampled_from(["[x]", "{x: y}"]), st.lists(SHAPES, max_size=12))
@example("{x: y}", [("{<<: [%s]}", 10)] * 12)
@example("[x]", [("[%s]", 10)] * 12)
def test_the_expansion_of_aliases_is_limited(first: str, shapes: list[tuple[str, int]]) -> None:
    try:
        found = read_yaml(levels(first, shapes))
    except yaml.YAMLError:
        found = None
    assert size(found) <= MAX_EXPANDED_SIZE


pieces = st.sampled_from(
    ["a", "1", ":", ": ", "- ", "\n", "  ", "&a ", "*a", "<<: ", "{", "}", "[", "]", ",", "!!int ",
     "!!float ", "!!timestamp ", "!!binary ", "!!omap ", "!!set ", "'", '"', "? ", "=", "|", "%",
     "\\", "é", "---\n", "...", "~", "2020-01-01", ".", "#"]
)  # fmt: skip


@given(st.lists(pieces, max_size=30).map("".join) | st.binary(max_size=60), st.booleans())
def test_any_text_is_read_or_refused_in_one_way(text: str | bytes, texts: bool) -> None:
    try:
        read_yaml(text, texts=texts)
    except yaml.YAMLError:
        return
