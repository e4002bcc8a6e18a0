"""Proposes an environment for `resolver init`: an image and a set-up from one source.

A set-up is written for an image: what it relies on may be missing, or in another place, in the
image of another source. Whether it works is shown by `resolver init --check`, which tries it.
"""

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


@dataclass(frozen=True)
class ProposedEnvironment:
    """The proposal.

    image, setup: values for the settings; setup is None if the repository's own set-up is used.
    prepared_by: the file with the repository's own set-up.
    skip_reason: why another file of the repository is not used; None if all are.
    """

    image: str
    setup: str | None = None
    prepared_by: str | None = None
    skip_reason: str | None = None

    @property
    def installs(self) -> bool:
        """True if something may be installed, for which the sandbox needs a network."""
        return self.setup not in {None, NOTHING} or self.prepared_by is not None


def propose_environment(survey: Survey, read: Read) -> ProposedEnvironment:
    """Return the proposed environment for a repository.

    survey: the survey of its files, used if it describes no environment that can be used.
    """
    for path in (*SCRIPTS, *COPILOT):
        if read(path) is not None:
            if path in SCRIPTS or not survey.setup:
                return ProposedEnvironment(survey.image, prepared_by=path)
            unfit = f"{path} is written for GitHub's own runner, which is not an image"
            return ProposedEnvironment(survey.image, survey.setup, skip_reason=unfit)
    try:
        devcontainer = read_devcontainer(read)
        reason = _reason_against(devcontainer, survey, read) if devcontainer else None
    except UsageError as error:
        devcontainer, reason = None, error.what
    if devcontainer is not None and not reason:
        return ProposedEnvironment(DEVCONTAINER, prepared_by=devcontainer.path)
    setup = survey.setup or (NOTHING if reason else None)
    # A reason may hold names of files; a line break in one would end its comment.
    printable = "".join(c if c.isprintable() else "?" for c in reason or "") or None
    return ProposedEnvironment(survey.image, setup, skip_reason=printable)


def _reason_against(devcontainer: DevContainer, survey: Survey, read: Read) -> str | None:
    """Return the reason, for people, why a devcontainer can't be used; None if it can."""
    for key in ("features", "dockerComposeFile"):
        if key in devcontainer.unused:
            return f"{devcontainer.path} needs `{key}`, which Resolver does not act on"
    requested_image(DEVCONTAINER, read)  # raises an error unless it is an image of a registry
    if not devcontainer.script and survey.setup:
        return f"{devcontainer.path} installs nothing"
    return None
