"""Validation of the image references that a repository may give.

One container engine serves several repositories. The images on it that were not pulled from a
registry (prepared environments) each belong to one repository and may contain its
source, so a repository may name images of registries only.
Grammar: https://pkg.go.dev/github.com/distribution/reference
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from resolver.errors import UsageError

DEVCONTAINER: Final = "devcontainer"
DOCKERFILE: Final = "dockerfile:"
"""Special values of the setting `image`: `devcontainer`, and the prefix of `dockerfile:PATH`."""

PREPARED_PREFIX: Final = "resolver-prepared"
"""Name prefix of the images that Resolver creates on an engine."""

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN: Final = r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?"
_REFERENCE: Final = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?P<tag>:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9+._-]*:[0-9A-Fa-f]{32,})?"
)
_MAX_REFERENCE_LENGTH: Final = 255
_FULL_ID: Final = re.compile(r"(?:sha256:[0-9a-fA-F]*|[0-9a-fA-F]{64})")

_NEXT_STEP: Final = (
    "name it as its registry does, like python:3.12-slim-bookworm or ghcr.io/OWNER/IMAGE:TAG; an "
    "image that only the engine has is named by the operator, with RESOLVER_IMAGE"
)


def check_repository_image(value: Any, source: str) -> Any:
    """Return the setting `image` of a repository's settings file, validated.

    `devcontainer` and `dockerfile:PATH` are returned unchanged, any other string is parsed as a
    registry reference. A value of another type is returned unchanged too: the settings model
    refuses it. `source` names the source of the value in the error.

    Raises UsageError.
    """
    if not isinstance(value, str) or value == DEVCONTAINER or value.startswith(DOCKERFILE):
        return value
    return parse_registry_reference(value, f"{source},")


def parse_registry_reference(text: str, source: str) -> str:
    """Return the reference, with the tag `latest` added if it has neither tag nor digest.

    Without a tag an engine takes a name like `cafe` for the prefix of an image id; `cafe:latest` is
    always a name. `source` names the source of the value in the error.

    Raises UsageError if the text is an image id, names an image that Resolver creates, or is not a
    valid reference.
    """
    reference = text.strip()
    if _FULL_ID.fullmatch(reference):
        raise UsageError(
            f"{source} names the image {reference[:80]!r} by its id on the engine, where images of "
            "other repositories are too; a repository names images of registries",
            _NEXT_STEP,
        )
    match = _REFERENCE.fullmatch(reference) if len(reference) <= _MAX_REFERENCE_LENGTH else None
    if match is None:
        raise UsageError(f"{source}: {reference[:80]!r} is not the name of an image", _NEXT_STEP)
    if match["name"].rpartition("/")[2].startswith(PREPARED_PREFIX):
        raise UsageError(
            f"{source} names {reference[:80]!r}, and images of that name are made by Resolver on "
            "the engine for one repository each",
            _NEXT_STEP,
        )
    return reference if match["tag"] or match["digest"] else f"{reference}:latest"


_PATTERN: Final = re.compile(
    r"(?P<name>[A-Za-z0-9*._-]+(?::[0-9]+(?=/))?(?:/[a-z0-9*._-]+)*)(?P<tag>:[\w*.-]{1,128})?"
)
_DEFAULT_REGISTRY: Final = "docker.io"


@dataclass(frozen=True)
class ImagePattern:
    """Images that an operator allows. `*` stands for any part of a name or of a tag, except `/`.

    name: with its registry, as `docker.io/library/postgres`. tag: "" for every tag and digest.
    """

    name: str
    tag: str

    @classmethod
    def parse(cls, text: str) -> "ImagePattern":
        """Return the pattern. Raises ValueError if the text is not one."""
        match = _PATTERN.fullmatch(text) if len(text) <= _MAX_REFERENCE_LENGTH else None
        if match is None:
            raise ValueError(f"{text[:80]!r} is not the name of an image, like postgres or redis:7")
        return cls(_with_registry(match["name"]), (match["tag"] or "").removeprefix(":"))

    def matches(self, reference: str) -> bool:
        """Return True if the pattern allows the image of a reference.

        reference: as `parse_registry_reference` returns it.
        """
        match = _REFERENCE.fullmatch(reference)
        if match is None or not _fits(self.name, _with_registry(match["name"])):
            return False
        # A digest names its image whatever the tag says, so a pattern with a tag can't allow it.
        tag = (match["tag"] or "").removeprefix(":")
        return not self.tag or (not match["digest"] and _fits(self.tag, tag))


def _with_registry(name: str) -> str:
    """Return the complete name of an image: https://pkg.go.dev/github.com/distribution/reference"""
    first, slash, rest = name.partition("/")
    has_registry = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, path = (first, rest) if has_registry else (_DEFAULT_REGISTRY, name)
    registry = _DEFAULT_REGISTRY if registry == "index.docker.io" else registry
    is_official = registry == _DEFAULT_REGISTRY and "/" not in path
    return f"{registry}/library/{path}" if is_official else f"{registry}/{path}"


def _fits(pattern: str, text: str) -> bool:
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.fullmatch("[^/]*".join(parts), text) is not None
