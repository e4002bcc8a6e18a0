"""Tells whether GitHub starts checks for a published change."""

from resolver.config.templates import render
from resolver.github.forge import Forge
from resolver.github.github_forge import ACTIONS_LOGIN
from resolver.models.run import Publication


def report_pending_checks(publication: Publication, forge: Forge) -> tuple[str, ...]:
    """Return a warning if GitHub starts no workflow for the published change.

    GitHub starts none for a push with the token of a job, so that workflows don't trigger
    themselves.

    Source: https://docs.github.com/en/actions/concepts/security/github_token
    """
    if publication.branch and not publication.repeated and forge.whoami() == ACTIONS_LOGIN:
        return (render("run/no_checks.md.j2").strip(),)
    return ()
