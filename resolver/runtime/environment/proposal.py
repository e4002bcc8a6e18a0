"""Proposes an environment for `resolver init`: an image and a set-up from one source.

A set-up is written for an image: what it relies on may be missing, or in another place, in the
image of another source. Whether it works is shown by `resolver init --check`, which tries it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from resolver.config.image_reference import DEVCONTAINER
from resolver.errors import UsageError
from resolver.runtime.environment.images import requested_image
from resolver.runtime.environment.plan import (
    COPILOT,
    SCRIPTS,
    DevContainer,
    Read,
    read_devcontainer,
)
from resolver.runtime.environment.survey import Survey

NOTHING = "true"
"""A set-up that does nothing, used in place of one that would not work."""

_REQUIRED_KEYS = ("features", "dockerComposeFile")
"""Keys of a devcontainer without which its image lacks what its commands need."""


@dataclass(frozen=True)
class ProposedEnvironment:
    """The proposal.

    image, setup: values for the settings; setup is "" if the repository's own set-up is used.
    prepared_by: the file with the repository's own set-up.
    skip_reasons: why other files of the repository are not used.
    """

    image: str
    setup: str = ""
    prepared_by: str = ""
    skip_reasons: tuple[str, ...] = ()

    @property
    def installs(self) -> bool:
        """True if something may be installed, for which the sandbox needs a network."""
        return self.setup not in {"", NOTHING} or bool(self.prepared_by)


def propose_environment(survey: Survey, read: Read, paths: Collection[str]) -> ProposedEnvironment:
    """Return the proposed environment for a repository.

    survey: the survey of its files, used if it describes no environment that can be used.
    paths: the files of the repository.
    """
    for path in SCRIPTS:
        if read(path) is not None:
            return ProposedEnvironment(survey.image, prepared_by=path)
    for path in COPILOT:
        if read(path) is None:
            continue
        if not survey.setup:
            return ProposedEnvironment(survey.image, prepared_by=path)
        reason = f"{path} is written for GitHub's own runner, which is not an image"
        return ProposedEnvironment(survey.image, survey.setup, skip_reasons=(reason,))
    try:
        devcontainer = read_devcontainer(read)
        reasons = list(_reasons_against(devcontainer, survey, read, paths)) if devcontainer else []
    except UsageError as error:
        devcontainer, reasons = None, [error.what]
    if devcontainer is not None and not reasons:
        return ProposedEnvironment(DEVCONTAINER, prepared_by=devcontainer.path)
    setup = survey.setup or (NOTHING if reasons else "")
    return ProposedEnvironment(survey.image, setup, skip_reasons=tuple(map(_flatten, reasons)))


def _reasons_against(
    devcontainer: DevContainer, survey: Survey, read: Read, paths: Collection[str]
) -> Iterator[str]:
    """Yield the reasons, for people, why a devcontainer can't be used; nothing if it can."""
    for key in _REQUIRED_KEYS:
        if key in devcontainer.unused:
            yield f"{devcontainer.path} needs `{key}`, which Resolver does not act on"
    if not devcontainer.image and not devcontainer.dockerfile:
        if "dockerComposeFile" not in devcontainer.unused:
            yield f"{devcontainer.path} names neither an image nor a Dockerfile"
        return
    if devcontainer.dockerfile:
        if devcontainer.dockerfile not in paths:
            dockerfile = devcontainer.dockerfile
            yield f"{devcontainer.path} names {dockerfile}, which is not in the repository"
        yield (
            f"{devcontainer.path} builds its image, which the operator has to allow: set "
            f"`RESOLVER_IMAGE_OPTIONS={{build: true}}` and `image: {DEVCONTAINER}`"
        )
    else:
        requested_image(DEVCONTAINER, read)  # raises an error unless it is an image of a registry
    if not devcontainer.script and survey.setup:
        yield f"{devcontainer.path} installs nothing"


def _flatten(text: str) -> str:
    """Return the text without characters that would end a comment. It may hold names of files."""
    return "".join(c if c.isprintable() else "?" for c in text)
