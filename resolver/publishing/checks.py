"""Whether GitHub checks what a run has made public."""

from resolver.forge.base import Forge
from resolver.forge.github.forge import ACTIONS_LOGIN
from resolver.model import Publication
from resolver.templates import render


def report_pending_checks(publication: Publication, forge: Forge) -> tuple[str, ...]:
    """Return a warning where no workflow starts on the change: GitHub starts none for the token of
    a job, so that no workflow starts itself.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    if publication.branch and not publication.repeated and forge.whoami() == ACTIONS_LOGIN:
        return (render("run/no_checks.md.j2").strip(),)
    return ()
