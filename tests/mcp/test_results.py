"""Tests of converting any tool result to an observation."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resolver.mcp.results import (
    MAX_FILE_CHARACTERS,
    MAX_IMAGE_CHARACTERS,
    MAX_IMAGES,
    MAX_TEXT_CHARACTERS,
    observation_of_result,
)
from tests.mcp.test_schemas import json_values, plain


def of(*content: Any, **more: Any) -> Any:
    return observation_of_result({"content": list(content), **more}, plain, lambda text: None)


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def image(data: str = "AAAA", kind: str = "image/png") -> dict[str, str]:
    return {"type": "image", "data": data, "mimeType": kind}


@given(
    st.dictionaries(
        st.sampled_from(["content", "structuredContent", "isError", "x"]),
        json_values
        | st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link"])},
                optional=dict.fromkeys(
                    ("text", "data", "mimeType", "resource", "uri"), json_values
                ),
            )
        ),
    )
)
def test_any_result_gives_an_observation(result: dict[str, Any]) -> None:
    found = observation_of_result(result, plain, lambda kept: "/kept")
    assert len(found.content) < MAX_TEXT_CHARACTERS + 500
    assert all(url.startswith("data:image/") for url in found.images)


def test_an_error_result_is_marked_as_one() -> None:
    assert of(text("no"), isError=True).error
    assert not of(text("no"), isError="true").error


def test_data_without_text_is_shown_as_text() -> None:
    found = of(structuredContent={"a": [1]})
    assert json.loads(found.content) == {"a": [1]} and found.structured == {"a": [1]}


def test_pictures_are_limited_in_kind_size_and_number() -> None:
    found = of(*[image()] * (MAX_IMAGES + 1), image(kind="image/svg+xml"))
    assert found.images == ("data:image/png;base64,AAAA",) * MAX_IMAGES
    assert "a result may have" in found.content and "PNG, JPEG" in found.content
    assert of(image("A" * (MAX_IMAGE_CHARACTERS + 4))).images == ()
    assert of(image("<script>")).images == ()


def test_resources_are_described() -> None:
    found = of(
        {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}},
        {"type": "resource_link", "uri": "https://x/y", "name": "n"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    )
    for words in ("file:///a]\ninside", "file:///b: 3 bytes", "n https://x/y", "[audio: can't"):
        assert words in found.content


def test_a_long_text_is_stored_up_to_a_limit_and_its_ends_are_shown() -> None:
    kept: list[str] = []

    def keep(words: str) -> str:
        kept.append(words)
        return "/kept"

    long = "begin" + "x" * MAX_FILE_CHARACTERS + "end"
    found = observation_of_result({"content": [text(long)]}, plain, keep)
    assert len(kept[0]) == MAX_FILE_CHARACTERS and found.output_file == "/kept"
    assert found.content.startswith("begin") and found.content.endswith("end")
    assert "first part of the result is in /kept" in found.content


def test_without_storage_the_rest_is_reported_as_lost() -> None:
    found = of(text("x" * (MAX_TEXT_CHARACTERS + 1)))
    assert found.output_file is None and "Ask for less at a time" in found.content


def test_every_text_of_a_result_is_cleaned() -> None:
    def clean(words: str) -> str:
        return words.replace("SECRET", "[redacted]")

    hidden = {
        "content": [
            text("SECRET"),
            {"type": "resource", "resource": {"uri": "SECRET", "text": "SECRET"}},
            {"type": "resource_link", "uri": "SECRET", "name": "SECRET"},
            {"type": "SECRET"},
        ],
    }
    assert "SECRET" not in observation_of_result(hidden, clean, lambda kept: None).content
