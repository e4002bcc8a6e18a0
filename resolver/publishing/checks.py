"""Whether GitHub checks what a run has made public."""

from resolver.config.templates import render
from resolver.github.forge import Forge
from resolver.github.github_forge import ACTIONS_LOGIN
from resolver.models.run import Publication


def report_pending_checks(publication: Publication, forge: Forge) -> tuple[str, ...]:
    """Return a warning where no workflow starts on the change: GitHub starts none for the token of
    a job, so that no workflow starts itself.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    if publication.branch and not publication.repeated and forge.whoami() == ACTIONS_LOGIN:
        return (render("run/no_checks.md.j2").strip(),)
    return ()
