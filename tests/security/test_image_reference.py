"""Tests of which images a repository may name."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resolver.config.image_reference import (
    PREPARED_PREFIX,
    ImagePattern,
    check_repository_image,
    parse_registry_reference,
)
from resolver.config.settings import load_settings
from resolver.config.sources import repository_settings
from resolver.errors import UsageError

DIGEST = "sha256:" + "395f0d19" * 8
OWN = (
    f"{PREPARED_PREFIX}:{'a' * 64}",
    PREPARED_PREFIX,
    f"library/{PREPARED_PREFIX}:1",
    f"docker.io/library/{PREPARED_PREFIX}:1",
    f"docker.io/{PREPARED_PREFIX}",
    f"index.docker.io/library/{PREPARED_PREFIX}:1",
    f"registry-1.docker.io/library/{PREPARED_PREFIX}:1",
    f"localhost/{PREPARED_PREFIX}:1",
    f"{PREPARED_PREFIX}@{DIGEST}",
    f" {PREPARED_PREFIX}:1 ",
)
IDS = (DIGEST, DIGEST[7:], "sha256:395f", "sha256:", f" {DIGEST}", DIGEST[7:].upper())
NONE = (
    "", " ", "a b", "-x", "a:", "a@b", "A", "a/", "/a", "../a", "a$b", "a\nb", "https://x/y",
    f"@{DIGEST}", f"x@{DIGEST[:20]}", "x" * 300, "r\u00e9solver", "a:b:c",
)  # fmt: skip


@pytest.mark.parametrize(
    "image",
    [
        "python:3.12-slim-bookworm", "ghcr.io/us/ci:main", f"ghcr.io/us/ci@{DIGEST}",
        f"localhost:5000/ci:1@{DIGEST}", "us/resolver:1", "mcr.microsoft.com/devcontainers/go:1",
    ],
)  # fmt: skip
def test_an_image_of_a_registry_is_accepted_unchanged(image: str) -> None:
    assert parse_registry_reference(image, "here") == image


@pytest.mark.parametrize("name", ["cafe", "ab", "395f0d19", "3", "python", "a/b"])
def test_a_name_without_a_tag_gets_one(name: str) -> None:
    assert parse_registry_reference(name, "here") == f"{name}:latest"


@pytest.mark.parametrize(("image", "why"), [
    *((image, "made by Resolver") for image in OWN),
    *((image, "its id on the engine") for image in IDS),
    *((image, "not the name of an image") for image in NONE),
])  # fmt: skip
def test_an_image_of_the_engine_is_refused_with_a_reason(image: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        parse_registry_reference(image, ".github/resolver.yml, image,")
    assert caught.value.what.startswith(".github/resolver.yml, image")
    assert "RESOLVER_IMAGE" in caught.value.next_step


@given(st.text(alphabet="abcdef0123:@/.-_$\n A", max_size=80))
@example("a" + "-" * 200)
@example("a_" * 120)
def test_no_text_becomes_an_id_or_an_image_of_resolver(text: str) -> None:
    try:
        found = parse_registry_reference(text, "here")
    except UsageError:
        return
    assert ":" in found  # an engine takes no name with a tag for the beginning of an id
    assert not re.search(r"(?:^|/)resolver-(?:built|prepared)", found)


@pytest.mark.parametrize("image", [*OWN, *IDS])
def test_the_operator_may_name_an_image_that_only_the_engine_has(image: str) -> None:
    for options, environment in (({"image": image.strip()}, {}), ({}, {"RESOLVER_IMAGE": image})):
        assert load_settings(options, environment).image == image.strip()
    with pytest.raises(UsageError, match=r"\.github/resolver\.yml, image"):
        load_settings({}, {}, {"image": image})


def test_a_repository_s_setting_is_explicit_and_what_it_describes_is_left_alone() -> None:
    text = b"image: cafe\n"
    assert load_settings({}, {}, repository_settings(text)).image == "cafe:latest"
    for described in ("devcontainer", "dockerfile:ci/Dockerfile", 3, None):
        assert check_repository_image(described, "here") == described


@pytest.mark.parametrize(
    ("pattern", "reference", "fits"),
    [
        ("postgres", "postgres:16", True),
        ("postgres", "docker.io/library/postgres:16", True),
        ("library/postgres", "postgres:16", True),
        ("postgres", f"postgres@sha256:{'a' * 64}", True),
        ("postgres:16", f"postgres:16@sha256:{'a' * 64}", False),
        ("postgres:16*", "postgres:16-alpine", True),
        ("postgres", "evil.example/postgres:16", False),
        ("postgres", "evil.example/library/postgres:16", False),
        ("postgres", "postgres/postgres:16", False),
        ("ghcr.io/acme/*", "ghcr.io/acme/db:1", True),
        ("ghcr.io/acme/*", "ghcr.io/acme/other/db:1", False),
        ("*", "evil.example/db:1", False),
        ("localhost:5000/db", "localhost:5000/db:1", True),
    ],
)
def test_a_pattern_allows_the_images_of_its_registry_only(
    pattern: str, reference: str, fits: bool
) -> None:
    assert ImagePattern.parse(pattern).matches(reference) is fits
