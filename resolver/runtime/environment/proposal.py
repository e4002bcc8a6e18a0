"""Proposes an environment for `resolver init`: an image and a set-up from one source.

A set-up is written for an image: what it relies on may be missing, or in another place, in the
image of another source. Whether it works is shown by `resolver init --check`, which tries it.
"""

from dataclasses import dataclass

from resolver.config.image_reference import DEVCONTAINER
from resolver.errors import UsageError
from resolver.runtime.environment.images import requested_image
from resolver.runtime.environment.plan import COPILOT, FILES, SCRIPTS, Read, read_devcontainer
from resolver.runtime.environment.survey import Survey

NOTHING = "true"
"""A set-up that does nothing. Without it the commands of a devcontainer whose image isn't used
would run in another image."""


@dataclass(frozen=True)
class ProposedEnvironment:
    """The proposal.

    image, setup: values for the settings; setup is None if the repository's own set-up is used.
    prepared_by: the file with the repository's own set-up.
    unused: a file of the repository that describes an environment and is not used; None if all are.
    """

    image: str
    setup: str | None = None
    prepared_by: str | None = None
    unused: str | None = None

    @property
    def installs(self) -> bool:
        """True if something may be installed, for which the sandbox needs a network."""
        return self.setup not in {None, NOTHING} or self.prepared_by is not None


def propose_environment(survey: Survey, read: Read) -> ProposedEnvironment:
    """Return the proposed environment for a repository.

    survey: the survey of its files, used if it describes no environment that can be used.
    """
    paths = (*SCRIPTS, *COPILOT, *FILES)
    described_by = next((path for path in paths if read(path) is not None), None)
    # The steps for Copilot are written for GitHub's own runner, which is not an image.
    if described_by in SCRIPTS or (described_by in COPILOT and not survey.setup):
        return ProposedEnvironment(survey.image, prepared_by=described_by)
    if described_by in FILES and _is_complete(read, installs_needed=survey.setup is not None):
        return ProposedEnvironment(DEVCONTAINER, prepared_by=described_by)
    setup = survey.setup or (NOTHING if described_by else None)
    return ProposedEnvironment(survey.image, setup, unused=described_by)


def _is_complete(read: Read, *, installs_needed: bool) -> bool:
    """Return True if the devcontainer's image and commands are all that makes its environment."""
    try:
        devcontainer = read_devcontainer(read)
        requested_image(DEVCONTAINER, read)
    except UsageError:
        return False
    if devcontainer is None or (installs_needed and not devcontainer.script):
        return False
    return not {"features", "dockerComposeFile"}.intersection(devcontainer.unused)
