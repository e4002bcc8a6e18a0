"""References to images in registries, as the files of a repository may hold them.

One engine serves several repositories. What it has beside pulled images (the environments that
Resolver keeps, the images that it builds) belongs to one of them, and may hold its source.
Grammar: https://pkg.go.dev/github.com/distribution/reference
"""

import re
from typing import Any, Final

from resolver.errors import UsageError

DEVCONTAINER: Final = "devcontainer"
DOCKERFILE: Final = "dockerfile:"
"""What the setting `image` may be in the place of an image's name: `devcontainer`, or
`dockerfile:PATH`."""

BUILT: Final = "resolver-built"
PREPARED: Final = "resolver-prepared"
_OWN: Final = (BUILT, PREPARED)
"""Names of the images that Resolver makes on an engine."""

_COMPONENT: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN: Final = r"[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?"
_REFERENCE: Final = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?P<tag>:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9+._-]*:[0-9A-Fa-f]{32,})?"
)
_LONGEST: Final = 255
_FULL_ID: Final = re.compile(r"(?:sha256:[0-9a-fA-F]*|[0-9a-fA-F]{64})")
_HEX: Final = re.compile(r"[0-9a-fA-F]+")

_NEXT_STEP: Final = (
    "name it as its registry does, like python:3.12-slim-bookworm or ghcr.io/OWNER/IMAGE:TAG; an "
    "image that only the engine has is named by the operator, with --image or RESOLVER_IMAGE"
)


def check_repository_image(value: Any, where: str) -> Any:
    """The setting `image` as a repository may give it, which is described in the repository or in a
    registry; a value of another type is left to the settings. Raises UsageError."""
    if not isinstance(value, str) or value == DEVCONTAINER or value.startswith(DOCKERFILE):
        return value
    return parse_registry_reference(value, f"{where},")


def parse_registry_reference(text: str, where: str) -> str:
    """The reference with its tag, `latest` where it has neither tag nor digest: an engine takes a
    bare `cafe` for the beginning of an image's id, and never `cafe:latest`.

    where: what names it, for the error. Raises UsageError for an id, for an image that Resolver
    makes, and for what is no reference.
    """
    given = text.strip()
    if _FULL_ID.fullmatch(given):
        raise UsageError(
            f"{where} names the image {given[:80]!r} by its id on the engine, where images of "
            "other repositories are too; a repository names images of registries",
            _NEXT_STEP,
        )
    found = _REFERENCE.fullmatch(given) if len(given) <= _LONGEST else None
    if found is None:
        raise UsageError(f"{where}: {given[:80]!r} is not the name of an image", _NEXT_STEP)
    if found["name"].rpartition("/")[2].startswith(_OWN):
        raise UsageError(
            f"{where} names {given[:80]!r}, and images of that name are made by Resolver on the "
            "engine for one repository each",
            _NEXT_STEP,
        )
    return given if found["tag"] or found["digest"] else f"{given}:latest"


def could_be_id(text: str) -> bool:
    """Whether an engine may take the text for the beginning of an image's id."""
    return _HEX.fullmatch(text) is not None
