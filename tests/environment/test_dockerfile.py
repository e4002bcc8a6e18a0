"""Tests of the images that a Dockerfile names, and those that it may not name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resolver.errors import UsageError
from resolver.runtime.environment.dockerfile import read_base_images, refuse_triggers

DIGEST = "sha256:" + "395f0d19" * 8
OWN = f"resolver-prepared:{'a' * 64}"


def bases(text: str, **args: str) -> tuple[str, ...]:
    return read_base_images("ci/Dockerfile", text, args)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("FROM python:3.12\nRUN true\n", ("python:3.12",)),
        ("# syntax=docker/dockerfile:1\nfrom python\n", ("python:latest",)),
        ("FROM --platform=linux/amd64 go:1 AS fe\nFROM fe\nFROM scratch\n", ("go:1",)),
        ("ARG V=3.12\nFROM mcr.io/dev/python:${V}\n", ("mcr.io/dev/python:3.12",)),
        ("ARG V\nFROM python:${V:-3}\n", ("python:3",)),
        ("ARG A=python\nARG B=$A:3\nFROM $B\n", ("python:3",)),
        ("FROM a:1 AS be\nFROM b:1\nCOPY --from=be /x /x\nCOPY --from=0 /y /y\n", ("a:1", "b:1")),
        ("RUN echo \\\n  # note\n\n FROM ab\nFROM \\\r\n a:1\r\n", ("a:1",)),
        ("#escape=\\\nFROM a:1\nRUN git diff --from=ab && echo $((1<<2)) $x\n", ("a:1",)),
        ("FROM a:1\nARG X=ab\nRUN cat <<<word\n", ("a:1",)),
        ('ARG A=\'b\' C="${A}:1"\nFROM "$C" as x\nFROM x AS y\n', ("b:1",)),
        ("FROM a:1 AS ab\nFROM b:1\nCOPY --from=ab / /\n", ("a:1", "b:1")),
    ],
)
def test_the_bases_are_read_as_the_engine_reads_them(text: str, found: tuple[str, ...]) -> None:
    assert bases(text) == found


def test_a_build_argument_takes_precedence_over_its_default() -> None:
    assert bases("ARG V=1\nFROM a:$V\n", V="2", W="3") == ("a:2",)
    assert bases("FROM a:1$V\n", V="2") == ("a:1",)


@pytest.mark.parametrize(
    "text",
    [
        f"FROM {OWN}\n",
        f"FROM docker.io/library/{OWN}\n",
        f"FROM {DIGEST}\n",
        f"FROM {DIGEST[7:]}\n",
        "FROM 395f\n",
        "FROM ab AS ab\n",
        "FROM a:1\nFROM 0\n",
        "\ufeffFROM ab\n",
        "FROM\\\n ab\n",
        "FR\\\nOM ab\n",
        "\u00a0FROM\tab\n",
        'FROM "a"b\n',
        "FROM a\\b\n",
        "FROM --platform=x ab\n",
        'FROM --platform="x y" ab\n',
        "ARG X=ab\nFROM $X\n",
        "ARG X\nFROM ${X:-ab}\n",
        "ARG X=1\nFROM ${X:+ab}\n",
        "ARG X=a Y=b\nFROM $X${Y}\n",
        "ARG X='a'\"b\"\nFROM $X\n",
        "ARG X=resolver\nFROM ${X}-prepared:1\n",
        "FROM a:1\nARG X=b:\nFROM ${X}ab\n",
        "ARG X=b:1\nFROM ${X%:1}\n",
        "ARG X=b:1\nFROM ${X/b/c}\n",
        "FROM $1ab\n",
        "ARG X=a\nARG Xb=b:1\nFROM $X\\b\n",
        'ARG X=a\nARG Xb=b:1\nFROM $X"b"\n',
        'ARG X=ab Z="q X=b:1"\nFROM $X\n',
        "ARG X=ab\nARG X\nFROM ${X:-b:1}\n",
        "ARG X=ab\\ X=b:1\nFROM $X\n",
        "FROM a:1 AS ab\nCOPY --from=ab / /\n",
        "FROM a:1\nRUN x \\\r\r\nFROM b:1 AS ab\nFROM ab\n",
        "FROM a:1\nRUN x \\\n\x1c\nFROM ab\n",
        "FROM a:1\nRUN x \\\n\x0b\nFROM ab\n",
        "ONBUILD " * 3_000 + "COPY --from=ab / /\n",
        "FROM a:1\nCOPY --from=ab / /\n",
        f"FROM a:1\nCOPY --chown=x --from={OWN} / /\n",
        "FROM a:1\nCOPY --fr\\om=39\\5f / /\n",
        "FROM a:1\nCOPY --f\"ro\"m='ab' / /\n",
        "FROM a:1\nCOPY --fr\\\nom=ab / /\n",
        "FROM a:1\nCOPY --from=$X / /\n",
        "FROM a:1\nCOPY --from=later / /\nFROM b:1 AS deb\nCOPY --from=de / /\n",
        "FROM a:1 AS s\nONBUILD COPY --from=ab / /\nFROM s\n",
        "FROM a:1 AS s\nONBUILD  copy --from=ab / /\nFROM s\n",
        "# escape=`\nFROM a:1\nCOPY --fr`\nom=ab / /\n",
        'FROM a:1\nRUN <<"E\\"\nx\nE\\\nCOPY --from=ab / /\n',
        "FROM a:1\nRUN cat <<E\nFROM b AS ab\nE\nFROM ab\n",
    ],
)
def test_an_image_of_the_engine_can_t_be_named_in_any_way(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        bases(text)
    assert "ci/Dockerfile" in caught.value.what
    assert caught.value.next_step


def test_a_name_that_looks_like_an_id_is_refused_with_a_remedy() -> None:
    with pytest.raises(UsageError, match="beginning of an image's id") as caught:
        bases("FROM cafe\n")
    assert "cafe:latest" in caught.value.next_step


@pytest.mark.parametrize(
    "trigger",
    [
        "COPY --from=ab / /",
        "COPY --fr\\om=ab / /",
        "COPY --fr\\\nom=ab / /",
        "# escape=`\nCOPY --fr`\nom=ab / /",
        "RUN <<E",
    ],
)
def test_a_base_image_with_a_copying_trigger_is_refused(trigger: str) -> None:
    refuse_triggers("Dockerfile", "python:onbuild", ["COPY . /app", "RUN pip install -r r.txt"])
    with pytest.raises(UsageError, match="python:onbuild"):
        refuse_triggers("Dockerfile", "python:onbuild", ["RUN true", trigger])


@given(st.text(alphabet="FROMAGfrom $={}:-+\\\n\"'`ab<#-", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = bases(text)
    except UsageError as error:
        assert "ci/Dockerfile" in error.what
    else:
        assert all(":" in image for image in found)
