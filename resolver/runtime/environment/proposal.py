"""Proposes an environment for `resolver init`: an image and a set-up from one source.

A set-up is written for an image: what it relies on may be missing, or in another place, in the
image of another source.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from resolver.config.image_reference import DEVCONTAINER
from resolver.errors import UsageError
from resolver.runtime.environment.devcontainer import DevContainer, Read, read_devcontainer
from resolver.runtime.environment.images import requested_image
from resolver.runtime.environment.plan import COPILOT, SCRIPTS
from resolver.runtime.environment.references import missing_files
from resolver.runtime.environment.survey import Survey

NOTHING = "true"
"""A set-up that does nothing, used in place of one that would not work."""

_BEYOND = ("features", "dockerComposeFile")
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


def propose_environment(
    found: Survey, read: Read, exists: Callable[[str], bool]
) -> ProposedEnvironment:
    """Return the proposed environment for a repository.

    found: the survey of its files, used if it describes no environment that can be used.
    exists: returns True if a path is a file or a folder of the repository.
    """
    for path in SCRIPTS:
        if read(path) is not None:
            return ProposedEnvironment(found.image, prepared_by=path)
    for path in COPILOT:
        if read(path) is None:
            continue
        if not found.setup:
            return ProposedEnvironment(found.image, prepared_by=path)
        reason = f"{path} is written for GitHub's own runner, which is no image"
        return ProposedEnvironment(found.image, found.setup, skip_reasons=(reason,))
    try:
        devcontainer = read_devcontainer(read)
        reasons = list(_against(devcontainer, found, read, exists)) if devcontainer else []
    except UsageError as error:
        devcontainer, reasons = None, [error.what]
    if devcontainer is not None and not reasons:
        return ProposedEnvironment(DEVCONTAINER, prepared_by=devcontainer.path)
    setup = found.setup or (NOTHING if reasons else "")
    return ProposedEnvironment(found.image, setup, skip_reasons=tuple(map(_flatten, reasons)))


def _against(
    found: DevContainer, seen: Survey, read: Read, exists: Callable[[str], bool]
) -> Iterator[str]:
    """Yield the reasons, for people, why a devcontainer can't be used; nothing if it can."""
    for key in _BEYOND:
        if key in found.unused:
            yield f"{found.path} needs `{key}`, which Resolver does not act on"
    if not found.image and not found.dockerfile:
        if "dockerComposeFile" not in found.unused:
            yield f"{found.path} names neither an image nor a Dockerfile"
        return
    if found.dockerfile:
        if not exists(found.dockerfile):
            yield f"{found.path} names {found.dockerfile}, which is not in the repository"
        yield (
            f"{found.path} builds its image, which the operator has to allow: set "
            f"`RESOLVER_IMAGE_OPTIONS={{build: true}}` and `image: {DEVCONTAINER}`"
        )
    else:
        requested_image(DEVCONTAINER, read)  # raises an error unless it is an image of a registry
    if not found.script and seen.setup:
        yield f"{found.path} installs nothing"
    for each in missing_files(found.script, found.path, read, exists):
        yield f"{each.by} names {each.path}, which is not in the repository"


def _flatten(text: str) -> str:
    """Return the text without characters that would end a comment. It may hold names of files."""
    return "".join(c if c.isprintable() else "?" for c in text)
