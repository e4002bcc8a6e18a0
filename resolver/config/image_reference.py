"""Validation of the image references that a repository may give.

One container engine serves several repositories. The images on it that were not pulled from a
registry (prepared environments, built images) each belong to one repository and may contain its
source, so a repository may name images of registries only.
Grammar: https://pkg.go.dev/github.com/distribution/reference
"""

import re
from typing import Any, Final

from resolver.errors import UsageError

DEVCONTAINER: Final = "devcontainer"
DOCKERFILE: Final = "dockerfile:"
"""Special values of the setting `image`: `devcontainer`, and the prefix of `dockerfile:PATH`."""

BUILT_PREFIX: Final = "resolver-built"
PREPARED_PREFIX: Final = "resolver-prepared"
_RESERVED_PREFIXES: Final = (BUILT_PREFIX, PREPARED_PREFIX)
"""Name prefixes of the images that Resolver creates on an engine."""

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN: Final = r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?"
_REFERENCE: Final = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?P<tag>:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9+._-]*:[0-9A-Fa-f]{32,})?"
)
_MAX_REFERENCE_LENGTH: Final = 255
_FULL_ID: Final = re.compile(r"(?:sha256:[0-9a-fA-F]*|[0-9a-fA-F]{64})")
_HEX: Final = re.compile(r"[0-9a-fA-F]+")

_NEXT_STEP: Final = (
    "name it as its registry does, like python:3.12-slim-bookworm or ghcr.io/OWNER/IMAGE:TAG; an "
    "image that only the engine has is named by the operator, with --image or RESOLVER_IMAGE"
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
    if match["name"].rpartition("/")[2].startswith(_RESERVED_PREFIXES):
        raise UsageError(
            f"{source} names {reference[:80]!r}, and images of that name are made by Resolver on "
            "the engine for one repository each",
            _NEXT_STEP,
        )
    return reference if match["tag"] or match["digest"] else f"{reference}:latest"


def could_be_id(text: str) -> bool:
    """Return True if an engine could take the text for the prefix of an image id."""
    return _HEX.fullmatch(text) is not None
